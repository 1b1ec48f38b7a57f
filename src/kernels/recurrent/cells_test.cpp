// The vector cells against their formulas in double.
#include "kernels/recurrent/cells.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace onnxtrain::simd {
namespace {

double logistic(double v) { return 1 / (1 + std::exp(-v)); }

std::vector<float> numbers(size_t n, int seed) {
  std::vector<float> v(n);
  for (size_t i = 0; i < n; ++i) v[i] = float(std::sin(double(i * 7 + size_t(seed) * 13)) * 2);
  return v;
}

// n units inside rows that are a little longer.
struct Memory {
  size_t u, stride;
  std::vector<float> x, z, before, h, y, c, reset, c0, save, dh, sent, dy, dh0, dc, dc0, dz;
  explicit Memory(int64_t n)
      : u(size_t(n)),
        stride(u + 3),
        x(numbers(4 * stride, 1)),
        z(numbers(4 * stride, 2)),
        before(numbers(u, 3)),
        h(u),
        y(u),
        c(numbers(u, 4)),
        reset(u),
        c0(c),
        save(8 * stride),
        dh(numbers(u, 5)),
        sent(numbers(u, 10)),
        dy(numbers(u, 11)),
        dh0(u),
        dc(numbers(u, 6)),
        dc0(dc),
        dz(4 * stride) {
    for (size_t j = 0; j < u; ++j) dh0[j] = dh[j] + sent[j] + dy[j];
  }
  CellRow row() {
    int64_t s = int64_t(stride);
    CellRow r;
    r.n = int64_t(u), r.x = x.data(), r.x_stride = s, r.z = z.data(), r.z_stride = s;
    r.h_before = before.data(), r.h = h.data(), r.y = y.data(), r.c = c.data();
    r.reset = reset.data(), r.save = save.data(), r.save_stride = s;
    return r;
  }
  CellGradRow grad() {
    int64_t s = int64_t(stride);
    return {int64_t(u), save.data(), s, dh.data(), sent.data(), dy.data(), dc.data(), dz.data(), s};
  }
  double in(size_t gate, size_t j) const {
    return double(x[gate * stride + j]) + z[gate * stride + j];
  }
  double saved(size_t k, size_t j) const { return save[k * stride + j]; }
  double out(size_t k, size_t j) const { return dz[k * stride + j]; }
};
constexpr int64_t kSizes[] = {1, 7, 8, 16, 37};

TEST(Cells, Lstm) {
  for (int64_t n : kSizes) {
    Memory m(n), plain(n);
    CellRow both[2] = {m.row(), plain.row()};
    both[1].save = both[1].y = nullptr;
    lstm_cells(both, 2);
    EXPECT_EQ(m.h, plain.h);
    EXPECT_EQ(m.h, m.y);
    EXPECT_EQ(m.c, plain.c);
    lstm_cell_grad(m.grad());
    for (size_t j = 0; j < m.u; ++j) {
      double i = logistic(m.in(0, j)), o = logistic(m.in(1, j)), f = logistic(m.in(2, j)),
             g = std::tanh(m.in(3, j)), before = m.c0[j];
      double after = f * before + i * g, t = std::tanh(after);
      EXPECT_NEAR(m.c[j], after, 1e-6);
      EXPECT_NEAR(m.h[j], o * t, 1e-6);
      EXPECT_EQ(m.saved(4, j), m.before[j]);
      EXPECT_EQ(m.saved(5, j), before);
      EXPECT_EQ(m.saved(6, j), m.c[j]);
      EXPECT_NEAR(m.saved(7, j), t, 1e-6);
      double d = m.dc0[j] + m.dh0[j] * o * (1 - t * t);
      EXPECT_NEAR(m.out(0, j), d * g * i * (1 - i), 2e-6);
      EXPECT_NEAR(m.out(1, j), m.dh0[j] * t * o * (1 - o), 2e-6);
      EXPECT_NEAR(m.out(2, j), d * before * f * (1 - f), 2e-6);
      EXPECT_NEAR(m.out(3, j), d * i * (1 - g * g), 2e-6);
      EXPECT_NEAR(m.dc[j], d * f, 2e-6);
      EXPECT_EQ(m.dh[j], 0);
    }
  }
}

TEST(Cells, GruResetLast) {
  for (int64_t n : kSizes) {
    Memory m(n);
    std::vector<float> bias = numbers(m.u, 8);
    CellRow row = m.row();
    gru_cells(&row, 1, bias.data());
    EXPECT_EQ(m.h, m.y);
    gru_cell_grad(m.grad(), false);
    for (size_t j = 0; j < m.u; ++j) {
      double z = logistic(m.in(0, j)), r = logistic(m.in(1, j)), before = m.before[j], d = m.dh0[j];
      double part = double(m.z[2 * m.stride + j]) + bias[j];
      double g = std::tanh(m.x[2 * m.stride + j] + r * part);
      EXPECT_NEAR(m.h[j], (1 - z) * g + z * before, 1e-6);
      EXPECT_NEAR(m.saved(4, j), part, 1e-6);
      double dg = d * (1 - z) * (1 - g * g);
      EXPECT_NEAR(m.out(0, j), d * (before - g) * z * (1 - z), 2e-6);
      EXPECT_NEAR(m.out(1, j), dg * part * r * (1 - r), 2e-6);
      EXPECT_NEAR(m.out(2, j), dg, 2e-6);
      EXPECT_NEAR(m.out(3, j), dg * r, 2e-6);
      EXPECT_NEAR(m.dh[j], d * z, 2e-6);
    }
  }
}

TEST(Cells, GruResetFirst) {
  for (int64_t n : kSizes) {
    Memory m(n);
    std::vector<float> back = numbers(m.u, 9);
    CellRow row = m.row();
    gru_gates(&row, 1);
    row.z = m.z.data() + 2 * m.stride;
    gru_states(&row, 1);
    EXPECT_EQ(m.h, m.y);
    gru_cell_grad(m.grad(), true);
    gru_reset_grad(m.grad(), back.data());
    for (size_t j = 0; j < m.u; ++j) {
      double z = logistic(m.in(0, j)), r = logistic(m.in(1, j)), before = m.before[j], d = m.dh0[j];
      double g = std::tanh(m.in(2, j));
      EXPECT_NEAR(m.reset[j], r * before, 1e-6);
      EXPECT_NEAR(m.h[j], (1 - z) * g + z * before, 1e-6);
      double dg = d * (1 - z) * (1 - g * g);
      EXPECT_NEAR(m.out(3, j), dg, 2e-6);
      EXPECT_NEAR(m.out(1, j), back[j] * before * r * (1 - r), 2e-6);
      EXPECT_NEAR(m.dh[j], d * z + back[j] * r, 2e-6);
    }
  }
}

TEST(Cells, Rnn) {
  for (bool relu : {false, true}) {
    Memory m(19);
    CellRow row = m.row();
    rnn_cells(&row, 1, relu);
    EXPECT_EQ(m.h, m.y);
    rnn_cell_grad(m.grad(), relu);
    for (size_t j = 0; j < m.u; ++j) {
      double v = m.in(0, j), y = relu ? std::max(v, 0.0) : std::tanh(v);
      EXPECT_NEAR(m.h[j], y, 1e-6);
      EXPECT_NEAR(m.out(0, j), m.dh0[j] * (relu ? double(y > 0) : 1 - y * y), 2e-6);
      EXPECT_EQ(m.dh[j], 0);
    }
  }
}

}  // namespace
}  // namespace onnxtrain::simd
