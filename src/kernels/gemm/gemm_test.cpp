#include "kernels/gemm/gemm.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <vector>

#include "tests/support/random_floats.hpp"

namespace onnxtrain::simd {
namespace {

using Floats = std::vector<float>;

using testing::random_floats;

double act_value(Activation a, double x) {
  switch (a) {
    case Activation::kNone:
      return x;
    case Activation::kRelu:
      return x > 0 ? x : 0;
    case Activation::kGelu:
      return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0)));
    case Activation::kGeluTanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
    case Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case Activation::kTanh:
      return std::tanh(x);
    case Activation::kSilu:
      return x / (1 + std::exp(-x));
  }
  return x;
}

double grad_value(Activation a, double s) {
  switch (a) {
    case Activation::kNone:
      return 1;
    case Activation::kRelu:
      return s > 0 ? 1 : 0;
    case Activation::kSigmoid:
      return s * (1 - s);
    case Activation::kTanh:
      return 1 - s * s;
    default:
      return (act_value(a, s + 1e-5) - act_value(a, s - 1e-5)) / 2e-5;
  }
}

struct Problem {
  GemmDesc d;
  Floats a, b, c, bias, residual, pre, saved;

  explicit Problem(GemmDesc desc, uint32_t seed = 1) : d(desc) {
    const int64_t lda = d.lda ? d.lda : d.trans_a ? d.m : d.k;
    const int64_t ldb = d.ldb ? d.ldb : d.trans_b ? d.k : d.n;
    const int64_t ldc = d.ldc ? d.ldc : d.n;
    d.lda = lda, d.ldb = ldb, d.ldc = ldc;
    const int64_t sa = (d.trans_a ? d.k : d.m) * lda, sb = (d.trans_b ? d.n : d.k) * ldb;
    const int64_t sc = d.m * ldc;
    d.stride_a = sa, d.stride_b = sb, d.stride_c = sc;
    a = random_floats(size_t(sa * d.batch), seed);
    b = random_floats(size_t(sb * d.batch), seed + 1);
    c = random_floats(size_t(sc * d.batch), seed + 2);
    bias = random_floats(size_t(d.m + d.n), seed + 3);
    residual = random_floats(c.size(), seed + 4);
    saved = random_floats(c.size(), seed + 5);
    pre.assign(c.size(), 77);
  }

  GemmArgs args(Floats& out, Floats& pre_out, Floats& space, const GemmPlan& plan) const {
    space.assign(plan.workspace_bytes() / 4 + 16, std::nanf(""));
    GemmArgs g;
    g.a = a.data(), g.b = b.data(), g.c = out.data(), g.bias = bias.data();
    g.residual = residual.data(), g.pre = pre_out.data(), g.saved = saved.data();
    g.workspace = space.data();
    return g;
  }

  void check() const {
    ThreadPool one(1);
    const GemmPlan plan = GemmPlan::make(d);
    Floats out = c, pre_out = pre, space;
    plan.run(one, args(out, pre_out, space, plan));
    for (int64_t t = 0; t < d.batch; ++t) check_item(out, pre_out, t);
    // padding between the rows stays untouched
    for (int64_t t = 0; t < d.batch; ++t) {
      for (int64_t i = 0; i < d.m; ++i) {
        for (int64_t j = d.n; j < d.ldc; ++j) {
          const size_t at = size_t(t * d.stride_c + i * d.ldc + j);
          ASSERT_EQ(out[at], c[at]);
          ASSERT_EQ(pre_out[at], pre[at]);
        }
      }
    }
    for (int threads : {2, 4}) {
      ThreadPool pool(threads);
      Floats again = c, pre_again = pre;
      plan.run(pool, args(again, pre_again, space, plan));
      ASSERT_EQ(std::memcmp(again.data(), out.data(), out.size() * 4), 0) << "threads " << threads;
    }
  }

