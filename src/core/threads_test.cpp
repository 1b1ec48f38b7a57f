#include "core/threads.hpp"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

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

std::atomic<int> hook_calls{0};
TEST(Threads, StartHookOncePerHelper) {
  ThreadPool::set_thread_start_hook([] { hook_calls++; });
  {
    ThreadPool pool(4);
    pool.run(64, [](int64_t) {});
    pool.run(64, [](int64_t) {});
  }
  ThreadPool::set_thread_start_hook(nullptr);
  EXPECT_EQ(hook_calls.load(), 3);
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

TEST(Threads, DefaultFromEnvironment) {
  setenv("ONNXTRAIN_THREADS", "3", 1);
  EXPECT_EQ(default_threads(), 3);
  setenv("ONNXTRAIN_THREADS", "many", 1);
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

// Not a pass/fail figure: machines differ. Shown so that a regression is seen.
TEST(Threads, CostOfEmptyRun) {
  ThreadPool pool(2);
  for (int i = 0; i < 1000; ++i) pool.run(2, [](int64_t) {});
  auto t0 = std::chrono::steady_clock::now();
  constexpr int kRuns = 100000;
  for (int i = 0; i < kRuns; ++i) pool.run(2, [](int64_t) {});
  std::chrono::duration<double, std::nano> d = std::chrono::steady_clock::now() - t0;
  std::printf("empty run on 2 threads: %.0f ns\n", d.count() / kRuns);
}

}  // namespace
}  // namespace onnxtrain
