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

// A sum in a fixed order that compilers vectorise: term(i) for i < n.
template <class C, class F>
C lane_sum(int64_t n, F term) {
  constexpr int kLanes = 8;
  C lane[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int k = 0; k < kLanes; ++k) lane[k] += term(i + k);
  for (int k = 0; i < n; ++i, ++k) lane[k] += term(i);
  for (int step = kLanes / 2; step > 0; step /= 2)
    for (int k = 0; k < step; ++k) lane[k] += lane[k + step];
  return lane[0];
}

}  // namespace onnxtrain::ops
