// Memory that lasts: arenas, state variables, weights read from a file. Large blocks are mappings
// of their own: fresh ones are zero without being touched, and freeing gives them back to the
// system at once.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace onnxtrain {

// Bytes, or a number with K, M, G or T ("500M": mebibytes); 0 when it is neither.
size_t parse_bytes(const std::string& text);

// Largest resident memory of this process so far.
size_t peak_resident_bytes();

// The model error for a block that is too large.
[[noreturn]] void out_of_memory(size_t bytes);

// As allocate(): aligned, counted against the limit. Contents: zero when asked for (large blocks
// are not touched for that), else anything.
std::shared_ptr<void> allocate_lasting(size_t bytes, bool zero = false);

// Gives part of a large fresh block its pages at once: page by page, as they are touched, costs
// twice as much, and four times when they are read first. Contents stay as they are.
void populate(void* begin, size_t bytes);

// Gives the pages that lie in this part of a block back: its contents are lost.
void give_back(void* begin, size_t bytes);

// Does that beside other work, until all is done or this is destroyed.
class Populating {
 public:
  Populating() = default;
  ~Populating();
  void start(std::vector<std::pair<std::shared_ptr<void>, size_t>> blocks);
  void stop();

 private:
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

// Pages that are zero and cost nothing while nobody writes to them: an optimizer's first state in a
// model. Not counted; whoever gets them only reads.
std::shared_ptr<void> zero_pages(size_t bytes);
bool are_zero_pages(const std::shared_ptr<void>& memory);

// Where in a file a block of memory was read from: the same bytes can be read again as long as the
// file has not been written since.
struct FileRange {
  std::string path;
  uint64_t device = 0, inode = 0, file_size = 0;
  int64_t modified_s = 0, modified_ns = 0;
  uint64_t offset = 0, bytes = 0;
  // False when the file is gone or is not the one that was read.
  bool read(void* out) const;
};

// Identity of an open file; offset and bytes are left to the caller.
FileRange describe_file(int fd, const std::string& path);

// The block with a note of where its contents come from; `from` may be null.
std::shared_ptr<void> allocate_lasting(size_t bytes, std::shared_ptr<const FileRange> from);
// That note; null when there is none. The contents may have been changed since by whoever owns
// them.
std::shared_ptr<const FileRange> origin_of(const std::shared_ptr<void>& memory);

}  // namespace onnxtrain
