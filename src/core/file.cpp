// Reading: regular files, by position, mapped, whole, beneath a folder.
#include "core/file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <limits>
#include <system_error>

#include "core/closest.hpp"
#include "core/mapped.hpp"
#include "core/shell.hpp"
#include "core/text.hpp"

namespace onnxtrain {
namespace {

int open_retry(int dir, const char* path, int flags) {
  int fd;
  do {
    fd = openat(dir, path, flags | O_CLOEXEC);
  } while (fd < 0 && errno == EINTR);
  return fd;
}

[[noreturn]] void bad_external(const std::string& relative, std::string_view why) {
  model_error("OT1411", cat("external data '", relative, "' ", why),
              "external data must be an ordinary file in the folder of the model");
}

}  // namespace

void Fd::reset() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

namespace {

// The file beside a missing one whose name is nearest; or the part of the path that is missing.
std::string missing_hint(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  const fs::path p(path);
  if (path.find("://") != std::string::npos)
    return cat("this is an address, not a file: download it first:  curl -LO ", shell_word(path));
  if (path.find_first_of("*?") != std::string::npos)
    return "one file is named without patterns; in quotes the shell does not replace them";
  const fs::path folder = p.parent_path().empty() ? fs::path(".") : p.parent_path();
  if (!fs::is_directory(folder, ignored)) return cat("there is no folder '", folder.string(), "'");
  std::vector<std::string> names;
  for (fs::directory_iterator it(folder, ignored), end;
       !ignored && it != end && names.size() < 10000; it.increment(ignored))
    names.push_back(it->path().filename().string());
  const std::string near = closest(p.filename().string(), names);
  if (!near.empty())
    return cat("did you mean ", shell_word((p.parent_path() / near).string()), "?");
  return cat("look for it:  ls ", shell_word(folder.string()));
}

}  // namespace

void io_error(ErrorKind kind, std::string code, std::string_view what, const std::string& path,
              int errnum) {
  throw Error(kind, std::move(code),
              cat("cannot ", what, " '", path, "': ", std::generic_category().message(errnum)),
              errnum == ENOENT && !path.empty() ? missing_hint(path) : std::string());
}

InputFile::InputFile(std::string path, ErrorKind kind) : path_(std::move(path)), kind_(kind) {
  // O_NONBLOCK: opening a pipe must not wait for its writer
  fd_ = Fd(open_retry(AT_FDCWD, path_.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY));
  if (!fd_.valid()) io_error(kind_, "OT4001", "open", path_, errno);
  check();
}

InputFile::InputFile(Fd fd, std::string path, ErrorKind kind)
    : fd_(std::move(fd)), path_(std::move(path)), kind_(kind) {
  check();
}

void InputFile::check() {
  struct stat st;
  if (fstat(fd_.get(), &st) != 0) io_error(kind_, "OT4001", "open", path_, errno);
  if (!S_ISREG(st.st_mode))
    throw Error(kind_, "OT4002",
                cat("'", path_, "' is ", S_ISDIR(st.st_mode) ? "a folder" : "not a regular file"),
                S_ISDIR(st.st_mode) ? cat("name a file in it:  ls ", shell_word(path_))
                                    : std::string("name an ordinary file; what a program writes "
                                                  "is first written to one:  PROGRAM > FILE"));
  size_ = uint64_t(st.st_size);
}

void InputFile::read_at(uint64_t offset, void* out, size_t bytes) const {
  auto* p = static_cast<char*>(out);
  size_t done = 0;
  if (offset > uint64_t(std::numeric_limits<off_t>::max()) - bytes)
    io_error(kind_, "OT4004", "read", path_, EOVERFLOW);
  while (done < bytes) {
    const ssize_t n = pread(fd_.get(), p + done, bytes - done, off_t(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) io_error(kind_, "OT4004", "read", path_, errno);
    if (n == 0)
      throw Error(
          kind_, "OT4005",
          cat("'", path_, "' ends at byte ", offset + done, ", ", bytes - done, " bytes too early",
              offset + bytes <= size_ ? cat("; it had ", size_, " bytes when it was opened")
                                      : std::string()));
    done += size_t(n);
  }
}

MappedFile::MappedFile(std::string path, ErrorKind kind)
    : MappedFile(InputFile(std::move(path), kind)) {}

MappedFile::MappedFile(InputFile file) : file_(std::move(file)) {
  if (file_.size() > std::numeric_limits<size_t>::max() / 2)
    io_error(ErrorKind::kFailed, "OT4003", "map", path(), EFBIG);
  size_ = size_t(file_.size());
  if (size_ == 0) return;
  void* p = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file_.fd(), 0);
  if (p == MAP_FAILED) io_error(ErrorKind::kFailed, "OT4004", "map", path(), errno);
  if (!watch_mapping(p, size_, path().c_str())) {
    munmap(p, size_);
    io_error(ErrorKind::kFailed, "OT4004", "map", path(), EMFILE);
  }
  data_ = static_cast<unsigned char*>(p);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : file_(std::move(other.file_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

MappedFile::~MappedFile() {
  if (data_ == nullptr) return;
  unwatch_mapping(data_);
  munmap(data_, size_);
}

void MappedFile::check_size() const {
  struct stat st;
  if (size_ == 0) return;
  if (fstat(file_.fd(), &st) != 0) io_error(ErrorKind::kFailed, "OT4004", "read", path(), errno);
  if (uint64_t(st.st_size) < size_)
    throw Error(ErrorKind::kFailed, "OT4005",
                cat("'", path(), "' shrank from ", size_, " to ", st.st_size, " bytes"));
}

std::string read_file(const std::string& path, uint64_t limit, ErrorKind kind) {
  const InputFile file(path, kind);
  if (file.size() > limit)
    throw Error(kind, "OT4003",
                cat("'", path, "' has ", file.size(), " bytes, more than the limit of ", limit));
  std::string content(size_t(file.size()), '\0');
  file.read_at(0, content.data(), content.size());
  return content;
}

InputFile open_beneath(const std::string& directory, const std::string& relative) {
  if (relative.empty()) bad_external(relative, "has no name");
  if (relative.find('\0') != std::string::npos) bad_external(relative, "has a zero byte in it");
  if (relative.size() > 65536) bad_external(relative.substr(0, 80) + "...", "has too long a name");
  if (relative.front() == '/') bad_external(relative, "is an absolute path");
  const std::string base = directory.empty() ? "." : directory;
  Fd dir(open_retry(AT_FDCWD, base.c_str(), O_RDONLY | O_DIRECTORY));
  if (!dir.valid()) io_error(ErrorKind::kModel, "OT4001", "open", base, errno);
  const std::string shown = base + "/" + relative;
  for (size_t begin = 0; begin < relative.size();) {
    size_t end = relative.find('/', begin);
    const bool last = end == std::string::npos;
    if (last) end = relative.size();
    const std::string part = relative.substr(begin, end - begin);
    begin = end + 1;
    if (part == "..") bad_external(relative, "leaves the folder of the model (..)");
    if (part.empty() || part == ".") continue;
    const int kind = last ? O_NONBLOCK | O_NOCTTY : O_DIRECTORY;
    Fd next(open_retry(dir.get(), part.c_str(), O_RDONLY | O_NOFOLLOW | kind));
    if (!next.valid() && (errno == ELOOP || (!last && errno == ENOTDIR)))
      bad_external(relative, cat("passes through '", part, "', which is not a plain ",
                                 last ? "file" : "folder"));
    if (!next.valid()) io_error(ErrorKind::kModel, "OT4001", "open", shown, errno);
    dir = std::move(next);
  }
  struct stat st;
  if (fstat(dir.get(), &st) != 0) io_error(ErrorKind::kModel, "OT4001", "open", shown, errno);
  if (!S_ISREG(st.st_mode)) bad_external(relative, "is not a regular file");
  if (st.st_nlink != 1) bad_external(relative, cat("has ", st.st_nlink, " names (hard links)"));
  return InputFile(std::move(dir), shown, ErrorKind::kModel);
}

}  // namespace onnxtrain
