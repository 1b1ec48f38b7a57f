// A tensor seen as [outer][n][inner], for operators that work along one axis: rows of n elements,
// `inner` apart.
#pragma once
#include <algorithm>
#include <cmath>

#include "op/op.hpp"

namespace onnxtrain::ops {

struct Rows {
  int64_t outer = 1, n = 1, inner = 1;
  // `flat`: all dimensions from the axis on are one row (Softmax before opset 13)
  static Rows along(const Shape& s, int64_t axis, bool flat = false) {
    Rows r;
    r.outer = product(s, 0, size_t(axis));
    r.n = flat ? product(s, size_t(axis), s.size()) : s[size_t(axis)];
    r.inner = flat ? 1 : product(s, size_t(axis) + 1, s.size());
    return r;
  }
  int64_t count() const { return outer * inner; }
  // offset of row i's first element
  int64_t at(int64_t i) const { return inner == 1 ? i * n : i / inner * n * inner + i % inner; }
  int64_t grain() const { return std::max<int64_t>(1, 4096 / std::max<int64_t>(1, n)); }
};

// A sum in a fixed order that compilers vectorise: term(i) for begin <= i < end.
template <class C, class F>
C lane_sum_of(int64_t begin, int64_t end, const F& term) {
  constexpr int kLanes = 8;
  C lane[kLanes] = {};
  int64_t i = begin;
  for (; i + kLanes <= end; i += kLanes)
    for (int k = 0; k < kLanes; ++k) lane[k] += term(i + k);
  for (int k = 0; i < end; ++i, ++k) lane[k] += term(i);
  for (int step = kLanes / 2; step > 0; step /= 2)
    for (int k = 0; k < step; ++k) lane[k] += lane[k + step];
  return lane[0];
}

// Over i < n. Long sums are added in pieces, in double.
template <class C, class F>
C lane_sum(int64_t n, F term) {
  constexpr int64_t kPiece = int64_t(1) << 16;
  if (n <= kPiece) return lane_sum_of<C>(0, n, term);
  double sum = 0;
  for (int64_t at = 0; at < n; at += kPiece)
    sum += double(lane_sum_of<C>(at, n - at < kPiece ? n : at + kPiece, term));
  return C(sum);
}

}  // namespace onnxtrain::ops
