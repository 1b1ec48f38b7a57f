// The vector LSTM cell against its formulas in double.
#include "kernels/simd/lstm.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace onnxtrain::simd {
namespace {

double sigmoid(double v) { return 1 / (1 + std::exp(-v)); }

std::vector<float> numbers(size_t n, int seed) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = float(std::sin(double(i * 7 + size_t(seed) * 13)) * 2);
  return v;
}

TEST(LstmCell, ForwardAndBackward) {
  for (int64_t n : {1, 7, 8, 37}) {
    size_t u = size_t(n);
    std::vector<float> x = numbers(4 * u, 1), z = numbers(4 * u, 2), h = numbers(u, 3),
                       c = numbers(u, 4), save(8 * u), h0 = h, c0 = c, h2 = h, c2 = c;
    lstm_cell(x.data(), z.data(), h.data(), c.data(), save.data(), n);
    lstm_cell(x.data(), z.data(), h2.data(), c2.data(), nullptr, n);
    EXPECT_EQ(h, h2);
    EXPECT_EQ(c, c2);
    std::vector<float> dh = numbers(u, 5), dc = numbers(u, 6), dz(4 * u), dc0 = dc;
    lstm_cell_grad(save.data(), dh.data(), dc.data(), dz.data(), n);
    for (size_t j = 0; j < u; ++j) {
      double i = sigmoid(double(x[j]) + z[j]), o = sigmoid(double(x[u + j]) + z[u + j]),
             f = sigmoid(double(x[2 * u + j]) + z[2 * u + j]),
             g = std::tanh(double(x[3 * u + j]) + z[3 * u + j]);
      double after = f * c0[j] + i * g, t = std::tanh(after);
      EXPECT_NEAR(c[j], after, 1e-6);
      EXPECT_NEAR(h[j], o * t, 1e-6);
      EXPECT_EQ(save[4 * u + j], h0[j]);
      EXPECT_EQ(save[5 * u + j], c0[j]);
      EXPECT_EQ(save[6 * u + j], c[j]);
      EXPECT_NEAR(save[7 * u + j], t, 1e-6);
      double d = dc0[j] + dh[j] * o * (1 - t * t);
      EXPECT_NEAR(dz[j], d * g * i * (1 - i), 2e-6);
      EXPECT_NEAR(dz[u + j], dh[j] * t * o * (1 - o), 2e-6);
      EXPECT_NEAR(dz[2 * u + j], d * c0[j] * f * (1 - f), 2e-6);
      EXPECT_NEAR(dz[3 * u + j], d * i * (1 - g * g), 2e-6);
      EXPECT_NEAR(dc[j], d * f, 2e-6);
    }
  }
}

}  // namespace
}  // namespace onnxtrain::simd
