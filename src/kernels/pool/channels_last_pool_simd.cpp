// Vector loops of the channels-last pools, and how they are split.
#include <algorithm>
#include <limits>

#include "kernels/common/targets.hpp"
#include "kernels/pool/channels_last_pool.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/pool/channels_last_pool_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// after highway.h
#include "kernels/common/loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using Taps = ChannelPool::Taps;

// v is larger than best, or the first NaN
HWY_INLINE hn::Mask<D> better(V v, V best) {
  return hn::Or(v > best, hn::AndNot(hn::IsNaN(best), hn::IsNaN(v)));
}

void max_part(const Taps& t, const float* x, float* y, int64_t c0, int64_t c1) {
  for (int64_t o = 0; o < t.outputs; ++o)
    each_vector(c1 - c0, [&](auto io, int64_t c) HWY_ATTR {
      V best = hn::Set(D(), -std::numeric_limits<float>::infinity());
      for (int64_t k = t.first[o]; k < t.first[o + 1]; ++k) {
        const V v = io.load(x + t.at[k] * t.channels + c0 + c);
        best = hn::IfThenElse(better(v, best), v, best);
      }
      io.store(best, y + o * t.channels + c0 + c);
    });
}

void zero_part(const Taps& t, float* dx, int64_t c0, int64_t c1) {
  for (int64_t i = 0; i < t.inputs; ++i)
    std::fill(dx + i * t.channels + c0, dx + i * t.channels + c1, 0.0f);
}

void max_grad_part(const Taps& t, const float* dy, const float* x, float* dx, int64_t c0,
                   int64_t c1) {
  zero_part(t, dx, c0, c1);
  for (int64_t o = 0; o < t.outputs; ++o)
    each_vector(c1 - c0, [&](auto io, int64_t c) HWY_ATTR {
      const int64_t b = t.first[o], e = t.first[o + 1];
      if (b == e) return;
      V best = io.load(x + t.at[b] * t.channels + c0 + c), which = hn::Zero(D());
      for (int64_t k = b + 1; k < e; ++k) {
        const V v = io.load(x + t.at[k] * t.channels + c0 + c);
        const auto take = better(v, best);
        best = hn::IfThenElse(take, v, best);
        which = hn::IfThenElse(take, hn::Set(D(), float(k - b)), which);
      }
      const V g = io.load(dy + o * t.channels + c0 + c);
      for (int64_t k = b; k < e; ++k) {
        float* to = dx + t.at[k] * t.channels + c0 + c;
        const auto here = which == hn::Set(D(), float(k - b));
        io.store(hn::Add(io.load(to), hn::IfThenElseZero(here, g)), to);
      }
    });
}

constexpr int64_t kPiece = 1024;  // taps

void average_part(const Taps& t, const float* counts, const float* x, float* y, int64_t c0,
                  int64_t c1) {
  for (int64_t o = 0; o < t.outputs; ++o)
    each_vector(c1 - c0, [&](auto io, int64_t c) HWY_ATTR {
      V sum = hn::Zero(D());
      // whole planes in pieces: one chain of thousands of floats loses digits
      for (int64_t k = t.first[o]; k < t.first[o + 1];) {
        const int64_t end = std::min(k + kPiece, t.first[o + 1]);
        V piece = hn::Zero(D());
        for (; k < end; ++k) piece = hn::Add(piece, io.load(x + t.at[k] * t.channels + c0 + c));
        sum = hn::Add(sum, piece);
      }
      io.store(hn::Div(sum, hn::Set(D(), counts[o])), y + o * t.channels + c0 + c);
    });
}

void average_grad_part(const Taps& t, const float* counts, const float* dy, float* dx, int64_t c0,
                       int64_t c1) {
  zero_part(t, dx, c0, c1);
  for (int64_t o = 0; o < t.outputs; ++o)
    each_vector(c1 - c0, [&](auto io, int64_t c) HWY_ATTR {
      const V g = hn::Div(io.load(dy + o * t.channels + c0 + c), hn::Set(D(), counts[o]));
      for (int64_t k = t.first[o]; k < t.first[o + 1]; ++k) {
        float* to = dx + t.at[k] * t.channels + c0 + c;
        io.store(hn::Add(io.load(to), g), to);
      }
    });
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxtrain::simd {
HWY_EXPORT(max_part);
HWY_EXPORT(max_grad_part);
HWY_EXPORT(average_part);
HWY_EXPORT(average_grad_part);

ChannelPool::ChannelPool(const kernels::Window& w, int64_t batch, int64_t channels)
    : batch_(batch), channels_(channels), inputs_(w.in_size()) {
  std::vector<std::vector<int64_t>> lists(size_t(w.out_size()));
  w.for_runs([&](int64_t, int64_t o, int64_t i, int64_t count) {
    for (int64_t j = 0; j < count; ++j) lists[size_t(o + j)].push_back(i + j * w.strides.back());
  });
  first_.push_back(0);
  for (const auto& l : lists) {
    at_.insert(at_.end(), l.begin(), l.end());
    first_.push_back(int64_t(at_.size()));
  }
}

ChannelPool::Taps ChannelPool::taps() const {
  return {first_.data(), at_.data(), int64_t(first_.size()) - 1, inputs_, channels_};
}

template <class F>
void ChannelPool::for_parts(ThreadPool& pool, F f) const {
  constexpr int64_t kWidth = 64;
  int64_t parts = (channels_ + kWidth - 1) / kWidth;
  int64_t work = std::max<int64_t>(1, std::min(kWidth, channels_) * int64_t(at_.size()));
  parallel_for(pool, batch_ * parts, std::max<int64_t>(1, 32768 / work), [&](int64_t b, int64_t e) {
    for (int64_t k = b; k < e; ++k) {
      int64_t c = k % parts * kWidth;
      f(k / parts, c, std::min(channels_, c + kWidth));
    }
  });
}

void ChannelPool::max(ThreadPool& pool, const float* x, float* y) const {
  Taps t = taps();
  int64_t in = inputs_ * channels_, out = t.outputs * channels_;
  for_parts(pool, [&](int64_t n, int64_t b, int64_t e) {
    HWY_DYNAMIC_DISPATCH(max_part)(t, x + n * in, y + n * out, b, e);
  });
}

void ChannelPool::max_grad(ThreadPool& pool, const float* dy, const float* x, float* dx) const {
  Taps t = taps();
  int64_t in = inputs_ * channels_, out = t.outputs * channels_;
  for_parts(pool, [&](int64_t n, int64_t b, int64_t e) {
    HWY_DYNAMIC_DISPATCH(max_grad_part)(t, dy + n * out, x + n * in, dx + n * in, b, e);
  });
}

void ChannelPool::average(ThreadPool& pool, const float* counts, const float* x, float* y) const {
  Taps t = taps();
  int64_t in = inputs_ * channels_, out = t.outputs * channels_;
  for_parts(pool, [&](int64_t n, int64_t b, int64_t e) {
    HWY_DYNAMIC_DISPATCH(average_part)(t, counts, x + n * in, y + n * out, b, e);
  });
}

void ChannelPool::average_grad(ThreadPool& pool, const float* counts, const float* dy,
                               float* dx) const {
  Taps t = taps();
  int64_t in = inputs_ * channels_, out = t.outputs * channels_;
  for_parts(pool, [&](int64_t n, int64_t b, int64_t e) {
    HWY_DYNAMIC_DISPATCH(average_grad_part)(t, counts, dy + n * out, dx + n * in, b, e);
  });
}

}  // namespace onnxtrain::simd
#endif
