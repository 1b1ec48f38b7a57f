// And, Or, Xor, Not on booleans; the bitwise operators and BitShift on integers; IsNaN, IsInf; Mod.
#include "ops/common/elementwise_kernel.hpp"
#include "ops/common/elementwise_program.hpp"

namespace onnxtrain::ops {

namespace {

struct AndF {
  template <class C>
  C operator()(C a, C b) const {
    return C(a & b);
  }
};
struct OrF {
  template <class C>
  C operator()(C a, C b) const {
    return C(a | b);
  }
};
struct XorF {
  template <class C>
  C operator()(C a, C b) const {
    return C(a ^ b);
  }
};

template <class F>
Kernel make_bool(Prepare& p) {
  return dispatch<bool>(p.in(0).dtype, p.node().op, [&]<class T>() {
    return binary_kernel<bool, bool>(p, [](bool a, bool b) { return F{}(a, b); });
  });
}

template <class F>
decltype(auto) any_integer(DType t, std::string_view op, F&& f) {
  return dispatch<int64_t, int32_t, uint8_t, int8_t, int16_t, uint16_t, uint32_t, uint64_t>(
      t, op, std::forward<F>(f));
}

template <class F>
Kernel make_bitwise(Prepare& p) {
  return any_integer(p.in(0).dtype, p.node().op, [&]<class T>() {
    return binary_kernel<T, T>(p, [](T a, T b) { return F{}(a, b); });
  });
}

Kernel make_not(Prepare& p) {
  return dispatch<bool>(p.in(0).dtype, "Not", [&]<class T>() {
    return unary_kernel<T, T>(p, [](bool v) { return !v; });
  });
}
Kernel make_bitwise_not(Prepare& p) {
  return any_integer(p.in(0).dtype, "BitwiseNot",
                     [&]<class T>() { return unary_kernel<T, T>(p, [](T v) { return T(~v); }); });
}

bool shifts_left(const Node& n) {
  std::string d = n.s("direction", "");
  if (d != "LEFT" && d != "RIGHT") model_error("OT1130", cat("direction of BitShift is '", d, "'"));
  return d == "LEFT";
}

void shift_shape(ShapeCtx& c) {
  shifts_left(c.node());
  shape_broadcast(c);
}

// A shift by too many bits, or by a negative number, leaves only copies of the sign.
template <class T>
T shift(T v, T by, bool left) {
  using U = std::make_unsigned_t<T>;
  if (by < T(0) || uint64_t(by) >= sizeof(T) * 8) return !left && v < T(0) ? T(-1) : T(0);
  return left ? T(U(uint64_t(U(v)) << uint64_t(by))) : T(v >> by);
}

Kernel make_shift(Prepare& p) {
  bool left = shifts_left(p.node());
  return any_integer(p.in(0).dtype, "BitShift", [&]<class T>() {
    return binary_kernel<T, T>(p, [left](T a, T b) { return shift<T>(a, b, left); });
  });
}

void bool_shape(ShapeCtx& c) { c.set(0, DType::kBool, c.shape(0)); }

template <class F>
decltype(auto) any_float(DType t, std::string_view op, F&& f) {
  return dispatch<float, double, Half, BFloat16, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2,
                  Float8E5M2FNUZ>(t, op, std::forward<F>(f));
}

Kernel make_isnan(Prepare& p) {
  return any_float(p.in(0).dtype, "IsNaN", [&]<class T>() {
    return unary_kernel<T, bool>(p, [](compute_t<T> v) { return v != v; });
  });
}

Kernel make_isinf(Prepare& p) {
  bool negative = p.node().i("detect_negative", 1) != 0,
       positive = p.node().i("detect_positive", 1) != 0;
  return any_float(p.in(0).dtype, "IsInf", [&]<class T>() {
    return unary_kernel<T, bool>(
        p, [=](compute_t<T> v) { return std::isinf(v) && (v > 0 ? positive : negative); });
  });
}

// fmod = 0 takes the sign of the divisor (Python's %), fmod = 1 that of the dividend (C's).
template <class C>
C modulo(C a, C b, bool fmod) {
  if constexpr (std::is_floating_point_v<C>) {
    C r = std::fmod(a, b);
    if (fmod) return r;
    if (r == C(0)) return std::copysign(C(0), b);
    return (r < C(0)) != (b < C(0)) ? r + b : r;
  } else {
    if (b == C(0)) return C(0);
    if constexpr (std::is_signed_v<C>) {
      if (b == C(-1)) return C(0);
      C r = C(a % b);
      return !fmod && r != C(0) && (r < C(0)) != (b < C(0)) ? C(r + b) : r;
    } else {
      return C(a % b);
    }
  }
}

Kernel make_mod(Prepare& p) {
  bool fmod = p.node().i("fmod", 0) != 0;
  return dispatch<float, double, Half, BFloat16, int64_t, int32_t, uint8_t, int8_t, int16_t,
                  uint16_t, uint32_t, uint64_t>(p.in(0).dtype, "Mod", [&]<class T>() {
    return binary_kernel<T, T>(
        p, [fmod](compute_t<T> a, compute_t<T> b) { return modulo(a, b, fmod); });
  });
}

// a - q b with a whole number q that is constant around almost every point
std::vector<ValueId> mod_grad(GradBuilder& b) {
  std::vector<ValueId> g = {b.dy(), kNone};
  if (b.wants(1)) {
    ValueId q = b.call("Round", {b.div(b.sub(b.x(0), b.y()), b.x(1))});
    g[1] = b.neg(b.mul(b.dy(), q));
  }
  return g;
}

constexpr const char* kBoolean = "its result is true or false";
constexpr const char* kInteger = "it works on the bits of integers";

}  // namespace

void register_logic(OpTable& t) {
  auto binary = [&](const char* name, auto make, const char* why, int micro = -1) {
    t.add({.name = name,
           .shape = shape_broadcast,
           .impls = {{"ref", nullptr, make}},
           .no_grad = why,
           .broadcasts = true,
           .in_place = {{0, 0}, {1, 0}},
           .micro_op = micro});
  };
  binary("And", make_bool<AndF>, kBoolean, int(simd::MicroOp::kAnd));
  binary("Or", make_bool<OrF>, kBoolean, int(simd::MicroOp::kOr));
  binary("Xor", make_bool<XorF>, kBoolean, int(simd::MicroOp::kXor));
  binary("BitwiseAnd", make_bitwise<AndF>, kInteger);
  binary("BitwiseOr", make_bitwise<OrF>, kInteger);
  binary("BitwiseXor", make_bitwise<XorF>, kInteger);
  t.add({.name = "BitShift",
         .shape = shift_shape,
         .impls = {{"ref", nullptr, make_shift}},
         .no_grad = kInteger,
         .broadcasts = true,
         .in_place = {{0, 0}, {1, 0}}});
  t.add({.name = "Not",
         .shape = shape_same,
         .impls = {{"ref", nullptr, make_not}},
         .no_grad = kBoolean,
         .in_place = {{0, 0}},
         .micro_op = int(simd::MicroOp::kNot)});
  t.add({.name = "BitwiseNot",
         .shape = shape_same,
         .impls = {{"ref", nullptr, make_bitwise_not}},
         .no_grad = kInteger,
         .in_place = {{0, 0}}});
  t.add({.name = "IsNaN",
         .shape = bool_shape,
         .impls = {{"ref", nullptr, make_isnan}},
         .no_grad = kBoolean});
  t.add({.name = "IsInf",
         .shape = bool_shape,
         .impls = {{"ref", nullptr, make_isinf}},
         .no_grad = kBoolean});
  t.add({.name = "Mod",
         .shape = shape_broadcast,
         .impls = {{"ref", nullptr, make_mod}},
         .grad = mod_grad,
         .broadcasts = true,
         .in_place = {{0, 0}, {1, 0}},
         .settings_from = 0});
}

}  // namespace onnxtrain::ops
