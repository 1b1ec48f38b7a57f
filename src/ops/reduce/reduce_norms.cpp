// ReduceL1, ReduceL2, ReduceSumSquare, ReduceLogSum, ReduceLogSumExp.
#include <cmath>
#include <limits>

#include "ops/common/wide.hpp"
#include "ops/reduce/reduce_kernel.hpp"

namespace onnxtrain::ops {

namespace {

// Functions of a sum: integers are summed as integers and leave through double.
template <class C, class Term, class Last>
struct TermAcc {
  using A = C;
  static A init() { return 0; }
  static void add(A& a, C v) { merge(a, Term{}(v)); }
  static void merge(A& a, const A& b) {
    if constexpr (std::is_integral_v<C>)
      a = C(std::make_unsigned_t<C>(a) + std::make_unsigned_t<C>(b));
    else
      a += b;
  }
  static C finish(A a, int64_t) { return Last{}(a); }
};
struct Same {
  template <class C>
  C operator()(C v) const {
    return v;
  }
};
struct AbsV {
  template <class C>
  C operator()(C v) const {
    if constexpr (std::is_unsigned_v<C>)
      return v;
    else if constexpr (std::is_integral_v<C>)
      return v < 0 ? C(0 - std::make_unsigned_t<C>(v)) : v;
    else
      return std::fabs(v);
  }
};
struct SquareV {
  template <class C>
  C operator()(C v) const {
    if constexpr (std::is_integral_v<C>)
      return C(std::make_unsigned_t<C>(v) * std::make_unsigned_t<C>(v));
    else
      return v * v;
  }
};
// integers: by way of double, kept in range
template <class C>
C from_double(double v) {
  if (!(v > double(std::numeric_limits<C>::lowest()))) return std::numeric_limits<C>::lowest();
  if (v >= double(std::numeric_limits<C>::max())) return std::numeric_limits<C>::max();
  return C(v);
}
struct RootV {
  template <class C>
  C operator()(C v) const {
    if constexpr (std::is_integral_v<C>)
      return from_double<C>(std::sqrt(double(v)));
    else
      return std::sqrt(v);
  }
};
struct LogV {
  template <class C>
  C operator()(C v) const {
    if constexpr (std::is_integral_v<C>)
      return from_double<C>(std::log(double(v)));
    else
      return std::log(v);
  }
};
template <class C>
using L1Acc = TermAcc<C, AbsV, Same>;
template <class C>
using L2Acc = TermAcc<C, SquareV, RootV>;
template <class C>
using SquareAcc = TermAcc<C, SquareV, Same>;
template <class C>
using LogSumAcc = TermAcc<C, Same, LogV>;

// log(sum(exp)) relative to the largest element seen so far: no overflow.
template <class C>
struct LogSumExpAcc {
  using F = std::conditional_t<std::is_integral_v<C>, double, C>;
  struct A {
    F top, sum;
  };
  static constexpr F kInf = std::numeric_limits<F>::infinity();
  static A init() { return {-kInf, 0}; }
  static void put(A& a, F v, F s) {
    if (v == a.top) {
      a.sum += s;
    } else if (v > a.top) {
      a.sum = a.sum * std::exp(a.top - v) + s;
      a.top = v;
    } else if (v < a.top) {
      a.sum += s * std::exp(v - a.top);
    } else if (v != v) {  // NaN stays
      a.top = v;
      a.sum = v;
    }
  }
  static void add(A& a, C v) { put(a, F(v), 1); }
  static void merge(A& a, const A& b) { put(a, b.top, b.sum); }
  static C finish(A a, int64_t) {
    F v = a.top == -kInf ? -kInf : a.top + std::log(a.sum);
    if constexpr (std::is_integral_v<C>)
      return from_double<C>(v);
    else
      return v;
  }
};

template <template <class> class F>
Kernel make(Prepare& p) {
  return dispatch<float, double, Half, BFloat16, int64_t, int32_t, uint32_t, uint64_t>(
      p.in(0).dtype, p.node().op, [&]<class T>() { return reduce_kernel<T, F<compute_t<T>>>(p); });
}

float root(float v) { return std::sqrt(v); }
float logarithm(float v) { return std::log(v); }
template <simd::Reduce kOp, float (*kLast)(float)>
Impl simd_impl() {
  return {"simd", refuses_simd_reduce, [](Prepare& p) { return make_simd_reduce(p, kOp, kLast); }};
}

using Grads = std::vector<ValueId>;
Grads l1_grad(GradBuilder& b) {
  return reduce_result(b, b.mul(unreduce(b, b.dy()), b.call("Sign", {b.x(0)})));
}
// x / |x|, and 0 where the norm is 0
Grads l2_grad(GradBuilder& b) {
  ValueId y = b.y();
  ValueId safe =
      b.call("Where", {b.call("Equal", {y, b.scalar(0, b.x(0))}), b.scalar(1, b.x(0)), y});
  return reduce_result(b, b.mul(unreduce(b, b.div(b.dy(), safe)), b.x(0)));
}
Grads square_grad(GradBuilder& b) {
  ValueId twice = b.mul(b.dy(), b.scalar(2, b.x(0)));
  return reduce_result(b, b.mul(unreduce(b, twice), b.x(0)));
}
// 16-bit types: the logarithm again in float32, since its rounding is a relative error of the
// gradient (10.5 in bfloat16: 3 %).
Grads log_sum_grad(GradBuilder& b) {
  const DType type = b.dtype(b.x(0));
  const Expr dy = widened(Expr{b, b.dy(), type});
  const Expr x = widened(Expr{b, b.x(0), type});
  const ValueId each = is_narrow(type) ? b.div(unreduce(b, dy.v), reduce_again(b, "ReduceSum", x.v))
                                       : unreduce(b, b.mul(dy.v, b.call("Exp", {b.neg(b.y())})));
  return reduce_result(b, b.expand_like(narrowed(b, each, type), b.x(0)));
}
Grads log_sum_exp_grad(GradBuilder& b) {
  const DType type = b.dtype(b.x(0));
  const Expr dy = widened(Expr{b, b.dy(), type});
  const Expr x = widened(Expr{b, b.x(0), type});
  const ValueId y = is_narrow(type) ? reduce_again(b, "ReduceLogSumExp", x.v) : unreduce(b, b.y());
  const ValueId e = b.call("Exp", {b.sub(x.v, y)});
  return reduce_result(b, narrowed(b, b.mul(unreduce(b, dy.v), e), type));
}

}  // namespace

void register_reduce_norms(OpTable& t) {
  auto add = [&](const char* name, std::vector<Impl> impls, GradFn grad) {
    t.add(reduction(name, std::move(impls), grad));
  };
  using simd::Reduce;
  add("ReduceL1", {simd_impl<Reduce::kSumAbs, nullptr>(), {"ref", nullptr, make<L1Acc>}}, l1_grad);
  add("ReduceL2", {simd_impl<Reduce::kSumSquare, root>(), {"ref", nullptr, make<L2Acc>}}, l2_grad);
  add("ReduceSumSquare",
      {simd_impl<Reduce::kSumSquare, nullptr>(), {"ref", nullptr, make<SquareAcc>}}, square_grad);
  add("ReduceLogSum", {simd_impl<Reduce::kSum, logarithm>(), {"ref", nullptr, make<LogSumAcc>}},
      log_sum_grad);
  add("ReduceLogSumExp", {{"ref", nullptr, make<LogSumExpAcc>}}, log_sum_exp_grad);
}

}  // namespace onnxtrain::ops
