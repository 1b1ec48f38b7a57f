// Shared by MatMul, Gemm and their integer relatives: how operands are laid out and the plain loop.
#pragma once
#include <algorithm>
#include <memory>

#include "core/counted.hpp"
#include "op/op.hpp"

namespace onnxtrain::ops {

// A batch of GEMMs y[m,n] = a[m,k] * b[k,n], with operands that may be transposed in their last
// two dimensions and broadcast over the leading ones.
struct MatMulLayout {
  int64_t m = 1, n = 1, k = 1, batch = 1;
  bool trans_a = false, trans_b = false;
  CountedVector<int64_t> at_a, at_b;  // offset of each item of the batch
  Shape out;
  // trans flags refer to operands of rank 2 and more; a vector is a row on the left, a column on
  // the right, and leaves no dimension.
  MatMulLayout(const Shape& a, const Shape& b, bool trans_a, bool trans_b);
};
Shape matmul_shape_of(const Shape& a, const Shape& b, bool trans_a = false, bool trans_b = false);

// acc(row pointers) loop for any types: Load* turn elements into A; store takes (index, A).
template <class A, class LoadA, class LoadB, class Store>
void matmul_loop(ThreadPool& pool, const MatMulLayout& l, LoadA load_a, LoadB load_b, Store store) {
  constexpr int64_t kColumns = 128;
  int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, l.n * l.k));
  int64_t ra = l.trans_a ? 1 : l.k, ca = l.trans_a ? l.m : 1;  // strides of op(A)
  int64_t rb = l.trans_b ? 1 : l.n, cb = l.trans_b ? l.k : 1;
  parallel_for(pool, l.batch * l.m, grain, [&](int64_t begin, int64_t end) {
    A acc[kColumns];
    for (int64_t row = begin; row < end; ++row) {
      int64_t item = row / l.m, i = row % l.m;
      int64_t a = l.at_a[size_t(item)] + i * ra, b = l.at_b[size_t(item)];
      for (int64_t j0 = 0; j0 < l.n; j0 += kColumns) {
        int64_t n = std::min(kColumns, l.n - j0);
        std::fill_n(acc, n, A(0));
        for (int64_t p = 0; p < l.k; ++p) {
          A va = load_a(a + p * ca, i);
          int64_t at = b + p * rb + j0 * cb;
          for (int64_t j = 0; j < n; ++j) acc[j] += va * load_b(at + j * cb, j0 + j);
        }
        for (int64_t j = 0; j < n; ++j) store(row * l.n + j0 + j, acc[j]);
      }
    }
  });
}

}  // namespace onnxtrain::ops
