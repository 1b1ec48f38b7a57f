#include "kernels/elementwise/elementwise.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <vector>

namespace onnxtrain::simd {
namespace {

using Ref = std::function<double(const double* x, const float* p)>;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double gelu(double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }
double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::sqrt(2 / M_PI) * (x + 0.044715 * x * x * x)));
}
double slope(double (*f)(double), double x) { return (f(x + 1e-5) - f(x - 1e-5)) / 2e-5; }

using References = std::map<std::string, Ref>;
#define OT_REF(name, ...)                                                                      \
  {                                                                                            \
#name, [](const double* x, const float* p) -> double { (void)p; (void)x; return __VA_ARGS__; } \
  }

const References& two_inputs() {
  static const References refs = {
      OT_REF(Add, x[0] + x[1]),
      OT_REF(Sub, x[0] - x[1]),
      OT_REF(Mul, x[0] * x[1]),
      OT_REF(Div, x[0] / x[1]),
      OT_REF(Min, std::min(x[0], x[1])),
      OT_REF(Max, std::max(x[0], x[1])),
      OT_REF(Pow, std::pow(x[0], x[1])),
      OT_REF(Equal, x[0] == x[1]),
      OT_REF(Less, x[0] < x[1]),
      OT_REF(LessEqual, x[0] <= x[1]),
      OT_REF(Greater, x[0] > x[1]),
      OT_REF(GreaterEqual, x[0] >= x[1]),
      OT_REF(And, x[0] != 0 && x[1] != 0),
      OT_REF(Or, x[0] != 0 || x[1] != 0),
      OT_REF(Xor, (x[0] != 0) != (x[1] != 0)),
      OT_REF(ReluGrad, x[1] > 0 ? x[0] : 0),
      OT_REF(LeakyReluGrad, x[1] > 0 ? x[0] : p[0] * x[0]),
      OT_REF(SigmoidGrad, x[0] * x[1] * (1 - x[1])),
      OT_REF(TanhGrad, x[0] * (1 - x[1] * x[1])),
      OT_REF(GeluGrad, x[0] * slope(gelu, x[1])),
      OT_REF(GeluTanhGrad, x[0] * slope(gelu_tanh, x[1])),
      OT_REF(SiluGrad, x[0] * slope([](double v) { return v * sigmoid(v); }, x[1])),
      OT_REF(SoftplusGrad, x[0] * sigmoid(x[1])),
      OT_REF(ClipGrad, x[1] >= p[0] && x[1] <= p[1] ? x[0] : 0),
      OT_REF(SqrtGrad, x[0] / (2 * x[1])),
      OT_REF(AbsGrad, x[1] > 0   ? x[0]
                      : x[1] < 0 ? -x[0]
                                 : 0)};
  return refs;
}

const References& with_a_constant() {
  static const References refs = {OT_REF(AddScalar, x[0] + p[0]),
                                  OT_REF(SubScalar, x[0] - p[0]),
                                  OT_REF(ScalarSub, p[0] - x[0]),
                                  OT_REF(MulScalar, x[0] * p[0]),
                                  OT_REF(DivScalar, x[0] / p[0]),
                                  OT_REF(ScalarDiv, p[0] / x[0]),
                                  OT_REF(MinScalar, std::min(x[0], double(p[0]))),
                                  OT_REF(MaxScalar, std::max(x[0], double(p[0]))),
                                  OT_REF(PowScalar, std::pow(x[0], p[0])),
                                  OT_REF(EqualScalar, x[0] == p[0]),
                                  OT_REF(LessScalar, x[0] < p[0]),
                                  OT_REF(LessEqualScalar, x[0] <= p[0]),
                                  OT_REF(GreaterScalar, x[0] > p[0]),
                                  OT_REF(GreaterEqualScalar, x[0] >= p[0])};
  return refs;
}

