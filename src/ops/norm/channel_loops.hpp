// Loops over tensors seen as [n][channels][s], for normalisations with statistics per channel.
#pragma once
#include "op/op.hpp"
#include "ops/common/rows_shape.hpp"

namespace onnxtrain::ops {

struct Channels {
  int64_t n = 1, c = 1, s = 1;
};
// [N,C,d...]; a vector is N samples of one channel. per_element: every element of a sample is a
// channel of its own.
inline Channels channels_of(const Shape& x, bool per_element = false) {
  if (x.empty()) model_error("OT1133", "a normalisation over channels of a scalar");
  if (x.size() == 1) return {x[0], 1, 1};
  int64_t rest = product(x, 2, x.size());
  if (per_element) return {x[0], product(x, 1, x.size()), 1};
  return {x[0], x[1], rest};
}

// Which outputs the node has.
struct Wants {
  bool wanted[5];
  explicit Wants(const Prepare& p) {
    for (int i = 0; i < 5; ++i) wanted[i] = p.wants(i);
  }
  bool operator()(int i) const { return wanted[i]; }
};

// Small parameter vectors of any float type, to and from the type of calculation.
template <class C>
void load_floats(const void* from, DType t, int64_t n, C* to) {
  dispatch<float, double, Half, BFloat16>(t, "a normalisation", [&]<class T>() {
    const T* p = static_cast<const T*>(from);
    for (int64_t i = 0; i < n; ++i) to[i] = C(compute_t<T>(p[i]));
  });
}
template <class C>
void store_floats(const C* from, DType t, int64_t n, void* to) {
  dispatch<float, double, Half, BFloat16>(t, "a normalisation", [&]<class T>() {
    T* p = static_cast<T*>(to);
    for (int64_t i = 0; i < n; ++i) p[i] = T(compute_t<T>(from[i]));
  });
}

// f(offset, channel, count, channel step): runs of elements; the channel advances by `channel step`
// per element (1 when a run crosses channels, 0 inside one).
template <class F>
void for_channels(ThreadPool& pool, const Channels& ch, F f) {
  if (ch.n * ch.c * ch.s == 0) return;
  if (ch.s == 1) {
    parallel_for(pool, ch.n, std::max<int64_t>(1, 16384 / ch.c), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) f(i * ch.c, int64_t(0), ch.c, int64_t(1));
    });
    return;
  }
  parallel_for(pool, ch.n * ch.c, std::max<int64_t>(1, 16384 / ch.s), [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) f(i * ch.s, i % ch.c, ch.s, int64_t(0));
  });
}

// Two sums per channel of what term(index, channel, a, b) gives; samples are added in order.
template <class C, class F>
void channel_sums(ThreadPool& pool, const Channels& ch, C* first, C* second, F term) {
  if (ch.s == 1) {
    constexpr int64_t kBlock = 32;
    int64_t blocks = (ch.c + kBlock - 1) / kBlock;
    int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, ch.n * kBlock));
    parallel_for(pool, blocks, grain, [&](int64_t b, int64_t e) {
      for (int64_t k = b; k < e; ++k) {
        int64_t c0 = k * kBlock, n = std::min(kBlock, ch.c - c0);
        double s1[kBlock] = {}, s2[kBlock] = {};
        for (int64_t i = 0; i < ch.n; ++i)
          for (int64_t j = 0; j < n; ++j) {
            C v1, v2;
            term(i * ch.c + c0 + j, c0 + j, v1, v2);
            s1[j] += double(v1);
            s2[j] += double(v2);
          }
        for (int64_t j = 0; j < n; ++j) {
          first[c0 + j] = C(s1[j]);
          second[c0 + j] = C(s2[j]);
        }
      }
    });
    return;
  }
  int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(1, ch.n * ch.s));
  parallel_for(pool, ch.c, grain, [&](int64_t b, int64_t e) {
    for (int64_t c = b; c < e; ++c) {
      double s1 = 0, s2 = 0;
      for (int64_t i = 0; i < ch.n; ++i) {
        int64_t at = (i * ch.c + c) * ch.s, k = 0;
        C l1[8] = {}, l2[8] = {};
        auto add = [&](int lane, int64_t j) {
          C v1, v2;
          term(at + j, c, v1, v2);
          l1[lane] += v1;
          l2[lane] += v2;
        };
        for (; k + 8 <= ch.s; k += 8)
          for (int lane = 0; lane < 8; ++lane) add(lane, k + lane);
        for (int lane = 0; k < ch.s; ++k, ++lane) add(lane, k);
        C t1 = 0, t2 = 0;
        for (int lane = 0; lane < 8; ++lane) {
          t1 += l1[lane];
          t2 += l2[lane];
        }
        s1 += double(t1);
        s2 += double(t2);
      }
      first[c] = C(s1);
      second[c] = C(s2);
    }
  });
}

// Mean and population variance per channel, in two passes; spare: one more element per channel.
template <class T, class C = compute_t<T>>
void batch_statistics(ThreadPool& pool, const Channels& ch, const T* x, C* mean, C* var, C* spare) {
  C m = C(ch.n) * C(ch.s);
  channel_sums<C>(pool, ch, mean, spare, [&](int64_t i, int64_t, C& a, C& b) {
    a = C(x[i]);
    b = 0;
  });
  for (int64_t c = 0; c < ch.c; ++c) mean[c] /= m;
  channel_sums<C>(pool, ch, spare, var, [&](int64_t i, int64_t c, C& a, C& b) {
    C d = C(x[i]) - mean[c];
    a = d;
    b = d * d;
  });
  // what is left of the first moment corrects the rounding of the mean
  for (int64_t c = 0; c < ch.c; ++c) {
    C left = spare[c] / m;
    mean[c] += left;
    var[c] = var[c] / m - left * left;
    if (var[c] < C(0)) var[c] = 0;
  }
}

}  // namespace onnxtrain::ops
