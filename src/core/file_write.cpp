// Writing: whole files that appear at once, and logs that only grow.
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <set>

#include "core/file.hpp"
#include "core/mapped.hpp"

namespace onnxtrain {
namespace {

constexpr size_t kBuffer = size_t(1) << 18;

// Temporaries of this process: two writers of one path at once would spoil each other.
std::mutex g_active_mutex;
std::set<std::string>& active() {
  static auto* paths = new std::set<std::string>;  // lives as long as any thread
  return *paths;
}

std::pair<std::string, std::string> split_path(const std::string& path) {
  const size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

// Returns 0 or the errno of the first call that failed.
int write_all(int fd, const char* p, size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = write(fd, p, bytes);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    if (n == 0) return EIO;
    p += n;
    bytes -= size_t(n);
  }
  return 0;
}

int sync_folder(const std::string& folder) {
  Fd dir(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!dir.valid()) return errno;
  // some file systems cannot sync a folder and say EINVAL: nothing to be done there
  return fsync(dir.get()) != 0 && errno != EINVAL ? errno : 0;
}

// Where to write: through a symbolic link when asked, never over a folder. A device or a pipe
// (/dev/null, /dev/stdout) is written to as it is.
std::string target_of(const std::string& path, bool follow_link) {
  if (path.empty() || path.back() == '/')
    io_error(ErrorKind::kFailed, "OT4010", "write", path, path.empty() ? ENOENT : EISDIR);
  struct stat st;
  if (lstat(path.c_str(), &st) != 0) return path;
  if (S_ISLNK(st.st_mode)) {
    if (!follow_link) return path;
    if (stat(path.c_str(), &st) != 0) io_error(ErrorKind::kFailed, "OT4010", "write", path, errno);
    if (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode)) return path;  // a pipe has no real path
    std::unique_ptr<char, void (*)(void*)> real(realpath(path.c_str(), nullptr), std::free);
    if (!real) io_error(ErrorKind::kFailed, "OT4010", "write", path, errno);
    if (S_ISDIR(st.st_mode)) io_error(ErrorKind::kFailed, "OT4010", "write", path, EISDIR);
    return real.get();
  }
  if (S_ISDIR(st.st_mode))
    throw Error(ErrorKind::kFailed, "OT4010", cat("cannot write '", path, "': it is a folder"),
                cat("name a file in it:  ", path, "/FILE"));
  if (S_ISBLK(st.st_mode) || S_ISSOCK(st.st_mode))
    io_error(ErrorKind::kFailed, "OT4010", "write", path, EINVAL);
  return path;
}

bool is_stream(const std::string& path) {
  struct stat st;
  return stat(path.c_str(), &st) == 0 && (S_ISCHR(st.st_mode) || S_ISFIFO(st.st_mode));
}

}  // namespace

void remove_stale_temporaries(const std::string& path) {
  const auto [folder, name] = split_path(path);
  std::unique_ptr<DIR, int (*)(DIR*)> dir(opendir(folder.c_str()), closedir);
  if (!dir) return;
  const std::string prefix = name + ".tmp.";
  while (const dirent* entry = readdir(dir.get())) {
    const std::string_view found = entry->d_name;
    if (found.substr(0, prefix.size()) != prefix) continue;
    pid_t pid = 0;
    const char* end = found.data() + found.size();
    const auto [stop, bad] = std::from_chars(found.data() + prefix.size(), end, pid);
    if (bad != std::errc() || stop != end || pid <= 0) continue;
    if (pid != getpid() && (kill(pid, 0) == 0 || errno != ESRCH)) continue;
    const std::string full = folder + "/" + std::string(found);
    if (pid == getpid()) {
      std::lock_guard lock(g_active_mutex);
      if (active().count(full) > 0) continue;
    }
    unlink(full.c_str());
  }
}

