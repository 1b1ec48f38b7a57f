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
#include "kernels/common/packs-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
namespace vm {
// The ones marked `class X` take a vector or a pack of them.

// x = n ln2 + r; returns r^2 p(r) + r = e^r - 1
template <class X>
HWY_INLINE X exp_reduced(const X& x, X* n) {
  *n = round(mul(x, set(1.44269504088896341f)));
  X r = nfma(*n, set(0.693359375f), x);
  r = nfma(*n, set(-2.12194440e-4f), r);
  X p = fma(r, set(1.9875691500e-4f), set(1.3981999507e-3f));
  p = fma(p, r, set(8.3334519073e-3f));
  p = fma(p, r, set(4.1665795894e-2f));
  p = fma(p, r, set(1.6666665459e-1f));
  p = fma(p, r, set(5.0000001201e-1f));
  return fma(mul(r, r), p, r);
}

template <class X>
HWY_INLINE X exp(const X& x) {
  X n;
  const X p = add(exp_reduced(at_least(at_most(x, 89.0f), -105.0f), &n), set(1.0f));
  return scale2(p, n);
}

// exp for arguments that are at most 0 (softmax, sigmoid): results below 2^-126 become 0.
template <class X>
HWY_INLINE X exp_nonpositive(const X& x) {
  X n;
  const X p = add(exp_reduced(at_least(x, -87.0f), &n), set(1.0f));
  return select(below(x, -87.0f), set(0.0f), mul(p, pow2(n)));
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

template <class X>
HWY_INLINE X tanh(const X& x) {
  // e = exp(-2|x|) - 1 lies in (-1, 0]
  X n;
  const X e = exp_reduced(mul(at_most(abs(x), 10.0f), set(-2.0f)), &n);
  const X t = pow2(n);
  const X em1 = fma(t, e, sub(t, set(1.0f)));
  const X r = div(em1, add(em1, set(2.0f)));
  return keep_nan(copy_sign(r, x), x);
}

template <class X>
HWY_INLINE X sigmoid(const X& x) {
  // e/(1+e) on the negative side keeps the relative accuracy of small results
  const X e = exp(neg(abs(x)));
  const X top = select(below(x, 0.0f), e, set(1.0f));
  return div(top, add(e, set(1.0f)));
}

// sigmoid(x) and 1 - sigmoid(x), neither by subtraction
template <class X>
HWY_INLINE X sigmoid_both(const X& x, X* other) {
  const X e = exp(neg(abs(x)));
  const X big = inverse(add(e, set(1.0f)));
  const X small = mul(e, big);
  const auto negative = below(x, 0.0f);
  *other = select(negative, big, small);
  return select(negative, small, big);
}

HWY_INLINE V softplus(V x) {
  const V r = log1p(exp(hn::Neg(hn::Abs(x))));
  return hn::Add(hn::IfThenElse(x > hn::Zero(D()), x, hn::Zero(D())), r);
}

// Two polynomials, as published by N. Juffa (about 1 ulp each).
template <class X>
HWY_INLINE X erf(const X& x) {
  const X t = at_most(abs(x), 10.0f);
  const X s = mul(t, t);
  X r = fma(t, set(-1.72853470e-5f), set(3.83197126e-4f));
  const X u = fma(t, set(-3.88396438e-3f), set(2.42546219e-2f));
  r = fma(r, s, u);
  r = fma(r, t, set(-1.06777877e-1f));
  r = fma(r, t, set(-6.34846687e-1f));
  r = fma(r, t, set(-1.28717512e-1f));
  r = fma(r, t, neg(t));
  const X far = copy_sign(nfma(exp_nonpositive(r), set(1.0f), set(1.0f)), x);
  X q = fma(s, set(-5.96761703e-4f), set(4.99119423e-3f));
  q = fma(q, s, set(-2.67681349e-2f));
  q = fma(q, s, set(1.12819925e-1f));
  q = fma(q, s, set(-3.76125336e-1f));
  q = fma(q, s, set(1.28379166e-1f));
  const X near = fma(q, x, x);
  return select(above(t, 0.927734375f), far, near);
}

HWY_INLINE V relu(V x) {  // NaN stays NaN
  return hn::IfThenElse(x < hn::Zero(D()), hn::Zero(D()), x);
}
template <class X>
HWY_INLINE X silu(const X& x) {
  return mul(x, sigmoid(x));
}
template <class X>
HWY_INLINE X silu_grad(const X& x) {
  X other;
  const X s = sigmoid_both(x, &other);
  return mul(s, fma(x, other, set(1.0f)));
}

template <class X>
HWY_INLINE X gelu(const X& x) {
  const X h = mul(x, set(0.5f));
  return fma(h, erf(mul(x, set(0.70710678118654752f))), h);
}
template <class X>
HWY_INLINE X gelu_grad(const X& x) {
  const X cdf = fma(erf(mul(x, set(0.70710678118654752f))), set(0.5f), set(0.5f));
  const X pdf = mul(exp_nonpositive(mul(mul(x, x), set(-0.5f))), set(0.3989422804014327f));
  return fma(x, pdf, cdf);
}

// x * sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3): the same as 0.5 x (1 + tanh u)
template <class X>
HWY_INLINE X gelu_tanh(const X& x) {
  const X x2 = mul(x, x);
  const X u2 = mul(x, fma(x2, set(0.07135481282f), set(1.5957691216f)));
  return mul(x, sigmoid(u2));
}
template <class X>
HWY_INLINE X gelu_tanh_grad(const X& x0) {
  const X x = at_least(at_most(x0, 15.0f), -15.0f);  // beyond, the derivative is 0 or 1
  const X x2 = mul(x, x);
  X other;
  const X s = sigmoid_both(mul(x, fma(x2, set(0.07135481282f), set(1.5957691216f))), &other);
  const X du2 = fma(x2, set(0.21406443847f), set(1.5957691216f));
  return fma(mul(mul(x, du2), other), s, s);
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
