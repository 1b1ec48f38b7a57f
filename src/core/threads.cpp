// The thread pool. One job at a time: the caller opens it, helpers join while it is open, and
// everybody takes task numbers from one counter. Nobody ever waits for a helper that has not
// joined, so a helper the system does not schedule costs nothing but its share of the work.
#include "core/threads.hpp"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <system_error>
#include <thread>
#include <vector>

#include "core/error.hpp"
#include "core/relax.hpp"
#include "core/thread_count.hpp"

namespace onnxtrain {
namespace {

using Clock = std::chrono::steady_clock;

// A helper that finds nothing for this long goes to sleep; a caller that waits for a running
// helper sleeps after the same time. Long enough to bridge the gaps between the kernels of a step.
constexpr auto kSpin = std::chrono::microseconds(300);
constexpr auto kSpinCrowded = std::chrono::microseconds(2);  // more threads than cores
// A helper is sent to another core no more often than this.
constexpr auto kMoveEvery = std::chrono::milliseconds(1);

thread_local bool inside_task = false;

// Counts forks seen by this process: after a fork the child has none of the parent's helpers.
std::atomic<uint32_t> fork_count{0};
void watch_forks() {
  static const int once = pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1); });
  (void)once;
}

void futex_wait(std::atomic<uint32_t>& word, uint32_t expected) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAIT_PRIVATE, expected, nullptr,
          nullptr, 0);
}
void futex_wake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, reinterpret_cast<uint32_t*>(&word), FUTEX_WAKE_PRIVATE, count, nullptr,
          nullptr, 0);
}

// Spins until done() or the time is over; returns done().
template <class F>
bool spin_until(Clock::duration limit, F done) {
  if (done()) return true;
  Clock::time_point end{};
  for (;;) {
    for (int i = 0; i < 16; ++i) {
      relax();
      if (done()) return true;
    }
    auto now = Clock::now();
    if (end == Clock::time_point{}) end = now + limit;
    if (now >= end) return false;
  }
}

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) {
    int n = CPU_COUNT(&set);
    if (n > 0) return n;
  }
  return std::max(1, int(std::thread::hardware_concurrency()));
}

// Where helpers run. A system that wakes a helper on the caller's core lets it wait there for the
// end of the caller's time slice, several milliseconds, while other cores are idle; nothing in user
// space shows that but the core's number.
class Places {
 public:
  explicit Places(int helpers)
      : cores_(new std::atomic<int>[size_t(helpers)]), helpers_(new Helper[size_t(helpers)]) {
    for (int i = 0; i < helpers; ++i) cores_[size_t(i)] = -1;
  }
  // By helper i: at its start, whenever it begins or ends to work.
  void arrive(int i) { helpers_[size_t(i)].id.store(pid_t(syscall(SYS_gettid))); }
  void here(int i) {
    Helper& h = helpers_[size_t(i)];
    if (h.moved.load(std::memory_order_acquire)) {  // it is where it should be; free it again
      sched_setaffinity(0, sizeof h.allowed, &h.allowed);
      h.moved.store(false, std::memory_order_release);
    }
    const int core = sched_getcpu();
    if (cores_[size_t(i)].load(std::memory_order_relaxed) != core)
      cores_[size_t(i)].store(core, std::memory_order_relaxed);
  }
  // By the caller of the first `count` helpers: none of them shall be on its core.
  void make_way(int count) {
    const int core = sched_getcpu();
    for (int i = 0; i < count; ++i)
      if (cores_[size_t(i)].load(std::memory_order_relaxed) == core) send_away(i, core);
  }

