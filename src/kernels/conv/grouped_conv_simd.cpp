// Products of neighbouring pixels with one weight per channel: a few pixels and vectors of channels
// are kept in registers while the terms go by.
#include "kernels/conv/grouped_conv_simd.hpp"

#include <algorithm>
#include <type_traits>

#include "kernels/common/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/grouped_conv_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// after highway.h
#include "kernels/common/loops-inl.hpp"
#include "kernels/common/table-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Terms that lie side by side in the source, pixel by pixel (the taps of a row, when it is not
// dilated and has stride 1), are taken together: a pixel is read once for all of them.
constexpr int kTogether = 4;
struct Runs {
  static constexpr int64_t kMost = 512;
  uint8_t length[kMost];
  int64_t count = 0;  // 0: too many terms, each for itself

  Runs(const GroupTerm* terms, int64_t n, int64_t in_step) {
    if (n > kMost) return;
    for (int64_t k = 0; k < n;) {
      int64_t side = 1;  // terms side by side from k on
      while (k + side < n && terms[k + side].in - terms[k + side - 1].in == in_step) ++side;
      for (; side > 0; ++count) {
        // five are better three and two than four and one
        const int64_t take =
            side == kTogether + 1 ? kTogether - 1 : std::min<int64_t>(side, kTogether);
        length[count] = uint8_t(take);
        side -= take, k += take;
      }
    }
  }
};

// K terms side by side on P pixels.
template <int K, int P, class Io>
HWY_INLINE void add_run(const Io& io, const GroupTerm* terms, int64_t in_at, int64_t w_at,
                        int64_t in_step, V (&acc)[P]) {
  V w[K];
#pragma GCC unroll 8
  for (int k = 0; k < K; ++k) w[k] = io.load(terms[k].w + w_at);
  const float* HWY_RESTRICT in = terms[0].in + in_at;
#pragma GCC unroll 16
  for (int i = 0; i < P + K - 1; ++i) {
    const V x = io.load(in + i * in_step);
#pragma GCC unroll 8
    for (int k = 0; k < K; ++k)
      if (i >= k && i - k < P) acc[i - k] = hn::MulAdd(x, w[k], acc[i - k]);
  }
}

// P pixels from j on, one vector of channels.
template <int P, class Io>
HWY_INLINE void pixel_tile(const Io& io, const GroupTerm* terms, int64_t count, const Runs& runs,
                           int64_t j, int64_t c, const GroupSteps& s, const float* bias,
                           float* out) {
  const int64_t v = c / int64_t(hn::Lanes(D()));
  const int64_t in_at = j * s.in_step + v * s.in_block, w_at = v * s.w_block;
  V acc[P];
  const V first = bias ? io.load(bias + c) : hn::Zero(D());
#pragma GCC unroll 8
  for (int i = 0; i < P; ++i) acc[i] = first;
  if (runs.count == 0)
    for (int64_t k = 0; k < count; ++k) add_run<1>(io, terms + k, in_at, w_at, s.in_step, acc);
  for (int64_t r = 0; r < runs.count; terms += runs.length[r++]) {
    if (runs.length[r] == 3)
      add_run<3>(io, terms, in_at, w_at, s.in_step, acc);
    else if (runs.length[r] == 4)
      add_run<4>(io, terms, in_at, w_at, s.in_step, acc);
    else if (runs.length[r] == 2)
      add_run<2>(io, terms, in_at, w_at, s.in_step, acc);
    else
      add_run<1>(io, terms, in_at, w_at, s.in_step, acc);
  }
#pragma GCC unroll 8
  for (int i = 0; i < P; ++i) io.store(acc[i], out + (j + i) * s.out_step + c);
}

// The last P pixels, from j on: too few to keep the adders busy, so N vectors of channels at once.
template <int P, int N, class Io>
HWY_INLINE void few_pixels(const Io& io, const GroupTerm* terms, int64_t count, int64_t j,
                           int64_t c, const GroupSteps& s, const float* bias, float* out) {
  const int64_t lanes = int64_t(hn::Lanes(D()));
  const int64_t in_at = j * s.in_step + c / lanes * s.in_block, w_at = c / lanes * s.w_block;
  V acc[P][N];
#pragma GCC unroll 8
  for (int v = 0; v < N; ++v) {
    const V first = bias ? io.load(bias + c + v * lanes) : hn::Zero(D());
#pragma GCC unroll 8
    for (int i = 0; i < P; ++i) acc[i][v] = first;
  }
  for (int64_t k = 0; k < count; ++k) {
    const float* HWY_RESTRICT in = terms[k].in + in_at;
    const float* HWY_RESTRICT w = terms[k].w + w_at;
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) {
      const V weight = io.load(w + v * s.w_block);
#pragma GCC unroll 8
      for (int i = 0; i < P; ++i)
        acc[i][v] = hn::MulAdd(io.load(in + i * s.in_step + v * s.in_block), weight, acc[i][v]);
    }
  }
