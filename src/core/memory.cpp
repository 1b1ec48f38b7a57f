// Counted, aligned memory.
#include "core/memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <string_view>

#include "core/budget.hpp"
#include "core/counted.hpp"
#include "core/table_budget.hpp"
#include "core/tensor.hpp"

namespace onnxtrain {
namespace {

std::atomic<size_t> g_in_use{0};
std::atomic<size_t> g_limit{0};  // 0: not asked for yet

size_t physical_memory() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  size_t bytes =
      pages > 0 && page > 0 ? size_t(pages) * size_t(page) : std::numeric_limits<size_t>::max();
  std::ifstream cgroup("/sys/fs/cgroup/memory.max");  // a container may have less
  size_t limit = 0;
  if (cgroup >> limit && limit > 0 && limit < bytes) bytes = limit;
  return bytes;
}

size_t limit_from_environment() {
  const char* text = std::getenv("ONNXTRAIN_MEMORY_LIMIT");
  if (text == nullptr || *text == 0) return 0;
  const size_t bytes = parse_bytes(text);
  if (bytes == 0)
    usage_error("OT0009", cat("ONNXTRAIN_MEMORY_LIMIT='", text, "' is not a number of bytes"),
                "for example ONNXTRAIN_MEMORY_LIMIT=8G");
  return bytes;
}

[[noreturn]] void too_much(size_t bytes, size_t in_use) {
  model_error("OT1401",
              cat("not enough memory: ", bytes, " bytes more are needed, ", in_use,
                  " are in use and the limit is ", memory_limit()),
              "use a smaller batch (--batch), or raise the limit: ONNXTRAIN_MEMORY_LIMIT=8G");
}

void reserve(size_t bytes) {
  const size_t limit = memory_limit();
  size_t now = g_in_use.load(std::memory_order_relaxed);
  do {
    if (bytes > limit || now > limit - bytes) too_much(bytes, now);
  } while (!g_in_use.compare_exchange_weak(now, now + bytes, std::memory_order_relaxed));
}

void release(size_t bytes) { g_in_use.fetch_sub(bytes, std::memory_order_relaxed); }

// Bytes counted against the limit of the process and, while a run is under way, its budget.
class Counted {
 public:
  Counted(size_t bytes, bool lasting) : bytes_(bytes) {
    if (Budget* b = Budget::current())
      taken_ = lasting ? b->take_lasting(bytes + kHandle) : b->take(bytes + kHandle);
    try {
      reserve(bytes);
    } catch (...) {
      give_back_to_run();
      throw;
    }
  }
  void give_back() const {
    release(bytes_);
    give_back_to_run();
  }

 private:
  static constexpr size_t kHandle = 192;  // tensor, shape and owner beside the elements
  void give_back_to_run() const {
    if (taken_) taken_->bytes -= bytes_ + kHandle;
  }
  size_t bytes_;
  std::shared_ptr<Taken> taken_;
};

}  // namespace

size_t parse_bytes(const std::string& written) {
  const char* text = written.c_str();
  char* end = nullptr;
  const double v = std::strtod(text, &end);
  double unit = 1;
  constexpr std::string_view kUnits = "KMGT";
  if (const size_t at = kUnits.find(char(std::toupper(static_cast<unsigned char>(*end))));
      *end != 0 && at != std::string_view::npos) {
    for (size_t k = 0; k <= at; ++k) unit *= 1024;
    ++end;
  }
  if (end == text || *end != 0 || !(v * unit >= 1) || !(v * unit < 1e18)) return 0;
  return size_t(v * unit);
}

size_t peak_resident_bytes() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return size_t(u.ru_maxrss) * 1024;
}

void out_of_memory(size_t bytes) { too_much(bytes, memory_in_use()); }

