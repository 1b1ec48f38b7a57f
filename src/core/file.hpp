// Files, safely: regular files only, every size checked, every call checked, nothing half-written.
// Errors carry the path and the system's reason; the code is OT4xxx (OT1411 for a path in a model
// that leaves the model's folder).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/error.hpp"
#include "core/random.hpp"

namespace onnxtrain {

// Owns a file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    if (this != &other) {
      reset();
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Fd() { reset(); }
  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

// "cannot WHAT 'PATH': REASON" with the text of `errnum`.
[[noreturn]] void io_error(ErrorKind kind, std::string code, std::string_view what,
                           const std::string& path, int errnum);

// A regular file opened for reading by position; a file that shrinks meanwhile is an error.
class InputFile {
 public:
  InputFile() = default;
  // `kind` decides the exit code: kModel for a model, kData for data.
  explicit InputFile(std::string path, ErrorKind kind = ErrorKind::kFailed);
  InputFile(Fd fd, std::string path, ErrorKind kind = ErrorKind::kFailed);
  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  // Reads exactly `bytes` at `offset`; safe from several threads.
  void read_at(uint64_t offset, void* out, size_t bytes) const;
  int fd() const { return fd_.get(); }

 private:
  void check();
  Fd fd_;
  std::string path_;
  uint64_t size_ = 0;
  ErrorKind kind_ = ErrorKind::kFailed;
};

// A regular file mapped read-only. Touching pages of a file that has shrunk raises SIGBUS: use
// InputFile where others may write to the file, or call check_size() first.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(std::string path, ErrorKind kind = ErrorKind::kFailed);
  explicit MappedFile(InputFile file);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  const unsigned char* data() const { return data_; }
  size_t size() const { return size_; }
  const std::string& path() const { return file_.path(); }
  void check_size() const;  // throws when the file is now smaller than what was mapped

 private:
  InputFile file_;
  unsigned char* data_ = nullptr;
  size_t size_ = 0;
};

// The whole of a regular file of at most `limit` bytes.
std::string read_file(const std::string& path, uint64_t limit, ErrorKind kind = ErrorKind::kFailed);

// Opens `relative` for reading beneath `directory`: no absolute path, no "..", no symbolic link on
// the way, a regular file with one link. Throws a model error.
InputFile open_beneath(const std::string& directory, const std::string& relative);

// Writes PATH.tmp.<pid>, hashes on the way; commit() makes it PATH. The file at PATH is the old one
// or the whole new one at any moment, also after a crash. Without commit() nothing changes.
class AtomicWriter {
 public:
  // Removes temporaries of PATH left by processes that are gone. A symbolic link at PATH is
  // followed unless `follow_link` is false (then it is replaced).
  explicit AtomicWriter(const std::string& path, bool follow_link = true);
  ~AtomicWriter();
  AtomicWriter(const AtomicWriter&) = delete;
  AtomicWriter& operator=(const AtomicWriter&) = delete;

  void write(const void* data, size_t bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  uint64_t bytes() const { return bytes_; }
  uint64_t checksum() const { return hash_.value(); }  // XXH64 of all bytes so far
  // fsync, rename, fsync the folder. With `previous` the old file keeps living under that path.
  void commit(const std::string& previous = {});

 private:
  void flush();
  [[noreturn]] void fail(const char* code, const char* what, int errnum);
  void discard() noexcept;
  std::string path_, temporary_, buffer_;
  Fd fd_;
  uint64_t bytes_ = 0;
  Hash64 hash_;
  bool done_ = false;
};

// write + commit
void write_file(const std::string& path, std::string_view content);

// Appends `line` and a newline in one write; a torn last line of a killed process is ended first.
void append_line(const std::string& path, std::string_view line);

// Removes PATH.tmp.<pid> files whose process is gone (AtomicWriter does it for its own path).
void remove_stale_temporaries(const std::string& path);

}  // namespace onnxtrain