 private:
  struct alignas(64) Helper {
    std::atomic<pid_t> id{0};
    std::atomic<bool> moved{false};
    cpu_set_t allowed;  // before it was moved
  };
  void send_away(int i, int core) {
    Helper& h = helpers_[size_t(i)];
    const auto now = Clock::now();
    if (core < 0 || now - last_ < kMoveEvery || h.moved.load(std::memory_order_acquire)) return;
    last_ = now;
    cpu_set_t others;
    const pid_t id = h.id.load();
    if (id == 0 || sched_getaffinity(id, sizeof others, &others) != 0) return;
    h.allowed = others;
    if (core >= CPU_SETSIZE || !CPU_ISSET(core, &others) || CPU_COUNT(&others) < 2) return;
    CPU_CLR(core, &others);
    cores_[size_t(i)].store(-1, std::memory_order_relaxed);
    if (sched_setaffinity(id, sizeof others, &others) == 0)
      h.moved.store(true, std::memory_order_release);
  }

  std::unique_ptr<std::atomic<int>[]> cores_;
  std::unique_ptr<Helper[]> helpers_;
  Clock::time_point last_{};
};

}  // namespace

struct ThreadPool::Impl {
  // state: bit 31 job open, bit 30 caller sleeps, bits 16..29 job number, bits 0..15 joined helpers
  static constexpr uint32_t kOpen = 1u << 31, kSleeping = 1u << 30, kActive = 0xffff;
  static constexpr uint32_t kJobMask = 0x3fff0000, kJobStep = 1u << 16;

  int threads = 1;
  bool started = false;
  std::atomic<uint32_t> forks{0};
  Clock::duration spin = kSpin;
  std::atomic<bool> busy{false};
  // Leaked on purpose in a forked child, where the threads behind it do not exist.
  std::vector<std::thread>* helpers = nullptr;
  std::unique_ptr<Places> places;  // null: more threads than cores

  alignas(64) std::atomic<uint32_t> state{0};
  const FunctionRef<void(int64_t)>* body = nullptr;
  int64_t tasks = 0;
  alignas(64) std::atomic<int64_t> next{0};
  alignas(64) std::atomic<bool> sleepers{false};  // set by a helper that goes to sleep
  std::atomic<uint32_t> wake_word{0};
  std::atomic<bool> stop{false};

  void work() {
    for (int64_t t; (t = next.fetch_add(1, std::memory_order_relaxed)) < tasks;) (*body)(t);
  }

  // Joins the open job unless it is the one already seen; true when it joined.
  bool join(uint32_t& seen) {
    uint32_t s = state.load(std::memory_order_acquire);
    while ((s & kOpen) && (s & kJobMask) != seen) {
      if (state.compare_exchange_weak(s, s + 1, std::memory_order_acq_rel)) {
        seen = s & kJobMask;
        return true;
      }
    }
    return false;
  }

  void leave() {
    uint32_t old = state.fetch_sub(1, std::memory_order_acq_rel);
    if ((old & kActive) == 1 && (old & kSleeping)) futex_wake(state, 1);
  }

  void help(int number) {
    inside_task = true;  // whatever a task starts runs inline
    if (places) places->arrive(number);
    uint32_t seen = ~0u;
    for (;;) {
      bool joined = false;
      spin_until(spin, [&] {
        joined = join(seen);
        return joined || stop.load(std::memory_order_relaxed);
      });
      if (!joined) {
        if (stop.load()) return;
        uint32_t word = wake_word.load();
        sleepers.store(true);
        joined = join(seen);  // a job opened before the caller could see us asleep
        if (!joined && !stop.load()) futex_wait(wake_word, word);
        if (!joined) continue;
      }
      if (places) places->here(number);
      work();
      if (places) places->here(number);
      leave();
    }
  }

  // One system call per sleep, not per job: when all are woken nobody is left to wake.
  void wake(int64_t job_tasks) {
    if (job_tasks >= threads) sleepers.store(false);
    wake_word.fetch_add(1);
    futex_wake(wake_word, int(std::min<int64_t>(job_tasks, threads) - 1));
  }

