// Pow: the exponent may have another type than the base; the result has the base's.
#include "op/may_overflow.hpp"
#include "ops/common/cast_kernel.hpp"
#include "ops/common/elementwise_kernel.hpp"
#include "ops/common/elementwise_program.hpp"

namespace onnxtrain::ops {

namespace {

void shape(ShapeCtx& c) {
  c.set(0, c.dtype(0), broadcast(c.shape(0), second_shape(c.node(), c.shape(0), c.shape(1))));
}

struct FloatPow {
  template <class C>
  C operator()(C a, C b) const {
    if (b == C(2)) return a * a;
    if (b == C(1)) return a;
    if (b == C(0.5)) return std::sqrt(a);
    if (b == C(3)) return a * a * a;
    return std::pow(a, b);
  }
};

// Wraps around like all integer arithmetic; a negative exponent gives the truncated fraction.
template <class C>
C int_pow(C a, int64_t n) {
  if (n < 0)
    return a == C(1) ? C(1) : a == C(-1) && std::is_signed_v<C> ? (n % 2 ? C(-1) : C(1)) : C(0);
  using U = std::make_unsigned_t<C>;
  uint64_t base = U(a), result = 1;
  for (uint64_t e = uint64_t(n); e; e >>= 1) {
    if (e & 1) result *= base;
    base *= base;
  }
  return C(U(result));
}

template <class C>
C int_pow_float(C a, double n) {
  double v = std::pow(double(a), n);
  return v >= -9.2e18 && v <= 9.2e18 ? C(int64_t(v)) : C(0);
}

// Runs `f` with the exponents converted to type E first, in scratch memory unless they are that
// already.
template <class T, class E, class F>
Kernel with_exponent(Prepare& p, F f) {
  if (p.in(1).dtype == DTypeOf<E>::value) return binary_kernel<T, T, E>(p, f);
  int64_t n = p.in(1).size();
  DType from = p.in(1).dtype;
  Kernel inner = binary_kernel<T, T, E>(p, f);
  p.workspace = size_t(n) * sizeof(E);
  return [inner = std::move(inner), n, from](const Run& r) {
    cast_elements(from, r.inputs[1], DTypeOf<E>::value, r.workspace, n, {});
    void* in[2] = {r.inputs[0], r.workspace};
    Run q = r;
    q.inputs = in;
    inner(q);
  };
}

Kernel make(Prepare& p) {
  DType exponent = p.in(1).dtype;
  if (exponent == DType::kString) unsupported_dtype(exponent, "Pow");
  check_castable(exponent);
  return dispatch<float, double, Half, BFloat16, int32_t, int64_t, uint32_t, uint64_t, int16_t,
                  uint16_t, int8_t, uint8_t>(p.in(0).dtype, "Pow", [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    if constexpr (std::is_floating_point_v<C>) {
      return with_exponent<T, C>(p, [](C a, C b) { return FloatPow{}(a, b); });
    } else {
      if (dtype_is_float(exponent))
        return with_exponent<T, double>(p, [](C a, double b) { return int_pow_float(a, b); });
      return with_exponent<T, int64_t>(p, [](C a, int64_t b) { return int_pow(a, b); });
    }
  });
}

// The single value of a constant exponent, or NaN.
double constant_exponent(GradBuilder& b) {
  const Tensor* t = b.constant(b.x(1));
  return t && t->size() == 1 ? t->to_doubles()[0] : NAN;
}

ValueId base_grad(GradBuilder& b, ValueId x, ValueId e) {
  double k = constant_exponent(b);
  if (k == 0) return b.zeros_like(b.y());
  if (k == 1) return b.dy();
  if (k == 2) return b.mul(b.dy(), b.mul(b.scalar(2, x), x));
  ValueId less = b.sub(e, b.scalar(1, e));
  ValueId slope = b.mul(e, b.call("Pow", {x, less}));
  // 0 * 0^-1 must be 0
  if (std::isnan(k))
    slope = b.call("Where", {b.call("Equal", {e, b.scalar(0, e)}), b.scalar(0, x), slope});
  return b.mul(b.dy(), slope);
}

std::vector<ValueId> grad(GradBuilder& b) {
  ValueId x = b.x(0), e = b.x(1);
  std::vector<ValueId> g = {kNone, kNone};
  bool float_exponent = dtype_is_differentiable(b.dtype(e));
  e = b.cast_like(e, x);
  if (b.wants(0)) g[0] = base_grad(b, x, e);
  if (b.wants(1) && float_exponent) {
    // y log x, and 0 where 0^e does not change with e (PyTorch's rule)
    ValueId zero = b.scalar(0, x);
    ValueId flat = b.call("And", {b.call("Equal", {x, zero}), b.call("GreaterOrEqual", {e, zero})});
    ValueId slope = b.call("Where", {flat, zero, b.mul(b.y(), b.call("Log", {x}))});
    g[1] = b.cast_like(b.mul(b.dy(), slope), b.x(1));
  }
  return g;
}

}  // namespace

void register_pow(OpTable& t) {
  set_may_overflow("Pow");
  Op op{.name = "Pow",
        .shape = shape,
        .impls = {micro_impl<simd::MicroOp::kPow>(), {"ref", nullptr, make}},
        .grad = legacy_grad<grad>,
        .broadcasts = true,
        .in_place = {{0, 0}},
        .micro_op = int(simd::MicroOp::kPow)};
  t.add(op);
  op.since = 7;
  op.grad = grad;
  t.add(op);
}

}  // namespace onnxtrain::ops
