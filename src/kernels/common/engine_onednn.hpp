// What all oneDNN kernels of ours share: the engine, single-threaded execution inside our own
// tasks, and scratch slots. Private to this folder: the only one that sees oneDNN's headers.
#pragma once
#include <vector>

#include "kernels/common/slots.hpp"
#include "oneapi/dnnl/dnnl.hpp"

// From OpenMP's runtime; declared here because clang has no omp.h beside GCC's runtime.
extern "C" int omp_get_max_threads();
extern "C" void omp_set_num_threads(int);

namespace onnxtrain::onednn {

using kernels::Slots;

const dnnl::engine& cpu();

// oneDNN splits work by OpenMP's thread count. Ours is split by the problem before, so everything
// of oneDNN is made and run with one thread; the caller's setting comes back at the end of the
// scope.
class SingleThread {
 public:
  SingleThread() : before_(omp_get_max_threads()) {
    if (before_ != 1) omp_set_num_threads(1);
  }
  ~SingleThread() {
    if (before_ != 1) omp_set_num_threads(before_);
  }
  SingleThread(const SingleThread&) = delete;

 private:
  int before_;
};

// A primitive with its operands: made once, then only pointers change.
class Call {
 public:
  Call() = default;
  Call(const dnnl::primitive& p, const std::vector<std::pair<int, dnnl::memory::desc>>& operands);
  explicit operator bool() const { return bool(primitive_); }
  // Pointers in the order of the operands given at construction.
  void run(std::initializer_list<const void*> pointers);

 private:
  dnnl::primitive primitive_;
  dnnl::stream stream_;
  std::vector<dnnl::memory> memories_;
  std::vector<dnnl_exec_arg_t> args_;
};

// A reorder, or an empty call when the two are the same.
Call make_reorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to);

inline size_t aligned(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace onnxtrain::onednn
