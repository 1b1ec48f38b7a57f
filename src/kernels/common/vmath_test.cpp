#include "kernels/common/vmath.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/common/vmath_arrays_test.hpp"

namespace onnxtrain::simd {
namespace {

bool same_bits(const float* a, const float* b, int64_t n) {
  return std::equal(a, a + n, b, [](float x, float y) {
    return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  });
}

using Fn = void (*)(const float*, float*, int64_t);

// Every 1021st float of all bit patterns: about 4.2 million points, all exponents and both signs.
std::vector<float> everywhere() {
  std::vector<float> v;
  for (uint64_t b = 0; b < (uint64_t(1) << 32); b += 1021) {
    const uint32_t u = uint32_t(b);
    float f;
    std::memcpy(&f, &u, 4);
    v.push_back(f);
  }
  for (float f : {0.0f, -0.0f, 1.0f, -1.0f, INFINITY, -INFINITY, NAN, 88.72f, -87.33f, -103.97f}) {
    v.push_back(f);
  }
  for (int i = -200000; i <= 200000; ++i) v.push_back(float(i) * 1e-4f);
  return v;
}

double ulp_of(double x) {
  const float f = std::abs(float(x));
  if (!std::isfinite(f)) return std::ldexp(1.0, 104);
  return double(std::nextafter(f, INFINITY)) - f;
}

// Largest error in units in the last place; `floor(x)` is a lower bound of the unit's scale.
template <class Ref, class Floor>
void check(const char* name, Fn fn, Ref ref, double limit, Floor floor) {
  static const std::vector<float> x = everywhere();
  std::vector<float> y(x.size());
  fn(x.data(), y.data(), int64_t(x.size()));
  double worst = 0;
  float where = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double want = ref(double(x[i]));
    if (std::isnan(want)) {
      ASSERT_TRUE(std::isnan(y[i])) << name << " at " << x[i];
      continue;
    }
    const float rounded = float(want);
    if (rounded == y[i]) continue;
    ASSERT_FALSE(std::isnan(y[i])) << name << " at " << x[i];
    double got = y[i];
    if (std::isinf(y[i])) got = std::copysign(std::ldexp(1.0, 128), y[i]);
    const double e = std::abs(got - want) / std::max(ulp_of(want), floor(double(x[i])));
    if (e > worst) worst = e, where = x[i];
  }
  EXPECT_LE(worst, limit) << name << " at " << where;
  std::printf("%-16s %.3f ulp at %g\n", name, worst, double(where));
}
template <class Ref>
void check(const char* name, Fn fn, Ref ref, double limit) {
  check(name, fn, ref, limit, [](double) { return 0.0; });
}

double erf_gelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double gelu_tanh(double x) {
  const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
  return x / (1 + std::exp(-2 * u));
}

TEST(Vmath, Accuracy) {
  check(
      "exp", vexp, [](double x) { return std::exp(x); }, 1.5);
  check(
      "expm1", vexpm1, [](double x) { return std::expm1(x); }, 2);
  check(
      "log", vlog, [](double x) { return std::log(x); }, 1.5);
  check(
      "log1p", vlog1p, [](double x) { return std::log1p(x); }, 2);
  check(
      "tanh", vtanh, [](double x) { return std::tanh(x); }, 3);
  check(
      "sigmoid", vsigmoid, [](double x) { return 1 / (1 + std::exp(-x)); }, 3);
  check(
      "softplus", vsoftplus,
      [](double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }, 3);
  check(
      "erf", verf, [](double x) { return std::erf(x); }, 2);
  check(
      "rsqrt", vrsqrt, [](double x) { return 1 / std::sqrt(x); }, 1.5);
  check(
      "sin", vsin, [](double x) { return std::sin(x); }, 2);
  check(
      "cos", vcos, [](double x) { return std::cos(x); }, 2);
}

TEST(Vmath, Activations) {
  auto unit = [](double x) { return ulp_of(x); };
  auto one = [](double) { return ulp_of(1.0); };
  check(
      "gelu", vgelu, [](double x) { return std::isinf(x) && x < 0 ? NAN : erf_gelu(x); }, 3, unit);
  check(
      "gelu_tanh", vgelu_tanh, [](double x) { return std::isinf(x) && x < 0 ? NAN : gelu_tanh(x); },
      4, unit);
  check(
      "silu", vsilu, [](double x) { return std::isinf(x) && x < 0 ? NAN : x / (1 + std::exp(-x)); },
      4, [](double) { return std::ldexp(1.0, -144); });  // x times a denormal
  check(
      "silu_grad", vsilu_grad,
      [](double x) {
        if (std::isinf(x)) return double(NAN);
        const double s = 1 / (1 + std::exp(-x));
        return s * (1 + x * (1 / (1 + std::exp(x))));
      },
      4, one);
  check(
      "gelu_grad", vgelu_grad,
      [](double x) {
        if (std::isinf(x)) return double(NAN);
        return 0.5 * std::erfc(-x / std::sqrt(2.0)) +
               x * std::exp(-0.5 * x * x) / std::sqrt(2 * M_PI);
      },
      4, one);
  check(
      "gelu_tanh_grad", vgelu_tanh_grad,
      [](double x) {
        if (std::abs(x) > 20) return x > 0 ? 1.0 : 0.0;
        const double u = std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x);
        const double s = 1 / (1 + std::exp(-2 * u));
        const double du = std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * x * x);
        return s + x * s * (1 - s) * 2 * du;
      },
      4, one);
}

