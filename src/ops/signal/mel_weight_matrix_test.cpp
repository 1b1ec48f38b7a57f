// Values of MelWeightMatrix against the standard's formula.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(MelWeightMatrix, Values) {
  const int64_t bins = 4, length = 32, rows = length / 2 + 1;
  const double rate = 8192, low_hz = 0, high_hz = 4096;
  auto mel = [](double hz) { return 2595 * std::log10(1 + hz / 700); };
  std::vector<int64_t> edge;
  for (int64_t k = 0; k < bins + 2; ++k) {
    double at = mel(low_hz) + double(k) * (mel(high_hz) - mel(low_hz)) / double(bins + 2);
    edge.push_back(
        int64_t(std::floor(double(length + 1) * 700 * (std::pow(10, at / 2595) - 1) / rate)));
  }
  std::vector<float> want(size_t(rows * bins), 0.0f);
  for (int64_t b = 0; b < bins; ++b) {
    const int64_t left = edge[size_t(b)], top = edge[size_t(b) + 1], right = edge[size_t(b) + 2];
    for (int64_t r = left; r < right; ++r) {
      float& w = want[size_t(r * bins + b)];
      if (r < top) w = float(double(r - left) / double(top - left));
      if (r >= top) w = float(double(right - r) / double(right - top));
    }
    if (top == left) want[size_t(top * bins + b)] = 1;
  }
  auto whole = [](int64_t v) { return Tensor::scalar<int64_t>(v); };
  OpCase("MelWeightMatrix", 17)
      .input(whole(bins))
      .input(whole(length))
      .input(whole(int64_t(rate)))
      .input(Tensor::scalar<float>(float(low_hz)))
      .input(Tensor::scalar<float>(float(high_hz)))
      .expect(floats(want, {rows, bins}));
  double sum = 0;
  for (float w : want) sum += double(w);
  EXPECT_GT(sum, 3);  // the expectation is no empty table
}

}  // namespace onnxtrain::testing