const References& one_or_three_inputs() {
  static const References refs = {
      OT_REF(Copy, x[0]),
      OT_REF(Neg, -x[0]),
      OT_REF(Abs, std::abs(x[0])),
      OT_REF(Sign, (x[0] > 0) - (x[0] < 0)),
      OT_REF(Square, x[0] * x[0]),
      OT_REF(Sqrt, std::sqrt(x[0])),
      OT_REF(Rsqrt, 1 / std::sqrt(x[0])),
      OT_REF(Reciprocal, 1 / x[0]),
      OT_REF(Exp, std::exp(x[0])),
      OT_REF(Expm1, std::expm1(x[0])),
      OT_REF(Log, std::log(x[0])),
      OT_REF(Log1p, std::log1p(x[0])),
      OT_REF(Sin, std::sin(x[0])),
      OT_REF(Cos, std::cos(x[0])),
      OT_REF(Erf, std::erf(x[0])),
      OT_REF(Floor, std::floor(x[0])),
      OT_REF(Ceil, std::ceil(x[0])),
      OT_REF(Round, std::nearbyint(x[0])),
      OT_REF(Not, x[0] == 0),
      OT_REF(Relu, std::max(x[0], 0.0)),
      OT_REF(LeakyRelu, x[0] < 0 ? p[0] * x[0] : x[0]),
      OT_REF(Elu, x[0] < 0 ? p[0] * std::expm1(x[0]) : x[0]),
      OT_REF(Clip, std::min(std::max(x[0], double(p[0])), double(p[1]))),
      OT_REF(Sigmoid, sigmoid(x[0])),
      OT_REF(Tanh, std::tanh(x[0])),
      OT_REF(Softplus, std::log1p(std::exp(x[0]))),
      OT_REF(Gelu, gelu(x[0])),
      OT_REF(GeluTanh, gelu_tanh(x[0])),
      OT_REF(Silu, x[0] * sigmoid(x[0])),
      OT_REF(HardSigmoid, std::clamp(x[0] * p[0] + p[1], 0.0, 1.0)),
      OT_REF(HardSwish, x[0] * std::clamp(x[0] / 6 + 0.5, 0.0, 1.0)),
      OT_REF(Affine, p[0] * x[0] + p[1]),
      OT_REF(Axpy, p[0] * x[0] + x[1]),
      OT_REF(Axpby, p[0] * x[0] + p[1] * x[1]),
      OT_REF(Fma, x[0] * x[1] + x[2]),
      OT_REF(Where, x[0] != 0 ? x[1] : x[2])};
  return refs;
}
#undef OT_REF

const References& references() {
  static const References all = [] {
    References r = two_inputs();
    r.insert(with_a_constant().begin(), with_a_constant().end());
    r.insert(one_or_three_inputs().begin(), one_or_three_inputs().end());
    return r;
  }();
  return all;
}

TEST(Elementwise, EveryMicroOp) {
  const float params[] = {-0.75f, 1.5f};
  for (int op = 0; op < int(MicroOp::kCount); ++op) {
    const MicroOpInfo& info = micro_op_info(MicroOp(op));
    const TileFn fn = micro_op(MicroOp(op));
    ASSERT_NE(fn, nullptr) << info.name;
    ASSERT_TRUE(references().count(info.name)) << info.name;
    const Ref& ref = references().at(info.name);
    constexpr int64_t kN = 45;
    std::vector<float> x[3], out(kN + 1, 9.0f);
    const float* in[3];
    for (int k = 0; k < 3; ++k) {
      for (int64_t i = 0; i < kN; ++i) {
        x[k].push_back(i % 7 == 3 ? 0.5f : float((i * (k + 3) * 7 + k) % 41) * 0.125f - 2.0f);
      }
      in[k] = x[k].data();
    }
    fn(in, out.data(), kN, params);
    EXPECT_EQ(out[kN], 9.0f);
    for (int64_t i = 0; i < kN; ++i) {
      const double v[3] = {x[0][size_t(i)], x[1][size_t(i)], x[2][size_t(i)]};
      const double want = ref(v, params);
      const float got = out[size_t(i)];
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got)) << info.name << " " << v[0] << " " << v[1];
      } else if (std::isinf(want)) {
        EXPECT_EQ(double(got), want) << info.name << " " << v[0];
      } else {
        EXPECT_NEAR(got, want, 1e-6 * std::max(1.0, std::abs(want))) << info.name << " " << v[0];
      }
      // the same element alone, and in place
      float alone = x[0][size_t(i)];
      const float* at[3] = {&alone, in[1] + i, in[2] + i};
      fn(at, &alone, 1, params);
      EXPECT_EQ(std::bit_cast<uint32_t>(alone), std::bit_cast<uint32_t>(got))
          << info.name << " at " << i;
    }
  }
}

TEST(Elementwise, NanGoesThrough) {
  const float nan = NAN, y = 1, params[] = {-1, 1};
  for (MicroOp op : {MicroOp::kRelu, MicroOp::kClip, MicroOp::kMin, MicroOp::kMax, MicroOp::kTanh,
                     MicroOp::kSigmoid, MicroOp::kGelu, MicroOp::kErf, MicroOp::kSign}) {
    const float* a[] = {&nan, &y};
    const float* b[] = {&y, &nan};
    float out = 0;
    micro_op(op)(a, &out, 1, params);
    EXPECT_TRUE(std::isnan(out)) << micro_op_info(op).name;
    if (micro_op_info(op).inputs == 2) {
      micro_op(op)(b, &out, 1, params);
      EXPECT_TRUE(std::isnan(out)) << micro_op_info(op).name;
    }
  }
}

TEST(Elementwise, Masks) {
  const uint8_t in[] = {0, 1, 255, 0};
  float f[4];
  uint8_t back[4];
  mask_from_bytes(in, f, 4);
  bytes_from_mask(f, back, 4);
  EXPECT_EQ(std::vector<uint8_t>(back, back + 4), (std::vector<uint8_t>{0, 1, 1, 0}));
}

}  // namespace
}  // namespace onnxtrain::simd
