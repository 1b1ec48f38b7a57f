// Add, Sub, Mul, Div with broadcasting, and Neg.
#include "op/may_overflow.hpp"
#include "ops/common/elementwise_kernel.hpp"
#include "ops/common/elementwise_program.hpp"

namespace onnxtrain::ops {

namespace {

struct AddF {
  template <class C>
  C operator()(C a, C b) const {
    return C(a + b);
  }
};
struct SubF {
  template <class C>
  C operator()(C a, C b) const {
    return C(a - b);
  }
};
struct MulF {
  template <class C>
  C operator()(C a, C b) const {
    return C(a * b);
  }
};
struct DivF {
  template <class C>
  C operator()(C a, C b) const {
    if constexpr (std::is_integral_v<C>) {
      // no trap on x/0 and MIN/-1: the values are the file's, not ours
      if (b == 0) return 0;
      if constexpr (std::is_signed_v<C>)
        if (b == C(-1)) return C(0 - std::make_unsigned_t<C>(a));
    }
    return C(a / b);
  }
};

template <class F>
Kernel make_binary(Prepare& p) {
  return dispatch<float, double, Half, BFloat16, int64_t, int32_t, uint8_t, int8_t, int16_t,
                  uint16_t, uint32_t, uint64_t>(p.in(0).dtype, p.node().op, [&]<class T>() {
    using C = compute_t<T>;
    // integer overflow wraps, as numpy's does
    if constexpr (std::is_integral_v<C> && std::is_signed_v<C> && !std::is_same_v<F, DivF>) {
      using U = std::make_unsigned_t<C>;
      return binary_kernel<T, T>(p, [](C a, C b) { return C(F{}(U(a), U(b))); });
    } else {
      return binary_kernel<T, T>(p, [](C a, C b) { return F{}(a, b); });
    }
  });
}

Kernel make_neg(Prepare& p) {
  return dispatch<float, double, Half, BFloat16, int64_t, int32_t, int8_t, int16_t>(
      p.in(0).dtype, "Neg", [&]<class T>() {
        return unary_kernel<T, T>(p, [](compute_t<T> v) {
          if constexpr (std::is_integral_v<compute_t<T>>)
            return compute_t<T>(0 - std::make_unsigned_t<compute_t<T>>(v));
          else
            return -v;
        });
      });
}

using Grads = std::vector<ValueId>;
Grads add_grad(GradBuilder& b) { return {b.dy(), b.dy()}; }
Grads sub_grad(GradBuilder& b) { return {b.dy(), b.wants(1) ? b.neg(b.dy()) : kNone}; }
Grads mul_grad(GradBuilder& b) {
  return {b.wants(0) ? b.mul(b.dy(), b.x(1)) : kNone, b.wants(1) ? b.mul(b.dy(), b.x(0)) : kNone};
}
Grads div_grad(GradBuilder& b) {
  ValueId da = b.div(b.dy(), b.x(1));
  return {da, b.wants(1) ? b.neg(b.mul(da, b.y())) : kNone};
}
Grads neg_grad(GradBuilder& b) { return {b.neg(b.dy())}; }

using simd::MicroOp;

template <class F, GradFn grad, MicroOp micro>
void add(OpTable& t, const char* name) {
  Op op{.name = name,
        .shape = shape_broadcast,
        .impls = {micro_impl<micro>(), {"ref", nullptr, make_binary<F>}},
        .grad = legacy_grad<grad>,
        .broadcasts = true,
        .in_place = {{0, 0}, {1, 0}},
        .micro_op = int(micro)};
  t.add(op);
  op.since = 7;
  op.grad = grad;
  t.add(op);
}

}  // namespace

void register_arithmetic(OpTable& t) {
  set_may_overflow("Div");
  add<AddF, add_grad, MicroOp::kAdd>(t, "Add");
  add<SubF, sub_grad, MicroOp::kSub>(t, "Sub");
  add<MulF, mul_grad, MicroOp::kMul>(t, "Mul");
  add<DivF, div_grad, MicroOp::kDiv>(t, "Div");
  t.add({.name = "Neg",
         .shape = shape_same,
         .impls = {micro_impl<MicroOp::kNeg>(), {"ref", nullptr, make_neg}},
         .grad = neg_grad,
         .in_place = {{0, 0}},
         .micro_op = int(MicroOp::kNeg)});
}

}  // namespace onnxtrain::ops