std::shared_ptr<void> allocate(size_t bytes) {
  const size_t wanted = bytes == 0 ? 1 : bytes;
  if (wanted > std::numeric_limits<size_t>::max() - kAlignment) too_much(bytes, memory_in_use());
  const size_t rounded = (wanted + kAlignment - 1) / kAlignment * kAlignment;
  const Counted counted(rounded, false);
  void* p = std::aligned_alloc(kAlignment, rounded);
  if (p == nullptr) {
    counted.give_back();
    too_much(bytes, memory_in_use());
  }
  try {
    return std::shared_ptr<void>(p, [counted](void* q) {
      std::free(q);
      counted.give_back();
    });
  } catch (const std::bad_alloc&) {  // the deleter has run
    too_much(bytes, memory_in_use());
  }
}

namespace {

constexpr size_t kOwnMapping = size_t(2) << 20;
constexpr size_t kOwnZeros = size_t(64) << 10;  // fresh pages are zero without being touched

// Fresh pages, or null. No huge pages: on a virtual machine whose host takes free ones back,
// filling 128 MB with them took 15 ms at best and 550 ms at worst, with small pages 100 ms always.
void* map_pages(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? nullptr : p;
}

// The deleter of lasting memory; `from` is what origin_of() finds.
struct Lasting {
  size_t bytes;
  Counted counted;
  bool mapped;
  std::shared_ptr<const FileRange> from;
  void operator()(void* p) const {
    if (mapped)
      munmap(p, bytes);
    else
      std::free(p);
    counted.give_back();
  }
};

struct ZeroPages {
  size_t bytes;
  void operator()(void* p) const { munmap(p, bytes); }
};

}  // namespace

void populate(void* begin, size_t bytes) {
#ifdef MADV_POPULATE_WRITE
  constexpr uintptr_t kPage = 4096;
  const uintptr_t from = (reinterpret_cast<uintptr_t>(begin) + kPage - 1) / kPage * kPage;
  const uintptr_t to = (reinterpret_cast<uintptr_t>(begin) + bytes) / kPage * kPage;
  // an error means that pages come as they are touched
  if (to > from) madvise(reinterpret_cast<void*>(from), to - from, MADV_POPULATE_WRITE);
#else
  (void)begin;
  (void)bytes;
#endif
}

void Populating::start(std::vector<std::pair<std::shared_ptr<void>, size_t>> blocks) {
  if (blocks.empty() || thread_.joinable()) return;
  thread_ = std::thread([this, blocks = std::move(blocks)] {
    constexpr size_t kPart = size_t(4) << 20;
    for (const auto& [block, bytes] : blocks)
      for (size_t at = 0; at < bytes && !stop_.load(std::memory_order_relaxed); at += kPart)
        populate(static_cast<char*>(block.get()) + at, std::min(kPart, bytes - at));
  });
}

Populating::~Populating() { stop(); }

void Populating::stop() {
  stop_.store(true, std::memory_order_relaxed);
  if (thread_.joinable()) thread_.join();
}

void give_back(void* begin, size_t bytes) {
  const auto page = uintptr_t(sysconf(_SC_PAGESIZE)), from = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t first = (from + page - 1) / page * page, end = (from + bytes) / page * page;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

std::shared_ptr<void> zero_pages(size_t bytes) {
  void* p = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) out_of_memory(bytes);
  return std::shared_ptr<void>(p, ZeroPages{bytes});
}

bool are_zero_pages(const std::shared_ptr<void>& memory) {
  return std::get_deleter<ZeroPages>(memory) != nullptr;
}

namespace {

std::shared_ptr<void> lasting(size_t bytes, bool mapped, std::shared_ptr<const FileRange> from) {
  const size_t unit = mapped ? 4096 : kAlignment;
  if (bytes > std::numeric_limits<size_t>::max() / 2) too_much(bytes, memory_in_use());
  const size_t rounded = std::max((bytes + unit - 1) / unit, size_t(1)) * unit;
  const Counted counted(rounded, true);
  void* p = mapped ? map_pages(rounded) : std::aligned_alloc(kAlignment, rounded);
  if (p == nullptr) {
    counted.give_back();
    too_much(bytes, memory_in_use());
  }
  try {
    return std::shared_ptr<void>(p, Lasting{rounded, counted, mapped, std::move(from)});
  } catch (const std::bad_alloc&) {  // the deleter has run
    too_much(bytes, memory_in_use());
  }
}

}  // namespace