  void check_item(const Floats& out, const Floats& pre_out, int64_t t) const {
    const float* pa = a.data() + t * d.stride_a;
    const float* pb = b.data() + t * d.stride_b;
    for (int64_t i = 0; i < d.m; ++i) {
      for (int64_t j = 0; j < d.n; ++j) {
        double s = 0, abs = 0;
        for (int64_t p = 0; p < d.k; ++p) {
          const double x = double(pa[d.trans_a ? p * d.lda + i : i * d.lda + p]) *
                           double(pb[d.trans_b ? j * d.ldb + p : p * d.ldb + j]);
          s += x, abs += std::abs(x);
        }
        const size_t at = size_t(t * d.stride_c + i * d.ldc + j);
        s = d.alpha * s + (d.beta == 0 ? 0 : d.beta * c[at]);
        if (d.bias == BiasAxis::kColumn) s += bias[size_t(j)];
        if (d.bias == BiasAxis::kRow) s += bias[size_t(i)];
        if (d.residual) s += residual[at];
        const double tol = 2e-6 * (abs + 4) * (1 + std::abs(d.alpha) + std::abs(d.beta));
        if (d.store_pre) {
          ASSERT_NEAR(pre_out[at], s, tol) << i << "," << j;
        }
        s = act_value(d.act, s) * grad_value(d.grad, saved[at]);
        ASSERT_NEAR(out[at], s, tol) << d.m << "x" << d.n << "x" << d.k << " at " << i << "," << j
                                     << " trans " << d.trans_a << d.trans_b << " batch item " << t;
      }
    }
  }
};

GemmDesc shape(int64_t m, int64_t n, int64_t k, bool ta = false, bool tb = false) {
  GemmDesc d;
  d.m = m, d.n = n, d.k = k, d.trans_a = ta, d.trans_b = tb;
  return d;
}