AtomicWriter::AtomicWriter(const std::string& path, bool follow_link)
    : path_(target_of(path, follow_link)) {
  buffer_.reserve(kBuffer);
  if (is_stream(path_)) {
    fd_ = Fd(open(path_.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd_.valid()) fail("OT4010", "write", errno);
    return;
  }
  const auto [folder, name] = split_path(path_);
  temporary_ = folder + "/" + name + ".tmp." + std::to_string(getpid());
  remove_stale_temporaries(path_);
  {
    std::lock_guard lock(g_active_mutex);
    if (!active().insert(temporary_).second)
      throw Error(ErrorKind::kFailed, "OT4015", cat("'", path_, "' is being written already"));
  }
  fd_ = Fd(open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (!fd_.valid()) fail("OT4010", "create", errno);
  struct stat old;
  if (stat(path_.c_str(), &old) == 0 && S_ISREG(old.st_mode) &&
      fchmod(fd_.get(), old.st_mode & 0777) != 0)
    fail("OT4010", "create", errno);
}

AtomicWriter::~AtomicWriter() {
  if (!done_) discard();
}

void AtomicWriter::discard() noexcept {
  if (fd_.valid() && !temporary_.empty()) unlink(temporary_.c_str());
  fd_.reset();
  std::lock_guard lock(g_active_mutex);
  active().erase(temporary_);
  done_ = true;
}

void AtomicWriter::fail(const char* code, const char* what, int errnum) {
  discard();
  const bool full = errnum == ENOSPC || errnum == EDQUOT;
  std::string hint = "the file that was there before is unchanged";
  if (full) hint = "the disk is full; " + hint;
  if (errnum == ENOENT) hint = cat("make the folder first:  mkdir -p ", split_path(path_).first);
  try {
    io_error(ErrorKind::kFailed, full ? "OT4012" : code, what, path_, errnum);
  } catch (const Error& e) {
    throw Error(e.kind(), e.code(), e.message(), hint);
  }
}

void AtomicWriter::flush() {
  const int failed = write_all(fd_.get(), buffer_.data(), buffer_.size());
  buffer_.clear();
  if (failed != 0) fail("OT4011", "write", failed);
}

void AtomicWriter::write(const void* data, size_t bytes) {
  if (done_) throw Error(ErrorKind::kFailed, "OT4011", cat("'", path_, "' is closed already"));
  if (bytes == 0) return;
  hash_.add(data, bytes);
  bytes_ += bytes;
  if (buffer_.size() + bytes > kBuffer) flush();
  if (bytes >= kBuffer) {
    const int failed = write_all(fd_.get(), static_cast<const char*>(data), bytes);
    if (failed != 0) fail("OT4011", "write", failed);
    drop_mapped_pages(data, bytes);
  } else {
    buffer_.append(static_cast<const char*>(data), bytes);
  }
}

void AtomicWriter::commit(const std::string& previous) {
  if (done_) throw Error(ErrorKind::kFailed, "OT4011", cat("'", path_, "' is closed already"));
  check_mapped_files();  // what was written may have come from one
  flush();
  if (temporary_.empty()) {  // a device or a pipe
    fd_.reset();
    done_ = true;
    return;
  }
  // after a failed fsync the kernel may have dropped the pages: a retry would lie
  if (fsync(fd_.get()) != 0) fail("OT4013", "flush to disk", errno);
  if (close(fd_.release()) != 0) {
    const int failed = errno;
    unlink(temporary_.c_str());
    fail("OT4013", "close", failed);
  }
  if (!previous.empty()) {
    // a second name first, so that PATH exists at every moment
    const std::string link_name = previous + ".tmp." + std::to_string(getpid());
    unlink(link_name.c_str());
    if (link(path_.c_str(), link_name.c_str()) == 0) {
      if (rename(link_name.c_str(), previous.c_str()) != 0) unlink(link_name.c_str());
    } else if (errno != ENOENT) {  // no hard links here: move it
      (void)rename(path_.c_str(), previous.c_str());
    }
  }
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    const int failed = errno;
    unlink(temporary_.c_str());
    fail("OT4014", "put in place", failed);
  }
  discard();
  if (const int failed = sync_folder(split_path(path_).first); failed != 0)
    io_error(ErrorKind::kFailed, "OT4013", "flush the folder of", path_, failed);
}

void write_file(const std::string& path, std::string_view content) {
  AtomicWriter out(path);
  out.write(content);
  out.commit();
}

void append_line(const std::string& path, std::string_view line) {
  Fd fd(open(path.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0666));
  if (!fd.valid()) io_error(ErrorKind::kFailed, "OT4010", "open", path, errno);
  struct stat st;
  if (fstat(fd.get(), &st) != 0) io_error(ErrorKind::kFailed, "OT4011", "write", path, errno);
  std::string text;
  char last = '\n';
  if (S_ISREG(st.st_mode) && st.st_size > 0 && pread(fd.get(), &last, 1, st.st_size - 1) == 1 &&
      last != '\n')
    text = "\n";
  text.append(line);
  text += '\n';
  int failed = write_all(fd.get(), text.data(), text.size());
  // half a line would spoil the log for its readers; making it shorter needs no room
  if (failed != 0 && S_ISREG(st.st_mode) && ftruncate(fd.get(), st.st_size) != 0) failed = errno;
  if (close(fd.release()) != 0 && failed == 0) failed = errno;
  if (failed != 0)
    io_error(ErrorKind::kFailed, failed == ENOSPC || failed == EDQUOT ? "OT4012" : "OT4011",
             "write", path, failed);
}

}  // namespace onnxtrain
