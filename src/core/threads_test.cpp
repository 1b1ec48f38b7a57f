#include "core/threads.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "core/error.hpp"

namespace onnxtrain {
namespace {

TEST(Threads, EveryTaskRunsOnce) {
  for (int threads : {1, 2, 3, 4, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t tasks : {0, 1, 2, 3, 7, 64, 1000}) {
      for (int round = 0; round < 50; ++round) {
        std::vector<std::atomic<int>> seen(static_cast<size_t>(tasks));
        pool.run(tasks, [&](int64_t t) { seen[static_cast<size_t>(t)]++; });
        for (auto& s : seen) ASSERT_EQ(s.load(), 1);
      }
    }
  }
}

TEST(Threads, ManyShortJobs) {
  ThreadPool pool(4);
  int64_t sum = 0;
  std::vector<int64_t> part(5);
  for (int job = 0; job < 100000; ++job) {
    pool.run(5, [&](int64_t t) { part[size_t(t)] = job + t; });
    for (auto p : part) sum += p;
  }
  int64_t want = 0;
  for (int64_t job = 0; job < 100000; ++job) want += 5 * job + 10;
  EXPECT_EQ(sum, want);
}

TEST(Threads, WakesAfterSleep) {
  ThreadPool pool(3);
  for (int i = 0; i < 20; ++i) {
    std::atomic<int> n{0};
    pool.run(8, [&](int64_t) { n++; });
    EXPECT_EQ(n.load(), 8);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

TEST(Threads, LongTaskOnHelperIsAwaited) {
  ThreadPool pool(2);
  for (int i = 0; i < 10; ++i) {
    std::atomic<int> n{0};
    pool.run(4, [&](int64_t) {
      std::this_thread::sleep_for(std::chrono::milliseconds(3));
      n++;
    });
    EXPECT_EQ(n.load(), 4);
  }
}

TEST(Threads, NestedRunsInline) {
  ThreadPool pool(4), other(4);
  std::atomic<int> n{0};
  pool.run(6, [&](int64_t) {
    auto self = std::this_thread::get_id();
    pool.run(5, [&](int64_t) { n += std::this_thread::get_id() == self; });
    other.run(5, [&](int64_t) { n += std::this_thread::get_id() == self; });
  });
  EXPECT_EQ(n.load(), 60);
}

TEST(Threads, SeveralCallers) {
  ThreadPool pool(2);
  std::atomic<int64_t> n{0};
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c) {
    callers.emplace_back([&] {
      for (int i = 0; i < 2000; ++i) pool.run(7, [&](int64_t) { n++; });
    });
  }
  for (auto& c : callers) c.join();
  EXPECT_EQ(n.load(), 3 * 2000 * 7);
}

TEST(Threads, ChildAfterForkWorks) {
#ifdef __SANITIZE_THREAD__
  GTEST_SKIP() << "the thread sanitizer cannot start threads after a fork";
#endif
  ThreadPool pool(3);
  std::atomic<int> n{0};
  pool.run(8, [&](int64_t) { n++; });
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    std::atomic<int> m{0};
    for (int i = 0; i < 100; ++i) pool.run(9, [&](int64_t) { m++; });
    _exit(m.load() == 900 ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  pool.run(8, [&](int64_t) { n++; });
  EXPECT_EQ(n.load(), 16);
}

TEST(Threads, DestroyedInChildDoesNotHang) {
  auto* pool = new ThreadPool(3);
  pool->run(8, [](int64_t) {});
  pid_t child = fork();
  if (child == 0) {
    alarm(20);
    delete pool;
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  delete pool;
}

// One helper and the caller, both inside a task at the same time.
struct Meeting {
  ThreadPool pool{2};
  pid_t helper = 0;
  int helper_core = -1;
  cpu_set_t helper_may = {};
  void run() {
    const pid_t caller = pid_t(syscall(SYS_gettid));
    std::atomic<int> here{0};
    pool.run(2, [&](int64_t) {
      if (pid_t(syscall(SYS_gettid)) != caller) {
        helper = pid_t(syscall(SYS_gettid));
        helper_core = sched_getcpu();
        sched_getaffinity(0, sizeof helper_may, &helper_may);
      }
      for (++here; here < 2;) std::this_thread::yield();
    });
  }
};

TEST(Threads, HelperLeavesTheCallersCoreAndKeepsItsMask) {
  cpu_set_t all, one, two;
  sched_getaffinity(0, sizeof all, &all);
  if (CPU_COUNT(&all) < 2) GTEST_SKIP() << "one core";
  CPU_ZERO(&one);
  CPU_ZERO(&two);
  int first = 0;
  while (!CPU_ISSET(first, &all)) ++first;
  CPU_SET(first, &one);
  CPU_SET(first, &two);
  int second = first + 1;
  while (!CPU_ISSET(second, &all)) ++second;
  CPU_SET(second, &two);

  Meeting m;
  m.run();
  ASSERT_NE(m.helper, 0);
  sched_setaffinity(0, sizeof one, &one);  // the caller stays on the first core
  sched_setaffinity(m.helper, sizeof one, &one);
  for (int k = 0; k < 3; ++k) {  // a helper that may be nowhere else is left there
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    m.run();
    EXPECT_EQ(m.helper_core, first);
    EXPECT_TRUE(CPU_EQUAL(&m.helper_may, &one));
  }
  sched_setaffinity(m.helper, sizeof two, &two);
  bool away = false;
  for (int k = 0; k < 200 && !away; ++k) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    m.run();
    away = m.helper_core == second;
    EXPECT_TRUE(CPU_EQUAL(&m.helper_may, &two));
  }
  EXPECT_TRUE(away);
  sched_setaffinity(0, sizeof all, &all);
}

TEST(Threads, DefaultFromEnvironment) {
  setenv("ONNXTRAIN_THREADS", "3", 1);
  EXPECT_EQ(default_threads(), 3);
  for (const char* wrong : {"many", "-2", "2.5", "100000"}) {
    setenv("ONNXTRAIN_THREADS", wrong, 1);
    EXPECT_THROW(default_threads(), Error) << wrong;
  }
  setenv("ONNXTRAIN_THREADS", "0", 1);
  EXPECT_GE(default_threads(), 1);
  unsetenv("ONNXTRAIN_THREADS");
  EXPECT_GE(default_threads(), 1);
}

TEST(Threads, ParallelForSplitsByGrain) {
  ThreadPool pool(2);
  std::vector<std::atomic<int>> hit(1000);
  parallel_for(pool, 1000, 64, [&](int64_t b, int64_t e) {
    EXPECT_EQ(b % 64, 0);
    for (int64_t i = b; i < e; ++i) hit[size_t(i)]++;
  });
  for (auto& h : hit) EXPECT_EQ(h.load(), 1);
}

// Every part of very many short runs happens; their cost is shown, machines differ.
TEST(Threads, ManyShortRuns) {
  ThreadPool pool(2);
  constexpr int kRuns = 100000;
  std::atomic<int64_t> calls{0}, sum{0};
  auto t0 = std::chrono::steady_clock::now();
  for (int i = 0; i < kRuns; ++i)
    pool.run(2, [&](int64_t k) {
      calls.fetch_add(1, std::memory_order_relaxed);
      sum.fetch_add(k, std::memory_order_relaxed);
    });
  std::chrono::duration<double, std::nano> d = std::chrono::steady_clock::now() - t0;
  EXPECT_EQ(calls.load(), 2 * kRuns);
  EXPECT_EQ(sum.load(), kRuns);
  std::printf("short run on 2 threads: %.0f ns\n", d.count() / kRuns);
}

}  // namespace
}  // namespace onnxtrain