TEST(Vmath, Pow) {
  std::vector<float> x, y;
  for (float a : {0.0f, -0.0f, 1e-40f, 1e-30f, 0.3f, 0.99999f, 1.0f, 1.0001f, 2.5f, 77.0f, 1e20f,
                  3e38f, -1.0f, -2.0f, -0.5f, INFINITY, -INFINITY, NAN}) {
    for (float b : {0.0f, 1.0f, -1.0f, 2.0f, 3.0f, -3.0f, 0.5f, -0.5f, 0.25f, 1.7f, -2.3f, 10.0f,
                    31.0f, 1000.0f, -1000.0f, INFINITY, -INFINITY, NAN}) {
      x.push_back(a), y.push_back(b);
    }
  }
  for (int i = 0; i < 300000; ++i) {
    x.push_back(std::exp(float(i % 1003) * 0.02f - 10.0f));
    y.push_back(float(i % 997) * 0.03f - 15.0f);
  }
  std::vector<float> out(x.size()), one(1);
  vpow(x.data(), y.data(), out.data(), int64_t(x.size()));
  auto near = [](float got, float a, float b) {
    const double want = std::pow(double(a), double(b));
    if (std::isnan(want)) return std::isnan(got);
    if (got == float(want)) return true;
    return std::abs(double(got) - want) <= 3 * ulp_of(want);
  };
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(near(out[i], x[i], y[i])) << x[i] << "^" << y[i] << " = " << out[i];
    if (i > 2000) continue;
    vpow(x.data() + i, y[i], one.data(), 1);
    ASSERT_TRUE(near(one[0], x[i], y[i])) << x[i] << "^" << y[i] << " = " << one[0];
  }
}

TEST(Vmath, SameBitsAnywhere) {
  std::vector<float> x(67), whole(67), part(67);
  for (size_t i = 0; i < x.size(); ++i) x[i] = float(i) * 0.37f - 11;
  for (Fn fn : {vexp, vexpm1, vlog, vlog1p, vtanh, vsigmoid, vsoftplus, verf, vgelu, vgelu_grad,
                vgelu_tanh, vgelu_tanh_grad, vsilu, vsilu_grad, vrsqrt, vsin, vcos}) {
    fn(x.data(), whole.data(), 67);
    for (int64_t i = 0; i < 67; ++i) fn(x.data() + i, part.data() + i, 1);
    EXPECT_TRUE(same_bits(whole.data(), part.data(), 67));
    for (int64_t n = 0; n < 40; ++n) {
      part.assign(67, 5.0f);
      fn(x.data() + 3, part.data() + 1, n);
      EXPECT_TRUE(same_bits(whole.data() + 3, part.data() + 1, n));
      EXPECT_EQ(part[0], 5.0f);
      EXPECT_EQ(part[size_t(n) + 1], 5.0f);
    }
  }
}

}  // namespace
}  // namespace onnxtrain::simd
