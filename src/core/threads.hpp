// A small thread pool: tasks are numbered by the problem, never by the thread count, so results
// do not depend on how many threads there are.
#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>

namespace onnxtrain {

template <class Sig>
class FunctionRef;
// A non-owning callable (two words); the callee must outlive the call.
template <class R, class... A>
class FunctionRef<R(A...)> {
 public:
  template <class F, class = std::enable_if_t<!std::is_same_v<std::decay_t<F>, FunctionRef>>>
  FunctionRef(F&& f)
      : object_(const_cast<void*>(static_cast<const void*>(&f))), call_([](void* o, A... a) -> R {
          return (*static_cast<std::remove_reference_t<F>*>(o))(static_cast<A&&>(a)...);
        }) {}
  R operator()(A... a) const { return call_(object_, static_cast<A&&>(a)...); }

 private:
  void* object_;
  R (*call_)(void*, A...);
};

class ThreadPool {
 public:
  // threads = 1: everything runs on the caller. Helper threads are started lazily.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  int threads() const;

  // Calls body(0..tasks-1), each once, on the caller and the helpers; returns when all are done.
  // A call from inside a task runs inline. Bodies must not throw.
  void run(int64_t tasks, FunctionRef<void(int64_t)> body);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// Splits [0,n) into pieces of `grain` (the last may be smaller) and runs body(begin, end) on each.
// The split depends on n and grain only.
inline void parallel_for(ThreadPool& pool, int64_t n, int64_t grain,
                         FunctionRef<void(int64_t, int64_t)> body) {
  if (n <= 0) return;
  if (grain < 1) grain = 1;
  int64_t tasks = (n + grain - 1) / grain;
  if (tasks == 1) return body(0, n);
  pool.run(tasks, [&](int64_t t) {
    int64_t b = t * grain, e = b + grain < n ? b + grain : n;
    body(b, e);
  });
}

// The process' default thread count: ONNXTRAIN_THREADS, or the cores this process may use.
int default_threads();

}  // namespace onnxtrain
