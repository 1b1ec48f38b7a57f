// The attention kernels in float against double: blocks of queries that leave out what the causal
// mask hides, windows, grouped heads, a past; the same bits for every number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/ref/attention.hpp"

namespace onnxtrain::kernels {
namespace {

template <class T>
std::vector<T> numbers(int64_t n, int seed) {
  std::vector<T> v(static_cast<size_t>(n));
  for (size_t i = 0; i < v.size(); ++i)
    v[i] = T(float(std::sin(double(i) * 0.7 + double(seed) * 13)));
  return v;
}

AttentionShape shape(int64_t queries, int64_t keys) {
  AttentionShape s;
  s.batch = 2, s.heads = 4, s.kv_heads = 2, s.width = 9, s.value_width = 5;
  s.queries = queries, s.keys = keys, s.past = keys - queries;
  auto packed = [](int64_t heads, int64_t rows, int64_t width) {
    return HeadStrides{rows * heads * width, width, heads * width};
  };
  s.q = packed(s.heads, queries, s.width), s.k = packed(s.kv_heads, keys, s.width);
  s.v = packed(s.kv_heads, keys, s.value_width), s.y = packed(s.heads, queries, s.value_width);
  s.scale = 0.4;
  s.causal = true;
  return s;
}

// y, dq, dk, dv
template <class T>
std::vector<std::vector<T>> both(const AttentionShape& s, int threads) {
  int64_t nq = s.batch * s.queries * s.heads * s.width,
          nk = s.batch * s.keys * s.kv_heads * s.width,
          nv = s.batch * s.keys * s.kv_heads * s.value_width,
          ny = s.batch * s.queries * s.heads * s.value_width;
  auto q = numbers<T>(nq, 1), k = numbers<T>(nk, 2), v = numbers<T>(nv, 3), dy = numbers<T>(ny, 4);
  auto make = [](int64_t n) { return std::vector<T>(static_cast<size_t>(n), T(-7)); };
  std::vector<std::vector<T>> out{make(ny), make(nq), make(nk), make(nv)};
  ThreadPool pool(threads);
  AttentionPlan<T> plan(s, threads);
  std::vector<double> space(std::max(plan.workspace(), plan.grad_workspace()) / 8 + 8);
  void* at = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(space.data()) + 63) / 64 * 64);
  plan.run({q.data(), k.data(), v.data(), nullptr, nullptr, out[0].data(), nullptr}, at, pool);
  plan.grad({dy.data(), q.data(), k.data(), v.data(), nullptr, nullptr, out[1].data(),
             out[2].data(), out[3].data(), nullptr},
            at, pool);
  return out;
}

void compare(AttentionShape s) {
  s.trim = false;
  auto want = both<double>(s, 1);
  for (bool trim : {false, true}) {
    s.trim = trim && s.causal;
    auto got = both<float>(s, 1);
    for (size_t k = 0; k < got.size(); ++k)
      for (size_t i = 0; i < got[k].size(); ++i)
        ASSERT_NEAR(got[k][i], want[k][i], 2e-5) << "result " << k << " at " << i << ", " << trim;
    for (int threads : {2, 4}) EXPECT_EQ(both<float>(s, threads), got) << threads << " threads";
  }
}

TEST(AttentionKernels, CausalBlocks) {
  for (int64_t queries : {1, 63, 64, 150}) {
    compare(shape(queries, queries));
    compare(shape(queries, queries + 70));
  }
}

TEST(AttentionKernels, WindowsAndFull) {
  AttentionShape s = shape(130, 130);
  s.left = 20;
  compare(s);
  s.causal = false;
  s.right = 3;
  compare(s);
  s.left = s.right = -1;
  compare(s);
}

}  // namespace
}  // namespace onnxtrain::kernels
