// The attention kernels in float against double: blocks of queries that leave out what the causal
// mask hides, windows, grouped heads, a past; the same bits for every number of threads.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/random.hpp"
#include "kernels/attention/attention.hpp"

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

// A mask of [batch, 1, queries, keys]: numbers, or which keys are open (item 1: no key for a row).
void set_mask(AttentionShape& s, bool is_bool) {
  s.has_mask = true;
  s.mask_is_bool = is_bool;
  s.mask_keys = s.keys;
  s.mask_stride[0] = s.queries * s.keys, s.mask_stride[2] = s.keys, s.mask_stride[3] = 1;
}
template <class T>
std::vector<char> mask_of(const AttentionShape& s) {
  const int64_t n = s.batch * s.queries * s.keys;
  std::vector<char> m(size_t(n) * sizeof(T));
  for (int64_t i = 0; i < n; ++i)
    if (s.mask_is_bool)
      m[size_t(i)] = i % 3 != 0 && i / s.keys != s.queries + 1;
    else
      reinterpret_cast<T*>(m.data())[i] = T(float(std::cos(double(i))));
  return m;
}

// y, dq, dk, dv; the gradient with or without what the forward run kept for it
template <class T>
std::vector<std::vector<T>> both(const AttentionShape& s, int threads, bool keep = false) {
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
  std::vector<char> mask = mask_of<T>(s);
  std::vector<T> stats(static_cast<size_t>(2 * s.batch * s.heads * s.queries));
  const DropCounter drop{7, 8, 9};
  plan.run({q.data(), k.data(), v.data(), mask.data(), nullptr, out[0].data(), nullptr, drop,
            stats.data()},
           at, pool);
  plan.grad({dy.data(), q.data(), k.data(), v.data(), mask.data(), nullptr, out[1].data(),
             out[2].data(), out[3].data(), nullptr, drop, keep ? stats.data() : nullptr},
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
    EXPECT_EQ(both<float>(s, 1, true), got) << "with what the forward run kept";
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

TEST(AttentionKernels, MasksAndDropout) {
  for (float ratio : {0.0f, 0.25f})
    for (bool causal : {false, true}) {
      AttentionShape s = shape(70, 70);
      s.causal = causal;
      s.ratio = ratio;
      compare(s);
      set_mask(s, false);
      compare(s);
      set_mask(s, true);
      compare(s);
      s.open_is = false;
      s.fill = -1.5;  // closed keys keep some weight, but get no gradient
      compare(s);
    }
}

// Which probabilities are dropped is what Dropout over [batch, heads, queries, keys] drops.
TEST(AttentionKernels, DropoutByTheCounter) {
  AttentionShape s = shape(5, 7);
  s.causal = false;
  s.past = 0;
  s.scale = 0;  // every key has weight 1/7
  s.ratio = 0.4f;
  const int64_t rows = s.batch * s.heads * s.queries;
  s.value_width = s.keys;
  s.v = {s.kv_heads * s.keys * s.keys, s.keys * s.keys, s.keys};  // values: one key each
  s.y = {s.heads * s.queries * s.keys, s.queries * s.keys, s.keys};
  std::vector<float> zero(1000, 0.0f), v(static_cast<size_t>(s.batch * s.kv_heads * 49), 0.0f),
      y(static_cast<size_t>(rows * s.keys)), u(y.size());
  for (size_t i = 0; i < v.size(); ++i) v[i] = i % 49 % 8 == 0 ? 1.0f : 0.0f;
  ThreadPool pool(1);
  AttentionPlan<float> plan(s, 1);
  std::vector<double> space(plan.workspace() / 8 + 16);
  void* at = reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(space.data()) + 63) / 64 * 64);
  plan.run({zero.data(), zero.data(), v.data(), nullptr, nullptr, y.data(), nullptr, {3, 4, 5}}, at,
           pool);
  onnxtrain::philox_uniform(3, 4, 5, 0, int64_t(u.size()), u.data());
  for (size_t i = 0; i < u.size(); ++i)
    EXPECT_NEAR(y[i], u[i] >= 0.4f ? 1 / (7 * 0.6) : 0, 1e-6) << i;
}

}  // namespace
}  // namespace onnxtrain::kernels
