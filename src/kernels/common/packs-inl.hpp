// Several vectors that go through the same instructions side by side: the functions of
// vmath-inl.hpp are long chains, and only independent chains next to each other keep the processor
// busy. The operations here exist for one vector and for a pack. Included once per instruction set.
#if defined(ONNXTRAIN_PACKS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXTRAIN_PACKS_INL
#undef ONNXTRAIN_PACKS_INL
#else
#define ONNXTRAIN_PACKS_INL
#endif

#include "hwy/highway.h"
#include "kernels/common/loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
namespace vm {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using DI = hn::RebindToSigned<D>;
using V = hn::Vec<D>;
using VI = hn::Vec<DI>;
using M = hn::Mask<D>;

template <int N>
struct Pack {
  V v[N];
};
template <int N>
struct PackMask {
  M v[N];
};

// Part i of an operand; a single vector serves all parts.
HWY_INLINE V part(V x, int) { return x; }
template <int N>
HWY_INLINE V part(const Pack<N>& x, int i) {
  return x.v[i];
}
template <int N>
HWY_INLINE M part(const PackMask<N>& x, int i) {
  return x.v[i];
}

#undef OT_PACK_EACH
#define OT_PACK_EACH(expression)                                           \
  _Pragma("GCC unroll 8") for (int i = 0; i < N; ++i) r.v[i] = expression; \
  return r

#undef OT_PACK_1
#define OT_PACK_1(name)                       \
  template <int N>                            \
  HWY_INLINE Pack<N> name(const Pack<N>& x) { \
    Pack<N> r;                                \
    OT_PACK_EACH(name(x.v[i]));               \
  }
#undef OT_PACK_2
#define OT_PACK_2(name)                                   \
  template <int N, class B>                               \
  HWY_INLINE Pack<N> name(const Pack<N>& a, const B& b) { \
    Pack<N> r;                                            \
    OT_PACK_EACH(name(a.v[i], part(b, i)));               \
  }
#undef OT_PACK_3
#define OT_PACK_3(name)                                               \
  template <int N, class B, class C>                                  \
  HWY_INLINE Pack<N> name(const Pack<N>& a, const B& b, const C& c) { \
    Pack<N> r;                                                        \
    OT_PACK_EACH(name(a.v[i], part(b, i), part(c, i)));               \
  }

HWY_INLINE V set(float x) { return hn::Set(D(), x); }
HWY_INLINE V add(V a, V b) { return hn::Add(a, b); }
HWY_INLINE V sub(V a, V b) { return hn::Sub(a, b); }
HWY_INLINE V mul(V a, V b) { return hn::Mul(a, b); }
HWY_INLINE V div(V a, V b) { return hn::Div(a, b); }
HWY_INLINE V fma(V a, V b, V c) { return hn::MulAdd(a, b, c); }
HWY_INLINE V nfma(V a, V b, V c) { return hn::NegMulAdd(a, b, c); }  // c - a b
HWY_INLINE V round(V x) { return hn::Round(x); }
HWY_INLINE V abs(V x) { return hn::Abs(x); }
HWY_INLINE V neg(V x) { return hn::Neg(x); }
HWY_INLINE V inverse(V x) { return hn::Div(set(1.0f), x); }
HWY_INLINE V copy_sign(V x, V sign) { return hn::CopySign(x, sign); }
// 2^n for -126 <= n <= 127
HWY_INLINE V pow2i(VI n) {
  const DI di;
  return hn::BitCast(D(), hn::ShiftLeft<23>(hn::Add(n, hn::Set(di, 127))));
}
HWY_INLINE V pow2(V n) { return pow2i(hn::NearestInt(n)); }
// p * 2^n, in two steps: one alone would leave the range of pow2i
HWY_INLINE V scale2(V p, V n) {
  const VI i = hn::NearestInt(n);
  const VI half = hn::ShiftRight<1>(i);
  return hn::Mul(hn::Mul(p, pow2i(half)), pow2i(hn::Sub(i, half)));
}
// Comparisons that let NaN through, unlike the minimum and maximum instructions.
HWY_INLINE V at_most(V x, float hi) { return hn::IfThenElse(x > set(hi), set(hi), x); }
HWY_INLINE V at_least(V x, float lo) { return hn::IfThenElse(x < set(lo), set(lo), x); }
HWY_INLINE V select(M m, V a, V b) { return hn::IfThenElse(m, a, b); }
HWY_INLINE M below(V x, float c) { return x < set(c); }
HWY_INLINE M above(V x, float c) { return x > set(c); }
// x itself where it is not a number
HWY_INLINE V keep_nan(V r, V x) { return hn::IfThenElse(hn::IsNaN(x), x, r); }

OT_PACK_2(add)
OT_PACK_2(sub)
OT_PACK_2(mul)
OT_PACK_2(div)
OT_PACK_3(fma)
OT_PACK_3(nfma)
OT_PACK_1(round)
OT_PACK_1(abs)
OT_PACK_1(neg)
OT_PACK_1(inverse)
OT_PACK_2(copy_sign)
OT_PACK_1(pow2)
OT_PACK_2(scale2)
OT_PACK_2(keep_nan)
#undef OT_PACK_1
#undef OT_PACK_2
#undef OT_PACK_3

template <int N>
HWY_INLINE Pack<N> at_most(const Pack<N>& x, float hi) {
  Pack<N> r;
  OT_PACK_EACH(at_most(x.v[i], hi));
}
template <int N>
HWY_INLINE Pack<N> at_least(const Pack<N>& x, float lo) {
  Pack<N> r;
  OT_PACK_EACH(at_least(x.v[i], lo));
}
template <int N, class A, class B>
HWY_INLINE Pack<N> select(const PackMask<N>& m, const A& a, const B& b) {
  Pack<N> r;
  OT_PACK_EACH(select(m.v[i], part(a, i), part(b, i)));
}
template <int N>
HWY_INLINE PackMask<N> below(const Pack<N>& x, float c) {
  PackMask<N> r;
  OT_PACK_EACH(below(x.v[i], c));
}
template <int N>
HWY_INLINE PackMask<N> above(const Pack<N>& x, float c) {
  PackMask<N> r;
  OT_PACK_EACH(above(x.v[i], c));
}
template <int N, class Io>
HWY_INLINE Pack<N> load_pack(Io io, const float* p) {
  Pack<N> r;
  OT_PACK_EACH(io.load(p + i * int64_t(hn::Lanes(D()))));
}
#undef OT_PACK_EACH
template <int N, class Io>
HWY_INLINE void store_pack(Io io, const Pack<N>& x, float* p) {
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) io.store(x.v[i], p + i * int64_t(hn::Lanes(D())));
}
template <int N>
HWY_INLINE Pack<2 * N> join(const Pack<N>& a, const Pack<N>& b) {
  Pack<2 * N> r;
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) r.v[i] = a.v[i], r.v[N + i] = b.v[i];
  return r;
}
template <int N>
HWY_INLINE void split(const Pack<2 * N>& x, Pack<N>* a, Pack<N>* b) {
#pragma GCC unroll 8
  for (int i = 0; i < N; ++i) a->v[i] = x.v[i], b->v[i] = x.v[N + i];
}

}  // namespace vm

// f(io, tag, i) for packs of N vectors of [0, n), then for single ones; tag is the number of
// vectors: decltype(tag)::value.
template <int N>
struct PackSize {
  static constexpr int value = N;
};
template <int N, class F>
HWY_INLINE void each_pack(int64_t n, F f) {
  const int64_t lanes = int64_t(hwy::HWY_NAMESPACE::Lanes(vm::D()));
  int64_t i = 0;
  for (; i + N * lanes <= n; i += N * lanes) f(WholeIo(), PackSize<N>(), i);
  for (; i + lanes <= n; i += lanes) f(WholeIo(), PackSize<1>(), i);
  if (i < n) f(PartIo(n - i), PackSize<1>(), i);
}
// out = f(x), four vectors at a time; f takes a vector or a pack.
template <class F>
HWY_INLINE void map_packs(const float* x, float* out, int64_t n, F f) {
  each_pack<4>(n, [&](auto io, auto size, int64_t i) HWY_ATTR {
    constexpr int kSize = decltype(size)::value;
    vm::store_pack(io, f(vm::load_pack<kSize>(io, x + i)), out + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();
#endif