#pragma GCC unroll 8
  for (int i = 0; i < P; ++i)
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v) io.store(acc[i][v], out + (j + i) * s.out_step + c + v * lanes);
}

template <int P, int N>
void last_pixels(const GroupTerm* terms, int64_t count, int64_t j, int64_t channels,
                 const GroupSteps& s, const float* bias, float* out) {
  const int64_t block = N * int64_t(hn::Lanes(D())), whole = channels / block * block;
  for (int64_t c = 0; c < whole; c += block)
    few_pixels<P, N>(WholeIo(), terms, count, j, c, s, bias, out);
  each_vector(channels - whole, [&](auto io, int64_t c) HWY_ATTR {
    few_pixels<P, 1>(io, terms, count, j, whole + c, s, bias, out);
  });
}

void pixels(const GroupTerm* terms, int64_t count, int64_t pixels, int64_t channels,
            const GroupSteps& s, const float* bias, float* out) {
  const int64_t rest = pixels % 4, most = pixels - rest;
  if (most > 0) {
    const Runs runs(terms, count, s.in_step);
    auto row = [&](int64_t from, int64_t to) HWY_ATTR {
      each_vector(channels, [&](auto io, int64_t c) HWY_ATTR {
        int64_t j = from;
        for (; j + 8 <= to; j += 8) pixel_tile<8>(io, terms, count, runs, j, c, s, bias, out);
        if (j < to) pixel_tile<4>(io, terms, count, runs, j, c, s, bias, out);
      });
    };
    // A vector's pixels that lie side by side stay in the nearest cache for the whole row. In the
    // tensor itself they are a pixel apart, often many times the same set of that cache: there, all
    // channels of a few pixels.
    if (s.in_block > int64_t(hn::Lanes(D())))
      row(0, most);
    else
      for (int64_t j = 0; j < most; j += 8) row(j, std::min(j + 8, most));
  }
  if (rest == 1) last_pixels<1, 8>(terms, count, most, channels, s, bias, out);
  if (rest == 2) last_pixels<2, 4>(terms, count, most, channels, s, bias, out);
  if (rest == 3) last_pixels<3, 3>(terms, count, most, channels, s, bias, out);
}

template <int N, class Io>
HWY_INLINE void sum_tile(const Io& io, const GroupTerm* terms, int64_t pixels, int64_t c,
                         const GroupSteps& s, const float* dy) {
  const int64_t v = c / int64_t(hn::Lanes(D()));
  V acc[N];
  const float* in[N];
#pragma GCC unroll 9
  for (int k = 0; k < N; ++k) {
    acc[k] = hn::Zero(D());
    in[k] = terms[k].in + v * s.in_block;
  }
  dy += c;
  for (int64_t j = 0, at = 0; j < pixels; ++j, at += s.in_step, dy += s.out_step) {
    const V d = io.load(dy);
#pragma GCC unroll 9
    for (int k = 0; k < N; ++k) acc[k] = hn::MulAdd(io.load(in[k] + at), d, acc[k]);
  }
#pragma GCC unroll 9
  for (int k = 0; k < N; ++k) {
    float* w = terms[k].w + v * s.w_block;
    io.store(hn::Add(io.load(w), acc[k]), w);
  }
}

void sums(const GroupTerm* terms, int64_t count, int64_t pixels, int64_t channels,
          const GroupSteps& s, const float* dy) {
  each_vector(channels, [&](auto io, int64_t c) HWY_ATTR {
    int64_t k = 0;
    for (; k + 9 <= count; k += 9) sum_tile<9>(io, terms + k, pixels, c, s, dy);
    for (; k + 6 <= count; k += 6) sum_tile<6>(io, terms + k, pixels, c, s, dy);
    for (; k + 3 <= count; k += 3) sum_tile<3>(io, terms + k, pixels, c, s, dy);
    for (; k < count; ++k) sum_tile<1>(io, terms + k, pixels, c, s, dy);
  });
}

