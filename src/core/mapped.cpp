// A table that the signal handler can read without a lock.
#include "core/mapped.hpp"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdint>
#include <mutex>
#include <string>

#include "core/error.hpp"

namespace onnxtrain {
namespace {

struct Watched {
  std::atomic<uintptr_t> begin{0}, end{0};  // begin is 0 when free
  std::atomic<bool> lost{false};
  std::string path;  // not for the handler
};

constexpr size_t kMost = 256;
Watched g_watched[kMost];
std::mutex g_mutex;                // for all but the handler
std::atomic<int> g_lost{0};        // how many are marked
struct sigaction g_before = {};    // what SIGBUS did before
std::atomic<uintptr_t> g_page{0};  // bytes of one

// Zeros from the missing page to the end of the mapping.
bool replace(uintptr_t address) {
  for (Watched& w : g_watched) {
    const uintptr_t begin = w.begin.load(), end = w.end.load();
    if (begin == 0 || address < begin || address >= end) continue;
    const uintptr_t page = g_page.load(), from = address / page * page;
    void* p = mmap(reinterpret_cast<void*>(from), end - from, PROT_READ,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return false;
    if (!w.lost.exchange(true)) g_lost.fetch_add(1);
    return true;
  }
  return false;
}

void on_bus_error(int number, siginfo_t* info, void* context) {
  const int kept = errno;
  if (replace(reinterpret_cast<uintptr_t>(info->si_addr))) {
    errno = kept;
    return;
  }
  // not ours: as if we were not here; the access is repeated
  if ((g_before.sa_flags & SA_SIGINFO) != 0 && g_before.sa_sigaction != nullptr)
    g_before.sa_sigaction(number, info, context);
  else if (g_before.sa_handler != SIG_DFL && g_before.sa_handler != SIG_IGN)
    g_before.sa_handler(number);
  else
    signal(number, SIG_DFL);
}

// Somebody may have put another handler in place since the last mapping.
void install() {
  struct sigaction now = {};
  if (sigaction(SIGBUS, nullptr, &now) != 0) return;
  if ((now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_bus_error) return;
  g_before = now;
  struct sigaction ours = {};
  ours.sa_sigaction = on_bus_error;
  ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigemptyset(&ours.sa_mask);
  sigaction(SIGBUS, &ours, nullptr);
}

}  // namespace

bool watch_mapping(const void* begin, size_t bytes, const char* path) {
  std::lock_guard lock(g_mutex);
  if (g_page.load() == 0) g_page.store(uintptr_t(sysconf(_SC_PAGESIZE)));
  install();
  for (Watched& w : g_watched) {
    if (w.begin.load() != 0) continue;
    w.path = path;
    w.lost.store(false);
    w.end.store(reinterpret_cast<uintptr_t>(begin) + bytes);
    w.begin.store(reinterpret_cast<uintptr_t>(begin));
    return true;
  }
  return false;
}

void unwatch_mapping(const void* begin) {
  std::lock_guard lock(g_mutex);
  for (Watched& w : g_watched) {
    if (w.begin.load() != reinterpret_cast<uintptr_t>(begin)) continue;
    w.begin.store(0);
    if (w.lost.exchange(false)) g_lost.fetch_sub(1);
  }
}

void drop_mapped_pages(const void* begin, size_t bytes) {
  std::lock_guard lock(g_mutex);
  const uintptr_t first = reinterpret_cast<uintptr_t>(begin), page = g_page.load();
  for (const Watched& w : g_watched) {
    if (w.begin.load() == 0 || first < w.begin.load() || first + bytes > w.end.load()) continue;
    const uintptr_t from = (first + page - 1) / page * page, to = (first + bytes) / page * page;
    if (from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_DONTNEED);
  }
}

void check_mapped_files() {
  if (g_lost.load(std::memory_order_relaxed) == 0) return;
  std::lock_guard lock(g_mutex);
  for (const Watched& w : g_watched)
    if (w.begin.load() != 0 && w.lost.load())
      throw Error(ErrorKind::kModel, "OT4005",
                  cat("'", w.path, "' was cut short while the model that it belongs to was in use"),
                  "put the file back and load the model again");
}

}  // namespace onnxtrain