TEST(Gemm, SmallShapesAllLayouts) {
  for (int64_t m : {1, 2, 3, 4, 5, 6, 7, 13, 16, 29}) {
    for (int64_t n : {1, 2, 7, 8, 9, 16, 17, 31, 33, 70, 150}) {
      for (int64_t k : {0, 1, 3, 4, 5, 17, 64}) {
        for (int t = 0; t < 4; ++t) {
          Problem(shape(m, n, k, t & 1, t & 2)).check();
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(Gemm, LargerShapesAllLayouts) {
  const int64_t shapes[][3] = {{64, 96, 400},   {301, 70, 33},  {130, 200, 777}, {300, 128, 512},
                               {64, 64, 6000},  {1, 500, 900},  {3, 257, 1030},  {500, 1, 300},
                               {17, 1, 5000},   {40, 24, 9001}, {600, 33, 10},   {600, 130, 390},
                               {70, 300, 1024}, {700, 3, 300},  {900, 4, 129},   {333, 2, 40},
                               {500, 130, 1},   {257, 90, 3},   {260, 515, 2},   {90, 1200, 4},
                               {40, 10, 700},   {9, 29, 1030}};
  for (const auto& s : shapes) {
    for (int t = 0; t < 4; ++t) {
      Problem(shape(s[0], s[1], s[2], t & 1, t & 2)).check();
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Gemm, LeadingDimensionsAlphaBeta) {
  const float scales[][2] = {{1, 0}, {1, 1}, {0.5f, 2}, {-1, 0.25f}, {0, 1}};
  for (auto [m, n, k] : {std::tuple{37, 45, 50},
                         {1, 45, 50},
                         {300, 100, 40},
                         {64, 64, 4000},
                         {90, 3, 50},
                         {45, 60, 3}}) {
    for (auto& s : scales) {
      for (int t = 0; t < 4; ++t) {
        GemmDesc d = shape(m, n, k, t & 1, t & 2);
        d.alpha = s[0], d.beta = s[1];
        d.lda = (d.trans_a ? m : k) + 3, d.ldb = (d.trans_b ? k : n) + 5, d.ldc = n + 7;
        Problem(d).check();
        if (HasFatalFailure()) return;
      }
    }
  }
}

// Rows a multiple of 4 KB apart: tall tiles (AVX-512) copy them before they use them.
TEST(Gemm, RowsThatShareACacheSet) {
  for (int64_t m : {5, 8, 9, 14, 15, 31, 180}) {
    for (auto [n, k] : {std::pair{130, 50}, {160, 390}}) {
      GemmDesc d = shape(m, n, k);
      d.lda = 1024;
      Problem(d).check();
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Gemm, Epilogues) {
  using A = Activation;
  for (auto [m, n, k] : {std::tuple{37, 45, 50},
                         {1, 45, 50},
                         {50, 1, 30},
                         {300, 100, 40},
                         {64, 64, 4000},
                         {2, 19, 40},
                         {50, 3, 40},
                         {61, 45, 2}}) {
    for (A act : {A::kNone, A::kRelu, A::kGelu, A::kGeluTanh, A::kSigmoid, A::kTanh, A::kSilu}) {
      for (int mode = 0; mode < 6; ++mode) {
        GemmDesc d = shape(m, n, k, false, mode & 1);
        d.alpha = 0.25f;
        (mode >= 3 ? d.grad : d.act) = act;
        d.bias = BiasAxis(mode % 3);
        d.residual = mode == 2 || mode == 4;
        d.store_pre = mode == 1 || mode == 5;
        Problem(d).check();
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST(Gemm, Batched) {
  for (auto [m, n, k, batch] : {std::tuple{16, 16, 4, 100},
                                {64, 64, 32, 12},
                                {1, 64, 32, 7},
                                {200, 128, 64, 3},
                                {31, 1, 5, 9},
                                {30, 3, 20, 5},
                                {30, 24, 2, 5},
                                {128, 128, 64, 70}}) {
    for (int t = 0; t < 4; ++t) {
      GemmDesc d = shape(m, n, k, t & 1, t & 2);
      d.batch = batch;
      d.bias = BiasAxis::kColumn;
      Problem(d).check();
      if (HasFatalFailure()) return;
    }
  }
}

TEST(Gemm, BatchedByOffsets) {
  GemmDesc d = shape(8, 9, 10);
  d.batch = 4;
  Problem p(d);
  const std::vector<int64_t> oa = {0, 80, 160, 240}, ob = {0, 90, 180, 270}, oc = {0, 72, 144, 216};
  Problem q = p;
  q.d.offsets_a = oa.data(), q.d.offsets_b = ob.data(), q.d.offsets_c = oc.data();
  ThreadPool pool(2);
  Floats c1 = p.c, c2 = p.c, pre = p.pre, space;
  const GemmPlan plan1 = GemmPlan::make(p.d), plan2 = GemmPlan::make(q.d);
  plan1.run(pool, p.args(c1, pre, space, plan1));
  plan2.run(pool, q.args(c2, pre, space, plan2));
  EXPECT_EQ(c1, c2);
}

TEST(Gemm, PackedBGivesTheSame) {
  for (auto [m, n, k] : {std::tuple{37, 45, 50}, {300, 130, 800}, {3, 40, 20}, {64, 784, 512}}) {
    for (bool tb : {false, true}) {
      Problem p(shape(m, n, k, false, tb));
      ThreadPool pool(2);
      GemmDesc packed = p.d;
      packed.packed_b = true;
      const GemmPlan plan = GemmPlan::make(p.d), with = GemmPlan::make(packed);
      Floats b(with.packed_b_bytes() / 4), c1 = p.c, c2 = p.c, pre = p.pre, space;
      with.pack_b(pool, p.b.data(), b.data());
      plan.run(pool, p.args(c1, pre, space, plan));
      GemmArgs g = p.args(c2, pre, space, with);
      g.b = b.data();
      with.run(pool, g);
      for (size_t i = 0; i < c1.size(); ++i) ASSERT_NEAR(c1[i], c2[i], 1e-4);
    }
  }
}

TEST(Gemm, NothingIsReadFromCWhenBetaIsZero) {
  for (auto [m, n, k] : {std::tuple{37, 45, 50}, {1, 45, 50}, {2, 9, 20}, {64, 64, 4000}}) {
    for (bool tb : {false, true}) {
      Problem p(shape(m, n, k, false, tb));
      for (auto& x : p.c) x = std::nanf("");
      p.check();
    }
  }
}

TEST(Gemm, DoublePrecision) {
  ThreadPool pool(2);
  const int64_t m = 45, n = 130, k = 77;
  std::vector<double> a(size_t(m * k)), b(size_t(k * n)), c(size_t(m * n), 2.0);
  for (size_t i = 0; i < a.size(); ++i) a[i] = std::sin(double(i));
  for (size_t i = 0; i < b.size(); ++i) b[i] = std::cos(double(i));
  for (int t = 0; t < 4; ++t) {
    auto out = c;
    const int64_t lda = t & 1 ? m : k, ldb = t & 2 ? k : n;
    gemm_f64(pool, t & 1, t & 2, m, n, k, 0.5, a.data(), lda, b.data(), ldb, 3.0, out.data(), n);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double s = 0;
        for (int64_t p = 0; p < k; ++p) {
          s += a[size_t(t & 1 ? p * lda + i : i * lda + p)] *
               b[size_t(t & 2 ? j * ldb + p : p * ldb + j)];
        }
        ASSERT_NEAR(out[size_t(i * n + j)], 0.5 * s + 6, 1e-12);
      }
    }
  }
}

}  // namespace
}  // namespace onnxtrain::simd
