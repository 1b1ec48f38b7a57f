// Products of neighbouring pixels with one weight per channel: a few pixels and vectors of channels
// are kept in registers while the terms go by.
#include "kernels/simd/grouped_conv_kernels.hpp"

#include <algorithm>

#include "kernels/simd/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/grouped_conv_kernels.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// after highway.h
#include "kernels/simd/loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Pixels [0, P) of N vectors of channels.
template <int P, int N, class Io>
HWY_INLINE void pixel_tile(const Io& io, const GroupTerm* terms, int64_t count, int64_t at,
                           int64_t in_step, int64_t c, const float* bias, float* out,
                           int64_t out_step) {
  const int64_t lanes = int64_t(hn::Lanes(D()));
  V acc[P][N];
#pragma GCC unroll 8
  for (int v = 0; v < N; ++v) {
    const V first = bias ? io.load(bias + c + v * lanes) : hn::Zero(D());
#pragma GCC unroll 8
    for (int j = 0; j < P; ++j) acc[j][v] = first;
  }
  for (int64_t k = 0; k < count; ++k) {
    const float* HWY_RESTRICT in = terms[k].in + at + c;
    const float* HWY_RESTRICT w = terms[k].w + c;
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) {
      const V weight = io.load(w + v * lanes);
#pragma GCC unroll 8
      for (int j = 0; j < P; ++j)
        acc[j][v] = hn::MulAdd(io.load(in + j * in_step + v * lanes), weight, acc[j][v]);
    }
  }
#pragma GCC unroll 8
  for (int j = 0; j < P; ++j)
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) io.store(acc[j][v], out + j * out_step + c + v * lanes);
}

template <int N, class Io>
HWY_INLINE void pixel_column(const Io& io, const GroupTerm* terms, int64_t count, int64_t pixels,
                             int64_t in_step, int64_t c, const float* bias, float* out,
                             int64_t out_step) {
  int64_t j = 0;
  for (; j + 4 <= pixels; j += 4)
    pixel_tile<4, N>(io, terms, count, j * in_step, in_step, c, bias, out + j * out_step, out_step);
  for (; j < pixels; ++j)
    pixel_tile<1, N>(io, terms, count, j * in_step, in_step, c, bias, out + j * out_step, out_step);
}

void pixels(const GroupTerm* terms, int64_t count, int64_t pixels, int64_t in_step,
            int64_t channels, const float* bias, float* out, int64_t out_step) {
  const int64_t lanes = int64_t(hn::Lanes(D()));
  int64_t c = 0;
  for (; c + 2 * lanes <= channels; c += 2 * lanes)
    pixel_column<2>(WholeIo(), terms, count, pixels, in_step, c, bias, out, out_step);
  for (; c + lanes <= channels; c += lanes)
    pixel_column<1>(WholeIo(), terms, count, pixels, in_step, c, bias, out, out_step);
  if (c < channels)
    pixel_column<1>(PartIo(channels - c), terms, count, pixels, in_step, c, bias, out, out_step);
}

template <int N, class Io>
HWY_INLINE void sum_tile(const Io& io, const GroupTerm* terms, int64_t pixels, int64_t in_step,
                         int64_t c, const float* dy, int64_t dy_step) {
  V acc[N];
  const float* in[N];
#pragma GCC unroll 8
  for (int k = 0; k < N; ++k) {
    acc[k] = hn::Zero(D());
    in[k] = terms[k].in + c;
  }
  dy += c;
  for (int64_t j = 0, at = 0; j < pixels; ++j, at += in_step, dy += dy_step) {
    const V d = io.load(dy);
#pragma GCC unroll 8
    for (int k = 0; k < N; ++k) acc[k] = hn::MulAdd(io.load(in[k] + at), d, acc[k]);
  }
#pragma GCC unroll 8
  for (int k = 0; k < N; ++k) {
    float* w = terms[k].w + c;
    io.store(hn::Add(io.load(w), acc[k]), w);
  }
}

void sums(const GroupTerm* terms, int64_t count, int64_t pixels, int64_t in_step, int64_t channels,
          const float* dy, int64_t dy_step) {
  each_vector(channels, [&](auto io, int64_t c) HWY_ATTR {
    int64_t k = 0;
    for (; k + 6 <= count; k += 6) sum_tile<6>(io, terms + k, pixels, in_step, c, dy, dy_step);
    for (; k + 3 <= count; k += 3) sum_tile<3>(io, terms + k, pixels, in_step, c, dy, dy_step);
    for (; k < count; ++k) sum_tile<1>(io, terms + k, pixels, in_step, c, dy, dy_step);
  });
}

void spread(const float* from, int64_t from_step, int64_t room, int64_t pixels, int64_t channels,
            int64_t repeat, int64_t step, float* to) {
  const int64_t lanes = int64_t(hn::Lanes(D()));
  HWY_ALIGN int32_t index[hn::MaxLanes(D())];
  for (int64_t c = 0; c < channels; c += lanes) {
    const int64_t base = c / repeat * step, some = std::min(lanes, channels - c);
    for (int64_t l = 0; l < lanes; ++l)
      index[l] = int32_t((c + std::min(l, some - 1)) / repeat * step - base);
    const float* p = from + base;
    float* q = to + c;
    if (index[lanes - 1] < lanes && base + lanes <= room && some == lanes) {
      const auto table = hn::SetTableIndices(D(), index);
      for (int64_t j = 0; j < pixels; ++j, p += from_step, q += channels)
        hn::StoreU(hn::TableLookupLanes(hn::LoadU(D(), p), table), D(), q);
    } else {
      for (int64_t j = 0; j < pixels; ++j, p += from_step, q += channels)
        for (int64_t l = 0; l < some; ++l) q[l] = p[index[l]];
    }
  }
}

const GroupedConvKernels* make_grouped_conv() {
  static const GroupedConvKernels table{pixels, sums, spread};
  return &table;
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxtrain::simd {
HWY_EXPORT(make_grouped_conv);
const GroupedConvKernels& grouped_conv_kernels() {
  static const GroupedConvKernels* table = HWY_DYNAMIC_DISPATCH(make_grouped_conv)();
  return *table;
}
}  // namespace onnxtrain::simd
#endif
