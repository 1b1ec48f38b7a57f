// Activations made of pieces: Relu, LeakyRelu, Elu, Selu, Celu, ThresholdedRelu, HardSigmoid,
// HardSwish, Shrink, Abs, and Sign. At kinks the derivative is PyTorch's choice.
#include "ops/nn/activation_kernel.hpp"

namespace onnxtrain::ops {

namespace {

struct Relu {
  static constexpr bool kFromY = true;
  explicit Relu(const Node&) {}
  // NaN passes, as in PyTorch and numpy
  template <class C>
  C operator()(C x) const {
    return x < C(0) ? C(0) : x;
  }
  template <class C>
  C grad(C dy, C y) const {
    return y > C(0) ? dy : C(0);
  }
  Expr lower(Expr dy, Expr y) const { return where(y > 0, dy, 0); }
  Tile tile() const { return {simd::MicroOp::kRelu}; }
  Tile grad_tile() const { return {simd::MicroOp::kReluGrad}; }
  const char* epilogue() const { return "Relu"; }
};

struct LeakyRelu {
  static constexpr bool kFromY = false;  // the sign of the result is not that of x if alpha < 0
  float alpha;
  explicit LeakyRelu(const Node& n) : alpha(n.f("alpha", 0.01f)) {}
  template <class C>
  C operator()(C x) const {
    return x >= C(0) ? x : C(alpha) * x;
  }
  template <class C>
  C grad(C dy, C x) const {
    return x > C(0) ? dy : C(alpha) * dy;
  }
  Expr lower(Expr dy, Expr x) const { return where(x > 0, dy, double(alpha) * dy); }
  Tile tile() const { return {simd::MicroOp::kLeakyRelu, {alpha, 0}}; }
  Tile grad_tile() const { return {simd::MicroOp::kLeakyReluGrad, {alpha, 0}}; }
};

struct Elu {
  static constexpr bool kFromY = false;
  float alpha;
  explicit Elu(const Node& n) : alpha(n.f("alpha", 1)) {}
  template <class C>
  C operator()(C x) const {
    return x < C(0) ? C(alpha) * std::expm1(x) : x;
  }
  template <class C>
  C grad(C dy, C x) const {
    return x > C(0) ? dy : dy * C(alpha) * std::exp(x);
  }
  Expr lower(Expr dy, Expr x) const {
    return where(x > 0, dy, dy * double(alpha) * where(x > 0, 0, x)("Exp"));
  }
  Tile tile() const { return {simd::MicroOp::kElu, {alpha, 0}}; }
};

struct Selu {
  static constexpr bool kFromY = false;
  float alpha, gamma;
  explicit Selu(const Node& n) {
    bool old = n.i("opset", n.version) < 6;
    alpha = n.f("alpha", old ? 1.6732f : 1.67326319217681884765625f);
    gamma = n.f("gamma", old ? 1.0507f : 1.05070102214813232421875f);
  }
  template <class C>
  C operator()(C x) const {
    return x > C(0) ? C(gamma) * x : C(gamma) * C(alpha) * std::expm1(x);
  }
  template <class C>
  C grad(C dy, C x) const {
    return x > C(0) ? C(gamma) * dy : dy * C(gamma) * C(alpha) * std::exp(x);
  }
  Expr lower(Expr dy, Expr x) const {
    return where(x > 0, dy * double(gamma),
                 dy * (double(gamma) * double(alpha)) * where(x > 0, 0, x)("Exp"));
  }
};

struct Celu {
  static constexpr bool kFromY = false;
  float alpha;
  explicit Celu(const Node& n) : alpha(n.f("alpha", 1)) {}
  template <class C>
  C operator()(C x) const {
    return x > C(0) ? x : C(alpha) * std::expm1(x / C(alpha));
  }
  template <class C>
  C grad(C dy, C x) const {
    return x > C(0) ? dy : dy * std::exp(x / C(alpha));
  }
  Expr lower(Expr dy, Expr x) const {
    return where(x > 0, dy, dy * (where(x > 0, 0, x) / double(alpha))("Exp"));
  }
};

struct ThresholdedRelu {
  static constexpr bool kFromY = false;
  float alpha;
  explicit ThresholdedRelu(const Node& n) : alpha(n.f("alpha", 1)) {}
  template <class C>
  C operator()(C x) const {
    return x > C(alpha) ? x : C(0);
  }
  template <class C>
  C grad(C dy, C x) const {
    return x > C(alpha) ? dy : C(0);
  }
  Expr lower(Expr dy, Expr x) const { return where(x > double(alpha), dy, 0); }
};

struct HardSigmoid {
  static constexpr bool kFromY = true;
  float alpha, beta;
  explicit HardSigmoid(const Node& n) : alpha(n.f("alpha", 0.2f)), beta(n.f("beta", 0.5f)) {}
  template <class C>
  C operator()(C x) const {
    C v = C(alpha) * x + C(beta);
    return v < C(0) ? C(0) : v > C(1) ? C(1) : v;
  }
  template <class C>
  C grad(C dy, C y) const {
    return y > C(0) && y < C(1) ? C(alpha) * dy : C(0);
  }
  Expr lower(Expr dy, Expr y) const { return where(y > 0, where(y < 1, dy * double(alpha), 0), 0); }
  Tile tile() const { return {simd::MicroOp::kHardSigmoid, {alpha, beta}}; }
};

struct HardSwish {
  static constexpr bool kFromY = false;
  explicit HardSwish(const Node&) {}
  template <class C>
  C operator()(C x) const {
    C v = x / C(6) + C(0.5);
    return x * (v < C(0) ? C(0) : v > C(1) ? C(1) : v);
  }
  template <class C>
  C grad(C dy, C x) const {
    return x <= C(-3) ? C(0) : x < C(3) ? dy * (x / C(3) + C(0.5)) : dy;
  }
  Expr lower(Expr dy, Expr x) const {
    return where(x > -3, where(x < 3, dy * (x / 3 + 0.5), dy), 0);
  }
  Tile tile() const { return {simd::MicroOp::kHardSwish}; }
};

struct Shrink {
  static constexpr bool kFromY = false;
  float bias, lambd;
  explicit Shrink(const Node& n) : bias(n.f("bias", 0)), lambd(n.f("lambd", 0.5f)) {}
  template <class C>
  C operator()(C x) const {
    using F = std::conditional_t<std::is_integral_v<C>, double, C>;
    if (F(x) < F(-lambd)) return C(F(x) + F(bias));
    return F(x) > F(lambd) ? C(F(x) - F(bias)) : C(0);
  }
  template <class C>
  C grad(C dy, C x) const {
    return x < C(-lambd) || x > C(lambd) ? dy : C(0);
  }
  Expr lower(Expr dy, Expr x) const {
    return where(x < -double(lambd), dy, where(x > double(lambd), dy, 0));
  }
};

struct Abs {
  static constexpr bool kFromY = false;
  explicit Abs(const Node&) {}
  template <class C>
  C operator()(C x) const {
    if constexpr (std::is_unsigned_v<C>)
      return x;
    else if constexpr (std::is_integral_v<C>)
      return x < 0 ? C(0 - std::make_unsigned_t<C>(x)) : x;
    else
      return std::fabs(x);
  }
  template <class C>
  C grad(C dy, C x) const {
    return x > C(0) ? dy : x < C(0) ? -dy : C(0);
  }
  Expr lower(Expr dy, Expr x) const { return dy * x("Sign"); }
  Tile tile() const { return {simd::MicroOp::kAbs}; }
  Tile grad_tile() const { return {simd::MicroOp::kAbsGrad}; }
};

struct Sign {
  explicit Sign(const Node&) {}
  template <class C>
  C operator()(C x) const {
    return x > C(0) ? C(1) : x < C(0) ? C(-1) : x == C(0) ? C(0) : x;
  }
};
std::vector<ValueId> zero_grad(GradBuilder&) { return {kNone}; }

}  // namespace

void register_activations_piecewise(OpTable& t) {
  add_activation<Relu, float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t>(t, "Relu");
  add_float_activation<LeakyRelu>(t, "LeakyRelu");
  add_float_activation<Elu>(t, "Elu");
  add_float_activation<Selu>(t, "Selu");
  add_float_activation<Celu>(t, "Celu");
  add_float_activation<ThresholdedRelu>(t, "ThresholdedRelu");
  add_float_activation<HardSigmoid>(t, "HardSigmoid");
  add_float_activation<HardSwish>(t, "HardSwish");
  add_activation<Shrink, float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                 uint16_t, uint32_t, uint64_t>(t, "Shrink");
  add_activation<Abs, float, double, Half, BFloat16, int8_t, int16_t, int32_t, int64_t, uint8_t,
                 uint16_t, uint32_t, uint64_t>(t, "Abs");
  t.add({.name = "Sign",
         .shape = shape_same,
         .impls = {{"ref", nullptr,
                    make_activation<Sign, float, double, Half, BFloat16, int8_t, int16_t, int32_t,
                                    int64_t, uint8_t, uint16_t, uint32_t, uint64_t>}},
         .grad = zero_grad,
         .in_place = {{0, 0}}});
}

}  // namespace onnxtrain::ops