// ---------------------------------------------------------------- groups of many channels
// P pixels from j on, N vectors of channels of one group; `from` is its first channel in the
// source.
template <int P, int N>
HWY_INLINE void dense_tile(const GroupTerm* terms, int64_t count, int64_t planes, int64_t from,
                           int64_t j, int64_t c, const GroupSteps& s, const float* bias,
                           float* out) {
  const int64_t lanes = int64_t(hn::Lanes(D())), w_at = c / lanes * s.w_block;
  V acc[P][N];
#pragma GCC unroll 8
  for (int v = 0; v < N; ++v) {
    const V first = bias ? hn::LoadU(D(), bias + c + v * lanes) : hn::Zero(D());
#pragma GCC unroll 12
    for (int i = 0; i < P; ++i) acc[i][v] = first;
  }
  // pixels by threes: few address registers
  constexpr int kThrees = (P + 2) / 3;
  const int64_t step = s.in_step, twice = 2 * step;
  for (int64_t k = 0; k < count; ++k) {
    const float* in[kThrees];
#pragma GCC unroll 4
    for (int t = 0; t < kThrees; ++t) in[t] = terms[k].in + from + (j + 3 * t) * step;
    const float* HWY_RESTRICT w = terms[k].w + w_at;
    auto add = [&](int l) HWY_ATTR {
      V weight[N];
#pragma GCC unroll 8
      for (int v = 0; v < N; ++v) weight[v] = hn::LoadU(D(), w + v * s.w_block + l * lanes);
#pragma GCC unroll 12
      for (int i = 0; i < P; ++i) {
        const float* at = in[i / 3] + l;
        const V x = hn::Set(D(), i % 3 == 0 ? at[0] : i % 3 == 1 ? at[step] : at[twice]);
#pragma GCC unroll 8
        for (int v = 0; v < N; ++v) acc[i][v] = hn::MulAdd(x, weight[v], acc[i][v]);
      }
    };
    auto move = [&](int l) HWY_ATTR {
#pragma GCC unroll 4
      for (int t = 0; t < kThrees; ++t) in[t] += l;
      w += l * lanes;
    };
    int64_t l = 0;
    for (; l + 4 <= planes; l += 4, move(4)) {
#pragma GCC unroll 4
      for (int u = 0; u < 4; ++u) add(u);
    }
    for (; l < planes; ++l, move(1)) add(0);
  }
#pragma GCC unroll 12
  for (int i = 0; i < P; ++i)
#pragma GCC unroll 8
    for (int v = 0; v < N; ++v)
      hn::StoreU(acc[i][v], D(), out + (j + i) * s.out_step + c + v * lanes);
}

// The same for P pixels that are too few to keep the adders busy: U sums side by side.
template <int P, int N, int U>
HWY_INLINE void dense_few(const GroupTerm* terms, int64_t count, int64_t planes, int64_t from,
                          int64_t j, int64_t c, const GroupSteps& s, const float* bias,
                          float* out) {
  const D d;
  const int64_t lanes = int64_t(hn::Lanes(d)), w_at = c / lanes * s.w_block;
  V acc[P * N * U];
#pragma GCC unroll 16
  for (int i = 0; i < P * N * U; ++i) acc[i] = hn::Zero(d);
  auto add = [&](auto together, const float* HWY_RESTRICT in, const float* HWY_RESTRICT w)
                 HWY_ATTR {
#pragma GCC unroll 4
                   for (int u = 0; u < decltype(together)::value; ++u)
#pragma GCC unroll 4
                     for (int i = 0; i < P; ++i) {
                       const V x = hn::Set(d, in[i * s.in_step + u]);
#pragma GCC unroll 4
                       for (int v = 0; v < N; ++v) {
                         V& sum = acc[(u * P + i) * N + v];
                         sum = hn::MulAdd(x, hn::LoadU(d, w + v * s.w_block + u * lanes), sum);
                       }
                     }
                 };
  for (int64_t k = 0; k < count; ++k) {
    const float* in = terms[k].in + from + j * s.in_step;
    const float* w = terms[k].w + w_at;
    int64_t l = 0;
    for (; l + U <= planes; l += U) add(std::integral_constant<int, U>(), in + l, w + l * lanes);
    for (; l < planes; ++l) add(std::integral_constant<int, 1>(), in + l, w + l * lanes);
  }
#pragma GCC unroll 4
  for (int i = 0; i < P; ++i)
#pragma GCC unroll 4
    for (int v = 0; v < N; ++v) {
      V sum = acc[i * N + v];
#pragma GCC unroll 4
      for (int u = 1; u < U; ++u) sum = hn::Add(sum, acc[(u * P + i) * N + v]);
      if (bias) sum = hn::Add(sum, hn::LoadU(d, bias + c + v * lanes));
      hn::StoreU(sum, d, out + (j + i) * s.out_step + c + v * lanes);
    }
}

// N vectors of channels; P pixels fill the registers.
template <int P, int N>
void dense_columns(const GroupTerm* terms, int64_t count, int64_t pixels, int64_t channels,
                   const GroupSteps& s, const GroupDense& d, const float* bias, float* out) {
  const int64_t block = N * int64_t(hn::Lanes(D()));
  for (int64_t c = 0; c < channels; c += block) {
    const int64_t from = (d.first + c) / d.repeat * d.group_step;
    int64_t j = 0;
    for (; j + P <= pixels; j += P)
      dense_tile<P, N>(terms, count, d.planes, from, j, c, s, bias, out);
    for (; j + 4 <= pixels; j += 4)
      dense_few<4, N, N == 1 ? 2 : 1>(terms, count, d.planes, from, j, c, s, bias, out);
    for (; j + 2 <= pixels; j += 2)
      dense_few<2, N, N == 1 ? 4 : 2>(terms, count, d.planes, from, j, c, s, bias, out);
    if (j < pixels)
      dense_few<1, N, N == 3 ? 3 : 4>(terms, count, d.planes, from, j, c, s, bias, out);
  }
}