std::shared_ptr<void> allocate_lasting(size_t bytes, bool zero) {
  const bool mapped = bytes >= (zero ? kOwnZeros : kOwnMapping);
  std::shared_ptr<void> p = lasting(bytes, mapped, nullptr);
  if (zero && !mapped) std::memset(p.get(), 0, bytes);
  return p;
}

std::shared_ptr<void> allocate_lasting(size_t bytes, std::shared_ptr<const FileRange> from) {
  return lasting(bytes, bytes >= kOwnMapping, std::move(from));
}

std::shared_ptr<const FileRange> origin_of(const std::shared_ptr<void>& memory) {
  const Lasting* d = std::get_deleter<Lasting>(memory);
  return d ? d->from : nullptr;
}

FileRange describe_file(int fd, const std::string& path) {
  FileRange r;
  struct stat s = {};
  if (fstat(fd, &s) != 0) return r;
  std::error_code e;  // the working folder may change
  r.path = std::filesystem::absolute(path, e).string();
  r.device = uint64_t(s.st_dev);
  r.inode = uint64_t(s.st_ino);
  r.file_size = uint64_t(s.st_size);
  r.modified_s = int64_t(s.st_mtim.tv_sec);
  r.modified_ns = int64_t(s.st_mtim.tv_nsec);
  return r;
}

bool FileRange::read(void* out) const {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const FileRange now = describe_file(fd, path);
  bool good = now.device == device && now.inode == inode && now.file_size == file_size &&
              now.modified_s == modified_s && now.modified_ns == modified_ns;
  for (uint64_t done = 0; good && done < bytes;) {
    const ssize_t n =
        pread(fd, static_cast<char*>(out) + done, size_t(bytes - done), off_t(offset + done));
    good = n > 0;
    if (n > 0) done += uint64_t(n);
  }
  close(fd);
  return good;
}

namespace {
// In front of what allocate_counted() returns.
constexpr size_t kNote = kAlignment;
static_assert(sizeof(Counted) <= kNote);
}  // namespace

void* allocate_counted(size_t bytes) {
  if (bytes >= std::numeric_limits<size_t>::max() / 2) too_much(bytes, memory_in_use());
  const size_t rounded = (bytes + kNote + kAlignment - 1) / kAlignment * kAlignment;
  const TableBudget::Use tables;
  const Counted counted(rounded, true);
  void* p = std::aligned_alloc(kAlignment, rounded);
  if (p == nullptr) {
    counted.give_back();
    too_much(bytes, memory_in_use());
  }
  new (p) Counted(counted);
  return static_cast<char*>(p) + kNote;
}

void free_counted(void* p) noexcept {
  if (p == nullptr) return;
  auto* counted = reinterpret_cast<Counted*>(static_cast<char*>(p) - kNote);
  counted->give_back();
  counted->~Counted();
  std::free(counted);
}

void set_memory_limit(size_t bytes) { g_limit.store(bytes == 0 ? 1 : bytes); }

size_t memory_limit() {
  size_t limit = g_limit.load(std::memory_order_relaxed);
  if (limit != 0) return limit;
  size_t fresh = limit_from_environment();
  if (fresh == 0) fresh = physical_memory() / 5 * 4;
  // someone else may have set it meanwhile: theirs stays
  return g_limit.compare_exchange_strong(limit, fresh) ? fresh : limit;
}

size_t memory_in_use() { return g_in_use.load(std::memory_order_relaxed); }

}  // namespace onnxtrain