  void start() {
    started = true;
    forks = fork_count.load();
    const bool crowded = threads > usable_cores();
    spin = crowded ? kSpinCrowded : kSpin;
    places = crowded ? nullptr : std::make_unique<Places>(threads - 1);
    helpers = new std::vector<std::thread>;
    // Signals belong to the caller's threads, but for those that a thread raises itself: blocked,
    // they end the process past every handler (core/mapped.cpp has one).
    sigset_t all, old;
    sigfillset(&all);
    for (int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL}) sigdelset(&all, own);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    try {
      for (int i = 1; i < threads; ++i) helpers->emplace_back([this, i] { help(i - 1); });
    } catch (const std::system_error&) {
      // The system gives no more threads: fewer helpers, same results.
    }
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
  }

  // In a forked child: forget the parent's helpers and whatever they were doing.
  void forget() {
    helpers = nullptr;
    started = false;
    state = 0;
    sleepers = false;
    busy = false;
  }

  bool stale() const { return forks != fork_count.load(std::memory_order_relaxed); }

  void finish() {
    if (!started || stale()) return;
    stop = true;
    wake_word.fetch_add(1);
    futex_wake(wake_word, INT_MAX);
    for (auto& t : *helpers) t.join();
    delete helpers;
  }
};

ThreadPool::ThreadPool(int threads) : impl_(new Impl) {
  watch_forks();
  impl_->threads = std::clamp(threads, 1, 1024);
  impl_->forks = fork_count.load();
}

ThreadPool::~ThreadPool() { impl_->finish(); }

int ThreadPool::threads() const { return impl_->threads; }

void ThreadPool::run(int64_t tasks, FunctionRef<void(int64_t)> body) {
  Impl& p = *impl_;
  auto inline_run = [&] {
    for (int64_t t = 0; t < tasks; ++t) body(t);
  };
  if (tasks <= 1 || p.threads == 1 || inside_task) return inline_run();
  if (p.stale()) {
    p.forget();
    p.forks = fork_count.load();
  }
  if (p.busy.exchange(true, std::memory_order_acquire))
    return inline_run();  // another caller's job
  if (!p.started) p.start();

  p.body = &body;
  p.tasks = tasks;
  p.next.store(0, std::memory_order_relaxed);
  uint32_t job = (p.state.load(std::memory_order_relaxed) + Impl::kJobStep) & Impl::kJobMask;
  p.state.store(job | Impl::kOpen);
  if (p.places) p.places->make_way(int(std::min<int64_t>(tasks, p.threads) - 1));
  if (p.sleepers.load()) p.wake(tasks);
  inside_task = true;
  p.work();
  inside_task = false;

  uint32_t s = p.state.fetch_and(~Impl::kOpen, std::memory_order_acq_rel);
  if (s & Impl::kActive) {
    auto idle = [&] { return (p.state.load(std::memory_order_acquire) & Impl::kActive) == 0; };
    while (!spin_until(p.spin, idle)) {
      s = p.state.fetch_or(Impl::kSleeping, std::memory_order_acq_rel) | Impl::kSleeping;
      if (s & Impl::kActive) futex_wait(p.state, s);
    }
  }
  p.busy.store(false, std::memory_order_release);
}

namespace {

int most_threads() {
  return std::max(64, 4 * std::max(1, int(std::thread::hardware_concurrency())));
}

}  // namespace

int default_threads() {
  const char* v = std::getenv("ONNXTRAIN_THREADS");
  if (!v || !*v) return usable_cores();
  char* end = nullptr;
  const long n = std::strtol(v, &end, 10);
  if (end == v || *end != 0 || n < 0 || n > most_threads())
    usage_error("OT0008",
                cat("environment variable ONNXTRAIN_THREADS: '", v, "' is not a number from 0 to ",
                    most_threads()),
                cat("for example ONNXTRAIN_THREADS=", usable_cores(),
                    ", or remove it: unset ONNXTRAIN_THREADS"));
  return n == 0 ? usable_cores() : int(n);
}

int thread_count(int asked) {
  if (asked == 0) return default_threads();
  const int cores = std::max(1, int(std::thread::hardware_concurrency()));
  if (asked < 0 || asked > most_threads())
    usage_error("OT0003",
                cat("--threads ", asked, " is outside 0..", most_threads(), ": this machine has ",
                    cores, cores == 1 ? " core" : " cores"),
                cat("--threads ", default_threads(), ", or leave it out"));
  return asked;
}

}  // namespace onnxtrain