void dense_pixels(const GroupTerm* terms, int64_t count, int64_t pixels, int64_t channels,
                  const GroupSteps& s, const GroupDense& d, const float* bias, float* out) {
  const int64_t vectors = d.repeat / int64_t(hn::Lanes(D()));
  if (vectors % 2 == 0)
    dense_columns<5, 2>(terms, count, pixels, channels, s, d, bias, out);
  else if (vectors % 3 == 0)
    dense_columns<4, 3>(terms, count, pixels, channels, s, d, bias, out);
  else
    dense_columns<10, 1>(terms, count, pixels, channels, s, d, bias, out);
}

// ---------------------------------------------------------------- planes
// n pixels of one vector of channels and one plane: lane l takes channel index[l]; `room` floats of
// a pixel may be read.
void spread_vector(const int32_t* index, int64_t room, int64_t some, const float* from,
                   int64_t from_step, int64_t n, float* to) {
  const D d;
  const int64_t lanes = int64_t(hn::Lanes(d));
  if (some == lanes && room >= lanes && index[lanes - 1] < lanes) {
    const auto table = hn::SetTableIndices(d, index);
    for (int64_t k = 0; k < n; ++k, from += from_step, to += lanes)
      hn::StoreU(hn::TableLookupLanes(hn::LoadU(d, from), table), d, to);
    return;
  }
  for (int64_t k = 0; k < n; ++k, from += from_step, to += lanes)
    for (int64_t l = 0; l < lanes; ++l) to[l] = l < some ? from[index[l]] : 0;
}

void spread(const float* from, int64_t from_step, int64_t pixels, int64_t channels, int64_t repeat,
            int64_t planes, float* to, int64_t to_plane, int64_t to_block) {
  const int64_t lanes = int64_t(hn::Lanes(D()));
  constexpr int64_t kPixels = 16;  // whose channels stay in the nearest cache
  HWY_ALIGN int32_t index[hn::MaxLanes(D())], shifted[hn::MaxLanes(D())];
  int64_t phase = -1;  // of the channel in its group that `index` is for
  for (int64_t p = 0; p < pixels; p += kPixels) {
    const int64_t n = std::min(kPixels, pixels - p);
    for (int64_t c = 0, v = 0; c < channels; c += lanes, ++v) {
      const int64_t group = c / repeat, base = group * planes, some = std::min(lanes, channels - c);
      if (phase != c - group * repeat) {
        phase = c - group * repeat;
        for (int64_t l = 0; l < lanes; ++l) index[l] = int32_t((phase + l) / repeat * planes);
      }
      const float* source = from + p * from_step + base;
      float* target = to + v * to_block + p * lanes;
      for (int64_t j = 0; j < planes; ++j, target += to_plane) {
        // from the plane's first channel, or from the group's where a vector from there is whole
        const bool back = from_step - base - j < lanes;
        for (int64_t l = 0; back && l < lanes; ++l) shifted[l] = index[l] + int32_t(j);
        spread_vector(back ? shifted : index, from_step - base - (back ? 0 : j), some,
                      source + (back ? 0 : j), from_step, n, target);
      }
    }
  }
}

void regroup(const float* from, int64_t pixels, int64_t groups, int64_t planes, float* to,
             int64_t to_group) {
  constexpr int64_t kPixels = 16;  // whose channels stay in the nearest cache
  for (int64_t p = 0; p < pixels; p += kPixels)
    for (int64_t g = 0; g < groups; ++g) {
      const float* source = from + (p * groups + g) * planes;
      float* target = to + g * to_group + p * planes;
      for (int64_t k = 0; k < std::min(kPixels, pixels - p);
           ++k, source += groups * planes, target += planes)
        each_vector(planes, [&](auto io, int64_t j)
                                HWY_ATTR { io.store(io.load(source + j), target + j); });
    }
}

const GroupedConvKernels* make_grouped_conv() {
  static const GroupedConvKernels table{
      int64_t(hn::Lanes(D())), pixels, sums, dense_pixels, spread, regroup};
  return &table;
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxtrain::simd {
OT_SIMD_TABLE(GroupedConvKernels, grouped_conv_kernels, make_grouped_conv)
}  // namespace onnxtrain::simd
#endif
