// Smooth activations: Sigmoid, Softplus, Softsign, Mish, Gelu, Swish.
#include "ops/nn/activation_kernel.hpp"

namespace onnxtrain::ops {

namespace {

template <class C>
C sigmoid(C x) {  // no overflow on either side
  C e = std::exp(-std::fabs(x));
  return (x < C(0) ? e : C(1)) / (C(1) + e);
}
template <class C>
C softplus(C x) {
  return (x > C(0) ? x : C(0)) + std::log1p(std::exp(-std::fabs(x)));
}

struct Sigmoid {
  static constexpr bool kFromY = true;
  explicit Sigmoid(const Node&) {}
  template <class C>
  C operator()(C x) const {
    return sigmoid(x);
  }
  template <class C>
  C grad(C dy, C y) const {
    return dy * (y * (C(1) - y));
  }
  Expr lower(Expr dy, Expr y) const { return dy * (y * (1.0 - y)); }
  Tile tile() const { return {simd::MicroOp::kSigmoid}; }
  Tile grad_tile() const { return {simd::MicroOp::kSigmoidGrad}; }
  const char* epilogue() const { return "Sigmoid"; }
};

struct Softplus {
  static constexpr bool kFromY = false;
  explicit Softplus(const Node&) {}
  template <class C>
  C operator()(C x) const {
    return softplus(x);
  }
  template <class C>
  C grad(C dy, C x) const {
    return dy * sigmoid(x);
  }
  Expr lower(Expr dy, Expr x) const { return dy * x("Sigmoid"); }
  Tile tile() const { return {simd::MicroOp::kSoftplus}; }
  Tile grad_tile() const { return {simd::MicroOp::kSoftplusGrad}; }
};

struct Softsign {
  static constexpr bool kFromY = false;
  explicit Softsign(const Node&) {}
  template <class C>
  C operator()(C x) const {
    return x / (C(1) + std::fabs(x));
  }
  template <class C>
  C grad(C dy, C x) const {
    C d = C(1) + std::fabs(x);
    return dy / (d * d);
  }
  Expr lower(Expr dy, Expr x) const {
    Expr d = 1.0 + x("Abs");
    return dy / (d * d);
  }
};

struct Mish {
  static constexpr bool kFromY = false;
  explicit Mish(const Node&) {}
  template <class C>
  C operator()(C x) const {
    return x * std::tanh(softplus(x));
  }
  template <class C>
  C grad(C dy, C x) const {
    C t = std::tanh(softplus(x));
    return dy * (t + x * sigmoid(x) * (C(1) - t * t));
  }
  Expr lower(Expr dy, Expr x) const {
    Expr t = x("Softplus")("Tanh");
    return dy * (t + x * x("Sigmoid") * (1.0 - t * t));
  }
};

struct Gelu {
  static constexpr bool kFromY = false;
  static constexpr double kHalfRoot = 0.70710678118654752440, kDensity = 0.39894228040143267794;
  static constexpr double kRoot = 0.79788456080286535588, kCubic = 0.044715;  // sqrt(2/pi)
  bool tanh;
  explicit Gelu(const Node& n) {
    std::string how = n.s("approximate", "none");
    if (how != "none" && how != "tanh")
      model_error("OT1134", cat("approximate of Gelu is '", how, "', it can be none or tanh"));
    tanh = how == "tanh";
  }
  template <class C>
  C operator()(C x) const {
    if (!tanh) return C(0.5) * x * (C(1) + std::erf(x * C(kHalfRoot)));
    return C(0.5) * x * (C(1) + std::tanh(C(kRoot) * (x + C(kCubic) * x * x * x)));
  }
  template <class C>
  C grad(C dy, C x) const {
    if (!tanh) {
      C cdf = C(0.5) * (C(1) + std::erf(x * C(kHalfRoot)));
      return dy * (cdf + x * C(kDensity) * std::exp(C(-0.5) * x * x));
    }
    C t = std::tanh(C(kRoot) * (x + C(kCubic) * x * x * x));
    C inner = C(kRoot) * (C(1) + C(3 * kCubic) * x * x);
    return dy * (C(0.5) * (C(1) + t) + C(0.5) * x * (C(1) - t * t) * inner);
  }
  Expr lower(Expr dy, Expr x) const {
    if (!tanh)
      return dy * (0.5 * (1.0 + (x * kHalfRoot)("Erf")) + x * kDensity * ((x * x) * -0.5)("Exp"));
    Expr t = ((x + (x * x * x) * kCubic) * kRoot)("Tanh");
    return dy *
           ((1.0 + t) * 0.5 + x * 0.5 * (1.0 - t * t) * ((1.0 + (x * x) * (3 * kCubic)) * kRoot));
  }
  Tile tile() const { return {tanh ? simd::MicroOp::kGeluTanh : simd::MicroOp::kGelu}; }
  Tile grad_tile() const {
    return {tanh ? simd::MicroOp::kGeluTanhGrad : simd::MicroOp::kGeluGrad};
  }
  const char* epilogue() const { return tanh ? "GeluTanh" : "Gelu"; }
};

struct Swish {
  static constexpr bool kFromY = false;
  float alpha;
  explicit Swish(const Node& n) : alpha(n.f("alpha", 1)) {}
  template <class C>
  C operator()(C x) const {
    return x * sigmoid(C(alpha) * x);
  }
  template <class C>
  C grad(C dy, C x) const {
    C s = sigmoid(C(alpha) * x);
    return dy * (s + C(alpha) * x * s * (C(1) - s));
  }
  Expr lower(Expr dy, Expr x) const {
    Expr s = (x * double(alpha))("Sigmoid");
    return dy * (s + (x * double(alpha)) * s * (1.0 - s));
  }
  Tile tile() const { return {alpha == 1 ? simd::MicroOp::kSilu : simd::MicroOp::kCount}; }
  Tile grad_tile() const { return {alpha == 1 ? simd::MicroOp::kSiluGrad : simd::MicroOp::kCount}; }
};

}  // namespace

void register_activations_smooth(OpTable& t) {
  add_float_activation<Sigmoid>(t, "Sigmoid");
  add_float_activation<Softplus>(t, "Softplus");
  add_float_activation<Softsign>(t, "Softsign");
  add_float_activation<Mish>(t, "Mish");
  add_float_activation<Gelu>(t, "Gelu");
  add_float_activation<Swish>(t, "Swish");
}

}  // namespace onnxtrain::ops
