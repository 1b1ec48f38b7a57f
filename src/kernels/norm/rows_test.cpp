#include "kernels/norm/rows.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/support/random_floats.hpp"

namespace onnxtrain::simd {
namespace {

using Floats = std::vector<float>;

Floats randoms(int64_t n, uint32_t seed) { return testing::random_floats(size_t(n), seed, -2, 2); }

struct Size {
  int64_t rows, n;
};
constexpr Size kSizes[] = {{1, 1},   {3, 5},   {7, 8},    {5, 10},
                           {64, 10}, {33, 67}, {4, 1000}, {2000, 37}};

// Runs f(pool) -> results with 1, 2 and 4 threads and demands the same bits.
template <class F>
Floats same_bits(F f) {
  Floats first;
  for (int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    Floats out = f(pool);
    if (threads == 1) first = out;
    EXPECT_EQ(std::memcmp(first.data(), out.data(), out.size() * 4), 0);
  }
  return first;
}

std::vector<double> ref_softmax(const float* x, int64_t n, double scale) {
  double top = -INFINITY, sum = 0;
  for (int64_t i = 0; i < n; ++i) top = std::max(top, scale * double(x[i]));
  std::vector<double> p(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) sum += p[size_t(i)] = std::exp(scale * double(x[i]) - top);
  for (auto& v : p) v /= sum;
  return p;
}

TEST(Rows, Softmax) {
  for (const Size& size : kSizes) {
    const int64_t rows = size.rows, n = size.n;
    const Floats x = randoms(rows * n, 1), dy = randoms(rows * n, 2);
    for (float scale : {1.0f, 0.125f, -2.0f}) {
      Floats y = same_bits([&](ThreadPool& p) {
        Floats out(x.size());
        softmax(p, x.data(), out.data(), rows, n, scale);
        return out;
      });
      Floats dx = same_bits([&](ThreadPool& p) {
        Floats out = dy;  // in place
        softmax_grad(p, out.data(), y.data(), out.data(), rows, n, scale);
        return out;
      });
      for (int64_t r = 0; r < rows; ++r) {
        const auto p = ref_softmax(x.data() + r * n, n, double(scale));
        double dot = 0;
        for (int64_t i = 0; i < n; ++i) dot += p[size_t(i)] * double(dy[size_t(r * n + i)]);
        for (int64_t i = 0; i < n; ++i) {
          const size_t at = size_t(r * n + i);
          ASSERT_NEAR(y[at], p[size_t(i)], 1e-6);
          ASSERT_NEAR(dx[at], double(scale) * p[size_t(i)] * (double(dy[at]) - dot), 2e-6);
        }
      }
    }
  }
}

TEST(Rows, SoftmaxOfExtremes) {
  ThreadPool pool(1);
  Floats x = {1e30f, 0, -1e30f, -INFINITY}, y(4);
  softmax(pool, x.data(), y.data(), 1, 4);
  EXPECT_EQ(y, (Floats{1, 0, 0, 0}));
  x = {NAN, 0, 1, 2};
  softmax(pool, x.data(), y.data(), 1, 4);
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[3]));
}

TEST(Rows, LogSoftmaxOfLargeScores) {
  ThreadPool pool(1);
  for (float top : {-5000.0f, 100.0f, 1000.0f, 3e6f}) {
    SCOPED_TRACE(top);
    const Floats x = {top, top - 1, top - 2.5f, top - 0.25f};
    Floats y(4);
    log_softmax(pool, x.data(), y.data(), 1, 4);
    double sum = 0;
    for (float v : x) sum += std::exp(double(v) - double(top));
    for (size_t k = 0; k < 4; ++k)
      EXPECT_NEAR(y[k], double(x[k]) - double(top) - std::log(sum), 5e-7);
  }
}

TEST(Rows, LogSoftmax) {
  for (const Size& size : kSizes) {
    const int64_t rows = size.rows, n = size.n;
    const Floats x = randoms(rows * n, 1), dy = randoms(rows * n, 2);
    Floats y = same_bits([&](ThreadPool& p) {
      Floats out(x.size());
      log_softmax(p, x.data(), out.data(), rows, n);
      return out;
    });
    Floats dx = same_bits([&](ThreadPool& p) {
      Floats out(x.size());
      log_softmax_grad(p, dy.data(), y.data(), out.data(), rows, n);
      return out;
    });
    for (int64_t r = 0; r < rows; ++r) {
      const auto p = ref_softmax(x.data() + r * n, n, 1);
      double sum = 0;
      for (int64_t i = 0; i < n; ++i) sum += double(dy[size_t(r * n + i)]);
      for (int64_t i = 0; i < n; ++i) {
        const size_t at = size_t(r * n + i);
        ASSERT_NEAR(y[at], std::log(p[size_t(i)]), 5e-6);
        ASSERT_NEAR(dx[at], double(dy[at]) - p[size_t(i)] * sum, 2e-5);
      }
    }
  }
}

