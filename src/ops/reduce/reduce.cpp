// ReduceSum, ReduceMean, ReduceMax, ReduceMin, ReduceProd.
#include <cmath>
#include <limits>

#include "ops/common/wide.hpp"
#include "ops/reduce/reduce_kernel.hpp"

namespace onnxtrain::ops {

namespace {

// integer overflow wraps, as numpy's does
template <class C>
C wrap_add(C a, C b) {
  if constexpr (std::is_integral_v<C>)
    return C(std::make_unsigned_t<C>(a) + std::make_unsigned_t<C>(b));
  else
    return a + b;
}
template <class C>
C wrap_mul(C a, C b) {
  if constexpr (std::is_integral_v<C>)
    return C(std::make_unsigned_t<C>(a) * std::make_unsigned_t<C>(b));
  else
    return a * b;
}

template <class C>
struct SumAcc {
  using A = C;
  static A init() { return 0; }
  static void add(A& a, C v) { a = wrap_add(a, v); }
  static void merge(A& a, const A& b) { a = wrap_add(a, b); }
  static C finish(A a, int64_t) { return a; }
};
template <class C>
struct MeanAcc : SumAcc<C> {
  static C finish(C a, int64_t n) {
    if constexpr (std::is_integral_v<C>)
      return n == 0 ? 0 : C(a / C(n));
    else
      return a / C(n);
  }
};
template <class C>
struct ProdAcc {
  using A = C;
  static A init() { return 1; }
  static void add(A& a, C v) { a = wrap_mul(a, v); }
  static void merge(A& a, const A& b) { a = wrap_mul(a, b); }
  static C finish(A a, int64_t) { return a; }
};
template <class C, bool kMax>
struct ExtremeAcc {
  using A = C;
  static A init() {
    using L = std::numeric_limits<C>;
    if constexpr (std::is_same_v<C, bool>)
      return !kMax;
    else if constexpr (L::has_infinity)
      return kMax ? -L::infinity() : L::infinity();
    else
      return kMax ? L::lowest() : L::max();
  }
  // NaN wins, as in numpy
  static void add(A& a, C v) {
    bool take = kMax ? v > a : v < a;
    if constexpr (std::is_floating_point_v<C>) take |= v != v;
    if (take) a = v;
  }
  static void merge(A& a, const A& b) { add(a, b); }
  static C finish(A a, int64_t) { return a; }
};
template <class C>
using MaxAcc = ExtremeAcc<C, true>;
template <class C>
using MinAcc = ExtremeAcc<C, false>;

template <template <class> class F>
Kernel make_sum(Prepare& p) {
  return dispatch<float, double, Half, BFloat16, int64_t, int32_t, uint32_t, uint64_t>(
      p.in(0).dtype, p.node().op, [&]<class T>() { return reduce_kernel<T, F<compute_t<T>>>(p); });
}
template <template <class> class F>
Kernel make_extreme(Prepare& p) {
  return dispatch<float, double, Half, BFloat16, int64_t, int32_t, uint32_t, uint64_t, int8_t,
                  uint8_t, bool>(p.in(0).dtype, p.node().op,
                                 [&]<class T>() { return reduce_kernel<T, F<compute_t<T>>>(p); });
}

template <simd::Reduce kOp>
Impl simd_impl() {
  return {"simd", refuses_simd_reduce,
          [](Prepare& p) { return make_simd_reduce(p, kOp, nullptr); }};
}

using Grads = std::vector<ValueId>;

Grads sum_grad(GradBuilder& b) {
  return reduce_result(b, b.expand_like(unreduce(b, b.dy()), b.x(0)));
}

// Elements behind each result, as a scalar of float32 or of the data's type.
ValueId count(GradBuilder& b, bool in_float) {
  ValueId x = b.x(0), y = b.y();
  if (b.shape_known(x) && b.shape_known(y)) {
    int64_t n = num_elements(b.shape(x)), m = num_elements(b.shape(y));
    const double each = m ? double(n) / double(m) : 1;
    return in_float ? b.scalar(each, DType::kFloat) : b.scalar(each, x);
  }
  auto size = [&](ValueId v) {
    ValueId n = b.call("Size", {v});
    return in_float ? b.call("Cast", {n}, {{"to", int64_t(DType::kFloat)}}) : b.cast_like(n, x);
  };
  ValueId n = size(x), m = size(y);
  return b.div(n, m);
}
// 16-bit types divide in float32: float16 has no numbers above 65504 to count with.
Grads mean_grad(GradBuilder& b) {
  const DType type = b.dtype(b.x(0));
  const bool narrow = is_narrow(type);
  ValueId d = b.dy();
  if (narrow) d = b.call("Cast", {d}, {{"to", int64_t(DType::kFloat)}});
  d = b.div(d, count(b, narrow));
  if (narrow) d = b.cast_like(d, b.x(0));
  return reduce_result(b, b.expand_like(unreduce(b, d), b.x(0)));
}

// ties share the gradient evenly, as in torch.amax
Grads extreme_grad(GradBuilder& b) {
  ValueId x = b.x(0);
  const ValueId same = b.call("Equal", {x, unreduce(b, b.y())});
  const DType type = b.dtype(x);
  const ValueId is = b.cast_like(same, x);
  // 16-bit types cannot count the ties
  const Expr dy = widened(Expr{b, b.dy(), type}), each_one = widened(Expr{b, is, type});
  const ValueId ties = reduce_again(b, "ReduceSum", each_one.v);
  return reduce_result(b, b.mul(is, narrowed(b, b.div(unreduce(b, dy.v), ties), type)));
}

// The product of the others: exact with zeros among the factors.
Grads prod_grad(GradBuilder& b) {
  ValueId x = b.x(0), zero = b.scalar(0, x), one = b.scalar(1, x);
  ValueId is_zero = b.call("Equal", {x, zero});
  ValueId zeros = reduce_again(b, "ReduceSum", b.cast_like(is_zero, x));
  ValueId safe = b.call("Where", {is_zero, one, x});
  ValueId rest = reduce_again(b, "ReduceProd", safe);
  ValueId at_zero = b.call("Where", {b.call("Equal", {zeros, one}), rest, zero});
  ValueId others = b.call("Where", {b.call("Equal", {zeros, zero}), b.div(rest, safe), zero});
  ValueId d = b.call("Where", {is_zero, at_zero, others});
  return reduce_result(b, b.mul(unreduce(b, b.dy()), d));
}

}  // namespace

void register_reduce(OpTable& t) {
  auto add = [&](const char* name, std::vector<Impl> impls, GradFn grad) {
    t.add(reduction(name, std::move(impls), grad));
  };
  add("ReduceSum", {simd_impl<simd::Reduce::kSum>(), {"ref", nullptr, make_sum<SumAcc>}}, sum_grad);
  add("ReduceMean", {simd_impl<simd::Reduce::kMean>(), {"ref", nullptr, make_sum<MeanAcc>}},
      mean_grad);
  add("ReduceProd", {{"ref", nullptr, make_sum<ProdAcc>}}, prod_grad);
  add("ReduceMax", {simd_impl<simd::Reduce::kMax>(), {"ref", nullptr, make_extreme<MaxAcc>}},
      extreme_grad);
  add("ReduceMin", {simd_impl<simd::Reduce::kMin>(), {"ref", nullptr, make_extreme<MinAcc>}},
      extreme_grad);
}

}  // namespace onnxtrain::ops
