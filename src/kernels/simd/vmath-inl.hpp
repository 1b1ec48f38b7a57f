// Vector functions on Highway vectors of float: one instruction sequence for any value, so an
// element gives the same bits wherever it stands. Included once per instruction set.
#if defined(ONNXTRAIN_VMATH_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXTRAIN_VMATH_INL
#undef ONNXTRAIN_VMATH_INL
#else
#define ONNXTRAIN_VMATH_INL
#endif

#include <cmath>
#include <limits>

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
namespace vm {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<D>;
using V = hn::Vec<D>;
using VI = hn::Vec<DI>;

HWY_INLINE V set(float x) { return hn::Set(D(), x); }
HWY_INLINE V fma(V a, V b, V c) { return hn::MulAdd(a, b, c); }
// A comparison that lets NaN through, unlike the minimum and maximum instructions.
HWY_INLINE V at_most(V x, float hi) { return hn::IfThenElse(x > set(hi), set(hi), x); }
HWY_INLINE V at_least(V x, float lo) { return hn::IfThenElse(x < set(lo), set(lo), x); }

// 2^n for -126 <= n <= 127
HWY_INLINE V pow2i(VI n) {
  const DI di;
  return hn::BitCast(D(), hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
}

// x = n ln2 + r; returns r^2 p(r) + r = e^r - 1
HWY_INLINE V exp_reduced(V x, V* n) {
  *n = hn::Round(hn::Mul(x, set(1.44269504088896341f)));
  V r = hn::NegMulAdd(*n, set(0.693359375f), x);
  r = hn::NegMulAdd(*n, set(-2.12194440e-4f), r);
  V p = set(1.9875691500e-4f);
  p = fma(p, r, set(1.3981999507e-3f));
  p = fma(p, r, set(8.3334519073e-3f));
  p = fma(p, r, set(4.1665795894e-2f));
  p = fma(p, r, set(1.6666665459e-1f));
  p = fma(p, r, set(5.0000001201e-1f));
  return fma(hn::Mul(r, r), p, r);
}

HWY_INLINE V exp(V x) {
  x = at_least(at_most(x, 89.0f), -105.0f);
  V n;
  const V p = hn::Add(exp_reduced(x, &n), set(1.0f));
  const VI i = hn::NearestInt(n);
  const VI half = hn::ShiftRight<1>(i);  // two steps: one alone would leave the range of 2^n
  return hn::Mul(hn::Mul(p, pow2i(half)), pow2i(hn::Sub(i, half)));
}

// exp for arguments that are at most 0 (softmax, sigmoid): results below 2^-126 become 0.
HWY_INLINE V exp_nonpositive(V x) {
  const auto tiny = x < set(-87.0f);
  V n;
  const V p = hn::Add(exp_reduced(at_least(x, -87.0f), &n), set(1.0f));
  return hn::IfThenZeroElse(tiny, hn::Mul(p, pow2i(hn::NearestInt(n))));
}

HWY_INLINE V expm1(V x0) {
  const V x = at_least(at_most(x0, 89.0f), -105.0f);
  V n;
  const V e = exp_reduced(x, &n);
  // half of 2^n, so that n = 128 is still a number
  const V t = pow2i(hn::NearestInt(hn::Max(hn::Sub(n, set(1.0f)), set(-126.0f))));
  const V r = hn::Mul(fma(t, e, hn::Sub(t, set(0.5f))), set(2.0f));
  return hn::IfThenElse(x0 == hn::Zero(D()), x0, r);
}

// log of m * 2^e given f = m - 1
HWY_INLINE V log_poly(V f, V e) {
  V p = set(7.0376836292e-2f);
  p = fma(p, f, set(-1.1514610310e-1f));
  p = fma(p, f, set(1.1676998740e-1f));
  p = fma(p, f, set(-1.2420140846e-1f));
  p = fma(p, f, set(1.4249322787e-1f));
  p = fma(p, f, set(-1.6668057665e-1f));
  p = fma(p, f, set(2.0000714765e-1f));
  p = fma(p, f, set(-2.4999993993e-1f));
  p = fma(p, f, set(3.3333331174e-1f));
  const V z = hn::Mul(f, f);
  V y = hn::Mul(hn::Mul(f, z), p);
  y = fma(e, set(-2.12194440e-4f), y);
  y = fma(z, set(-0.5f), y);
  return fma(e, set(0.693359375f), hn::Add(f, y));
}

HWY_INLINE V log(V x0) {
  const D d;
  const DI di;
  const auto small = x0 < set(1.17549435e-38f);
  const V x = hn::IfThenElse(small, hn::Mul(x0, set(8388608.0f)), x0);
  // exponent so that the mantissa lies in [sqrt(1/2), sqrt(2))
  const VI bits = hn::Sub(hn::BitCast(di, x), hn::Set(di, 0x3f3504f3));
  const VI e = hn::ShiftRight<23>(bits);
  const VI m = hn::Add(hn::And(bits, hn::Set(di, 0x007fffff)), hn::Set(di, 0x3f3504f3));
  const V ef = hn::Add(hn::ConvertTo(d, e), hn::IfThenElseZero(small, set(-23.0f)));
  V r = log_poly(hn::Sub(hn::BitCast(d, m), set(1.0f)), ef);
  const float inf = std::numeric_limits<float>::infinity();
  r = hn::IfThenElse(x0 == set(inf), x0, r);
  r = hn::IfThenElse(x0 == hn::Zero(d), set(-inf), r);
  r = hn::IfThenElse(x0 < hn::Zero(d), set(std::numeric_limits<float>::quiet_NaN()), r);
  return hn::IfThenElse(hn::IsNaN(x0), x0, r);
}

HWY_INLINE V log1p(V x) {
  const V u = hn::Add(x, set(1.0f));
  const V lost = hn::Div(hn::Sub(x, hn::Sub(u, set(1.0f))), u);
  const V r = log(u);
  const V sum = hn::Add(r, lost);
  const V safe = hn::IfThenElse(hn::IsFinite(r), sum, r);  // u = 0 or infinite: no correction
  return hn::IfThenElse(x == hn::Zero(D()), x, safe);
}

HWY_INLINE V tanh(V x) {
  // e = exp(-2|x|) - 1 lies in (-1, 0]
  V n;
  const V a = hn::Abs(x);
  const V e = exp_reduced(hn::Mul(at_most(a, 10.0f), set(-2.0f)), &n);
  const V t = pow2i(hn::NearestInt(n));
  const V em1 = fma(t, e, hn::Sub(t, set(1.0f)));
  const V r = hn::Div(em1, hn::Add(em1, set(2.0f)));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySign(r, x));
}

HWY_INLINE V sigmoid(V x) {
  // e/(1+e) on the negative side keeps the relative accuracy of small results
  const V e = exp(hn::Neg(hn::Abs(x)));
  const V top = hn::IfThenElse(x < hn::Zero(D()), e, set(1.0f));
  return hn::Div(top, hn::Add(e, set(1.0f)));
}

// sigmoid(x) and 1 - sigmoid(x), neither by subtraction
HWY_INLINE V sigmoid_both(V x, V* other) {
  const V e = exp(hn::Neg(hn::Abs(x)));
  const V big = hn::Div(set(1.0f), hn::Add(e, set(1.0f)));
  const V small = hn::Mul(e, big);
  const auto negative = x < hn::Zero(D());
  *other = hn::IfThenElse(negative, big, small);
  return hn::IfThenElse(negative, small, big);
}

HWY_INLINE V softplus(V x) {
  const V r = log1p(exp(hn::Neg(hn::Abs(x))));
  return hn::Add(hn::IfThenElse(x > hn::Zero(D()), x, hn::Zero(D())), r);
}

// Two polynomials, as published by N. Juffa (about 1 ulp each).
HWY_INLINE V erf(V x) {
  const V t = at_most(hn::Abs(x), 10.0f);
  const V s = hn::Mul(t, t);
  V r = fma(set(-1.72853470e-5f), t, set(3.83197126e-4f));
  const V u = fma(set(-3.88396438e-3f), t, set(2.42546219e-2f));
  r = fma(r, s, u);
  r = fma(r, t, set(-1.06777877e-1f));
  r = fma(r, t, set(-6.34846687e-1f));
  r = fma(r, t, set(-1.28717512e-1f));
  r = fma(r, t, hn::Neg(t));
  const V far = hn::CopySign(hn::Sub(set(1.0f), exp_nonpositive(r)), x);
  V q = set(-5.96761703e-4f);
  q = fma(q, s, set(4.99119423e-3f));
  q = fma(q, s, set(-2.67681349e-2f));
  q = fma(q, s, set(1.12819925e-1f));
  q = fma(q, s, set(-3.76125336e-1f));
  q = fma(q, s, set(1.28379166e-1f));
  const V near = fma(q, x, x);
  return hn::IfThenElse(t > set(0.927734375f), far, near);
}

HWY_INLINE V relu(V x) {  // NaN stays NaN
  return hn::IfThenElse(x < hn::Zero(D()), hn::Zero(D()), x);
}
HWY_INLINE V silu(V x) { return hn::Mul(x, sigmoid(x)); }
HWY_INLINE V silu_grad(V x) {
  V other;
  const V s = sigmoid_both(x, &other);
  return hn::Mul(s, fma(x, other, set(1.0f)));
}

HWY_INLINE V gelu(V x) {
  const V h = hn::Mul(x, set(0.5f));
  return fma(h, erf(hn::Mul(x, set(0.70710678118654752f))), h);
}
HWY_INLINE V gelu_grad(V x) {
  const V cdf = fma(erf(hn::Mul(x, set(0.70710678118654752f))), set(0.5f), set(0.5f));
  const V pdf =
      hn::Mul(exp_nonpositive(hn::Mul(hn::Mul(x, x), set(-0.5f))), set(0.3989422804014327f));
  return fma(x, pdf, cdf);
}

// x * sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3): the same as 0.5 x (1 + tanh u)
HWY_INLINE V gelu_tanh(V x) {
  const V x2 = hn::Mul(x, x);
  const V u2 = hn::Mul(x, fma(x2, set(0.07135481282f), set(1.5957691216f)));
  return hn::Mul(x, sigmoid(u2));
}
HWY_INLINE V gelu_tanh_grad(V x0) {
  const V x = at_least(at_most(x0, 15.0f), -15.0f);  // beyond, the derivative is 0 or 1
  const V x2 = hn::Mul(x, x);
  V other;
  const V s = sigmoid_both(hn::Mul(x, fma(x2, set(0.07135481282f), set(1.5957691216f))), &other);
  const V du2 = fma(x2, set(0.21406443847f), set(1.5957691216f));
  return fma(hn::Mul(hn::Mul(x, du2), other), s, s);
}

// sin (quadrant 0) or cos (quadrant 1). The argument is reduced in double precision, which is exact
// enough up to 2^17; above, and for infinities, lane by lane through the library.
HWY_INLINE V sin_or_cos(V x, int quadrant) {
  const D d;
  const DI di;
  const hn::Half<D> dh;
  const hn::RepartitionToWide<D> dd;
  const V n = hn::Round(hn::Mul(x, set(0.636619772367581343f)));
  auto reduce = [&](hn::Vec<hn::Half<D>> xh, hn::Vec<hn::Half<D>> nh) HWY_ATTR {
    const auto nd = hn::PromoteTo(dd, nh);
    auto r = hn::NegMulAdd(nd, hn::Set(dd, 1.57079632673412561417e+00), hn::PromoteTo(dd, xh));
    r = hn::NegMulAdd(nd, hn::Set(dd, 6.07710050650619224932e-11), r);
    return hn::DemoteTo(dh, r);
  };
  const V r = hn::Combine(d, reduce(hn::UpperHalf(dh, x), hn::UpperHalf(dh, n)),
                          reduce(hn::LowerHalf(dh, x), hn::LowerHalf(dh, n)));
  const V s = hn::Mul(r, r);
  V a = set(2.86567956e-6f);
  a = fma(a, s, set(-1.98559923e-4f));
  a = fma(a, s, set(8.33338592e-3f));
  a = fma(a, s, set(-1.66666672e-1f));
  a = fma(a, hn::Mul(r, s), r);
  V c = set(2.44677067e-5f);
  c = fma(c, s, set(-1.38877297e-3f));
  c = fma(c, s, set(4.16666567e-2f));
  c = fma(c, s, set(-0.5f));
  c = fma(c, s, set(1.0f));
  const VI q = hn::Add(hn::NearestInt(n), hn::Set(di, quadrant));
  const auto odd = hn::TestBit(q, hn::Set(di, 1));
  const V v = hn::IfThenElse(hn::RebindMask(d, odd), c, a);
  const VI sign = hn::ShiftLeft<30>(hn::And(q, hn::Set(di, 2)));
  V out = hn::BitCast(d, hn::Xor(hn::BitCast(di, v), sign));
  const auto far = hn::Not(hn::Abs(x) <= set(131072.0f));
  if (HWY_UNLIKELY(!hn::AllFalse(d, far))) {
    HWY_ALIGN float xs[hn::MaxLanes(D())], os[hn::MaxLanes(D())];
    hn::Store(x, d, xs);
    hn::Store(out, d, os);
    for (size_t i = 0; i < hn::Lanes(d); ++i) {
      if (!(std::abs(xs[i]) <= 131072.0f)) {
        os[i] = float(quadrant ? std::cos(double(xs[i])) : std::sin(double(xs[i])));
      }
    }
    out = hn::Load(d, os);
  }
  return out;
}
HWY_INLINE V sin(V x) { return hn::IfThenElse(x == hn::Zero(D()), x, sin_or_cos(x, 0)); }
HWY_INLINE V cos(V x) { return sin_or_cos(x, 1); }

// 2^(y log2 x) in double precision, for positive finite x.
template <class Dd, class Vd = hn::Vec<Dd>>
HWY_INLINE Vd pow_positive(Dd dd, Vd x, Vd y) {
  const hn::RebindToSigned<Dd> di;
  const auto bits = hn::Sub(hn::BitCast(di, x), hn::Set(di, 0x3fe6a09e667f3bcdLL));
  const auto m = hn::BitCast(dd, hn::Add(hn::And(bits, hn::Set(di, 0x000fffffffffffffLL)),
                                         hn::Set(di, 0x3fe6a09e667f3bcdLL)));
  // arithmetic shift of the exponent through an offset: 64-bit ShiftRight is slow before AVX-512
  const auto e_bits = hn::BitCast(
      di, hn::ShiftRight<52>(hn::BitCast(hn::RebindToUnsigned<Dd>(),
                                         hn::Add(bits, hn::Set(di, int64_t(2048) << 52)))));
  const auto magic = hn::Set(di, 0x4330000000000000LL);  // 2^52 as bits
  const Vd e =
      hn::Sub(hn::BitCast(dd, hn::Or(e_bits, magic)), hn::Set(dd, 4503599627370496.0 + 2048.0));
  const Vd one = hn::Set(dd, 1.0);
  const Vd s = hn::Div(hn::Sub(m, one), hn::Add(m, one));
  const Vd z = hn::Mul(s, s);
  Vd p = hn::Set(dd, 1.0 / 17);
  for (double c : {1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3, 1.0}) {
    p = hn::MulAdd(p, z, hn::Set(dd, c));
  }
  const Vd log2 = hn::MulAdd(hn::Mul(s, p), hn::Set(dd, 2.0 * 1.4426950408889634074), e);
  Vd t = hn::Mul(y, log2);
  t = hn::IfThenElse(t > hn::Set(dd, 200.0), hn::Set(dd, 200.0), t);
  t = hn::IfThenElse(t < hn::Set(dd, -200.0), hn::Set(dd, -200.0), t);
  const Vd n = hn::Round(t);
  const Vd r = hn::Mul(hn::Sub(t, n), hn::Set(dd, 0.69314718055994530942));
  Vd q = hn::Set(dd, 1.0 / 3628800);
  for (double c : {1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720, 1.0 / 120, 1.0 / 24, 1.0 / 6,
                   0.5, 1.0, 1.0}) {
    q = hn::MulAdd(q, r, hn::Set(dd, c));
  }
  // n + 1023 as an integer without a 64-bit conversion
  const auto shifted = hn::BitCast(di, hn::Add(n, hn::Set(dd, 4503599627370496.0 + 1023.0)));
  return hn::Mul(q, hn::BitCast(dd, hn::ShiftLeft<52>(shifted)));
}

HWY_INLINE V pow(V x, V y) {
  const D d;
  const hn::Half<D> dh;
  const hn::RepartitionToWide<D> dd;
  using Vh = hn::Vec<hn::Half<D>>;
  auto part = [&](Vh xh, Vh yh) HWY_ATTR {
    return hn::DemoteTo(dh, pow_positive(dd, hn::PromoteTo(dd, xh), hn::PromoteTo(dd, yh)));
  };
  V out = hn::Combine(d, part(hn::UpperHalf(dh, x), hn::UpperHalf(dh, y)),
                      part(hn::LowerHalf(dh, x), hn::LowerHalf(dh, y)));
  // Zero, negative, infinite, NaN: the library's rules, lane by lane.
  const auto plain = hn::And(hn::And(x > hn::Zero(d), hn::IsFinite(x)), hn::IsFinite(y));
  if (HWY_UNLIKELY(!hn::AllTrue(d, plain))) {
    HWY_ALIGN float xs[hn::MaxLanes(D())], ys[hn::MaxLanes(D())], os[hn::MaxLanes(D())];
    hn::Store(x, d, xs);
    hn::Store(y, d, ys);
    hn::Store(out, d, os);
    for (size_t i = 0; i < hn::Lanes(d); ++i) {
      if (!(xs[i] > 0 && std::isfinite(xs[i]) && std::isfinite(ys[i]))) {
        os[i] = float(std::pow(double(xs[i]), double(ys[i])));
      }
    }
    out = hn::Load(d, os);
  }
  return out;
}

HWY_INLINE V rsqrt(V x) { return hn::Div(set(1.0f), hn::Sqrt(x)); }

}  // namespace vm
}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();
#endif
