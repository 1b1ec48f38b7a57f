// Decompression with limits: gzip streams and the members of a zip archive.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/file.hpp"
#include "core/tensor.hpp"

namespace onnxtrain {

// Deflate cannot shrink data more than this; a file that claims more is refused before any memory
// is taken.
inline constexpr uint64_t kMaxDeflateRatio = 1032;

// A piece of a file, decompressed front to back.
class InflateStream {
 public:
  enum class Format { kGzip, kRaw };
  InflateStream(const InputFile& file, uint64_t offset, uint64_t compressed, Format format);
  ~InflateStream();
  // Up to `bytes`; fewer only at the end of the stream (whose checksum has then been checked).
  size_t read(void* out, size_t bytes);
  void read_exactly(void* out, size_t bytes);  // OT2140 when the stream is shorter
  bool at_end();                               // nothing more to come

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// All of a gzip file, at most `limit` bytes, as a uint8 tensor.
Tensor gunzip(const InputFile& file, uint64_t limit);

struct ZipEntry {
  std::string name;
  uint64_t offset = 0;  // of the data
  uint64_t compressed = 0, size = 0;
  uint32_t crc = 0;
  bool deflated = false;
};

// The directory of a zip archive (also zip64); sizes, offsets and overlaps are checked.
std::vector<ZipEntry> zip_directory(const InputFile& file);
// The member's bytes from `skip` into `out`, checksum of the whole checked; `prefix` receives the
// first `skip` bytes.
void zip_read(const InputFile& file, const ZipEntry& entry, void* prefix, size_t skip, void* out,
              size_t bytes);
// The first bytes of a member (at most `bytes`).
std::string zip_peek(const InputFile& file, const ZipEntry& entry, size_t bytes);
// Checks the checksum of a stored member without keeping it.
void zip_verify_stored(const InputFile& file, const ZipEntry& entry);

}  // namespace onnxtrain
