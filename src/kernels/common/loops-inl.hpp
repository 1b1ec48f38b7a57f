// Loops over float arrays: whole vectors, then the same code on a masked tail, so that an element
// gives the same bits wherever it stands. Included once per instruction set.
#if defined(ONNXTRAIN_LOOPS_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef ONNXTRAIN_LOOPS_INL
#undef ONNXTRAIN_LOOPS_INL
#else
#define ONNXTRAIN_LOOPS_INL
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {

// Loads and stores of whole vectors, or of the first lanes only (the others read as 0).
struct WholeIo {
  using D = hwy::HWY_NAMESPACE::ScalableTag<float>;
  using V = hwy::HWY_NAMESPACE::Vec<D>;
  HWY_INLINE V load(const float* p) const { return hwy::HWY_NAMESPACE::LoadU(D(), p); }
  HWY_INLINE void store(V v, float* p) const { hwy::HWY_NAMESPACE::StoreU(v, D(), p); }
};
struct PartIo {
  using D = WholeIo::D;
  using V = WholeIo::V;
  hwy::HWY_NAMESPACE::Mask<D> mask;
  size_t count;
  explicit HWY_INLINE PartIo(int64_t n)
      : mask(hwy::HWY_NAMESPACE::FirstN(D(), size_t(n))), count(size_t(n)) {}
#if HWY_TARGET <= HWY_AVX2
  HWY_INLINE V load(const float* p) const { return hwy::HWY_NAMESPACE::MaskedLoad(mask, D(), p); }
  HWY_INLINE void store(V v, float* p) const { hwy::HWY_NAMESPACE::BlendedStore(v, mask, D(), p); }
#else  // without masked instructions Highway touches whole vectors
  HWY_INLINE V load(const float* p) const {
    HWY_ALIGN float lane[hwy::HWY_NAMESPACE::MaxLanes(D())] = {};
    for (size_t i = 0; i < count; ++i) lane[i] = p[i];
    return hwy::HWY_NAMESPACE::Load(D(), lane);
  }
  HWY_INLINE void store(V v, float* p) const {
    HWY_ALIGN float lane[hwy::HWY_NAMESPACE::MaxLanes(D())];
    hwy::HWY_NAMESPACE::Store(v, D(), lane);
    for (size_t i = 0; i < count; ++i) p[i] = lane[i];
  }
#endif
};

// f(io, i) for every vector of [0, n)
template <class F>
HWY_INLINE void each_vector(int64_t n, F f) {
  const int64_t lanes = int64_t(hwy::HWY_NAMESPACE::Lanes(WholeIo::D()));
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) f(WholeIo(), i);
  if (i < n) f(PartIo(n - i), i);
}

template <class F>
HWY_INLINE void map1(const float* x, float* out, int64_t n, F f) {
  each_vector(n, [&](auto io, int64_t i) HWY_ATTR { io.store(f(io.load(x + i)), out + i); });
}
template <class F>
HWY_INLINE void map2(const float* x, const float* y, float* out, int64_t n, F f) {
  each_vector(n, [&](auto io, int64_t i)
                     HWY_ATTR { io.store(f(io.load(x + i), io.load(y + i)), out + i); });
}
template <class F>
HWY_INLINE void map3(const float* x, const float* y, const float* z, float* out, int64_t n, F f) {
  each_vector(n, [&](auto io, int64_t i) HWY_ATTR {
    io.store(f(io.load(x + i), io.load(y + i), io.load(z + i)), out + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();
#endif