TEST(Rows, CrossEntropy) {
  for (const Size& size : kSizes) {
    const int64_t rows = size.rows, n = size.n;
    for (int mode = 0; mode < 6; ++mode) {
      const Floats x = randoms(rows * n, 1);
      Floats weights = randoms(n, 3);
      for (auto& w : weights) w = std::abs(w) + 0.1f;
      std::vector<int64_t> labels;
      for (int64_t r = 0; r < rows; ++r) labels.push_back(r % 5 == 4 ? -100 : (r * 7) % n);
      CrossEntropy c;
      c.x = x.data(), c.labels = labels.data(), c.rows = rows, c.n = n;
      c.weights = mode % 2 ? weights.data() : nullptr;
      c.has_ignore = true, c.ignore_index = -100;
      c.reduction = LossReduction(mode % 3);
      c.grad_scale = 0.5f;
      float loss = 0;
      Floats log_prob(x.size()), row_loss(static_cast<size_t>(rows));
      Floats grad = same_bits([&](ThreadPool& p) {
        Floats out(x.size());
        c.row_loss = row_loss.data(), c.grad = out.data();
        c.log_prob = mode > 2 ? log_prob.data() : nullptr;
        loss = softmax_cross_entropy(p, c);
        return out;
      });
      double sum = 0, total = 0;
      for (int64_t r = 0; r < rows; ++r) {
        if (labels[size_t(r)] < 0) continue;
        total += c.weights ? double(weights[size_t(labels[size_t(r)])]) : 1;
      }
      const double divisor = c.reduction == LossReduction::kMean ? total : 1;
      for (int64_t r = 0; r < rows; ++r) {
        const auto p = ref_softmax(x.data() + r * n, n, 1);
        const int64_t label = labels[size_t(r)];
        const double w = label < 0 ? 0 : c.weights ? double(weights[size_t(label)]) : 1;
        const double l = label < 0 ? 0 : -w * std::log(p[size_t(label)]);
        sum += l;
        ASSERT_NEAR(row_loss[size_t(r)], l, 1e-5);
        for (int64_t i = 0; i < n; ++i) {
          const double want = 0.5 * w / divisor * (p[size_t(i)] - (i == label));
          ASSERT_NEAR(grad[size_t(r * n + i)], label < 0 ? 0 : want, 1e-6);
          if (mode > 2) {
            ASSERT_NEAR(log_prob[size_t(r * n + i)], std::log(p[size_t(i)]), 5e-6);
          }
        }
      }
      const double want = c.reduction == LossReduction::kNone ? 0 : sum / divisor;
      EXPECT_NEAR(loss, want, 1e-5 * (1 + std::abs(want)));
    }
  }
}

TEST(Rows, Norms) {
  for (const Size& size : kSizes) {
    const int64_t rows = size.rows, n = size.n;
    for (int mode = 0; mode < 4; ++mode) {
      const Floats x = randoms(rows * n, 1), dy = randoms(rows * n, 2), scale = randoms(n, 3),
                   bias = randoms(n, 4);
      RowNorm p;
      p.rows = rows, p.n = n, p.rms = mode & 1, p.epsilon = 1e-3f;
      p.scale = mode & 2 ? scale.data() : nullptr;
      p.bias = mode & 2 ? bias.data() : nullptr;
      Floats mean(static_cast<size_t>(rows)), rstd(mean.size());
      Floats y = same_bits([&](ThreadPool& pool) {
        Floats out(x.size());
        row_norm(pool, p, x.data(), out.data(), mean.data(), rstd.data());
        return out;
      });
      Floats grads = same_bits([&](ThreadPool& pool) {
        Floats out(x.size() + size_t(2 * n)), space(row_norm_grad_workspace(p) / 4);
        row_norm_grad(pool, p, dy.data(), x.data(), mean.data(), rstd.data(), out.data(),
                      out.data() + x.size(), out.data() + x.size() + n, space.data());
        return out;
      });
      std::vector<double> dscale(static_cast<size_t>(n)), dbias(dscale.size());
      for (int64_t r = 0; r < rows; ++r) {
        const float* xr = x.data() + r * n;
        double mu = 0, var = 0, a = 0, f = 0;
        for (int64_t i = 0; i < n; ++i) mu += double(xr[i]) / double(n);
        if (p.rms) mu = 0;
        for (int64_t i = 0; i < n; ++i)
          var += (double(xr[i]) - mu) * (double(xr[i]) - mu) / double(n);
        const double rs = 1 / std::sqrt(var + double(p.epsilon));
        auto hat = [&](int64_t i) { return (double(xr[i]) - mu) * rs; };
        auto g = [&](int64_t i) {
          return double(dy[size_t(r * n + i)]) * (p.scale ? double(scale[size_t(i)]) : 1);
        };
        for (int64_t i = 0; i < n; ++i) {
          a += g(i) * hat(i) / double(n);
          f += p.rms ? 0 : g(i) / double(n);
          dscale[size_t(i)] += double(dy[size_t(r * n + i)]) * hat(i);
          dbias[size_t(i)] += double(dy[size_t(r * n + i)]);
        }
        for (int64_t i = 0; i < n; ++i) {
          const double want = hat(i) * (p.scale ? double(scale[size_t(i)]) : 1) +
                              (p.bias ? double(bias[size_t(i)]) : 0);
          const double tol = 2e-5 * (1 + rs);
          ASSERT_NEAR(y[size_t(r * n + i)], want, tol);
          ASSERT_NEAR(grads[size_t(r * n + i)], rs * (g(i) - f - hat(i) * a), tol * rs + 1e-5);
        }
      }
      for (int64_t i = 0; i < n; ++i) {
        ASSERT_NEAR(grads[x.size() + size_t(i)], dscale[size_t(i)], 1e-3);
        ASSERT_NEAR(grads[x.size() + size_t(n + i)], dbias[size_t(i)], 1e-3);
      }
    }
  }
}

}  // namespace
}  // namespace onnxtrain::simd
