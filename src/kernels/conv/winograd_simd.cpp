// Transforms of F(2x2, 3x3). Only sums and halves: they round like the additions of a direct
// convolution.
#include "kernels/conv/winograd_simd.hpp"

#include <algorithm>

#include "kernels/common/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/winograd_simd.cpp"
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

// One dimension of each transform.
HWY_INLINE void input4(V a, V b, V c, V d, V& p0, V& p1, V& p2, V& p3) {
  p0 = hn::Sub(a, c);
  p1 = hn::Add(b, c);
  p2 = hn::Sub(c, b);
  p3 = hn::Sub(b, d);
}
HWY_INLINE void output4(V p0, V p1, V p2, V p3, V& a, V& b) {
  a = hn::Add(hn::Add(p0, p1), p2);
  b = hn::Sub(hn::Sub(p1, p2), p3);
}
HWY_INLINE void output_adjoint2(V a, V b, V& p0, V& p1, V& p2, V& p3) {
  p0 = a;
  p1 = hn::Add(a, b);
  p2 = hn::Sub(a, b);
  p3 = hn::Neg(b);
}
HWY_INLINE void weights3(V a, V b, V c, V& p0, V& p1, V& p2, V& p3) {
  const V half = hn::Set(D(), 0.5f), ends = hn::Mul(half, hn::Add(a, c)), mid = hn::Mul(half, b);
  p0 = a;
  p1 = hn::Add(ends, mid);
  p2 = hn::Sub(ends, mid);
  p3 = c;
}
HWY_INLINE void weights_adjoint4(V p0, V p1, V p2, V p3, V& a, V& b, V& c) {
  const V half = hn::Set(D(), 0.5f), sum = hn::Mul(half, hn::Add(p1, p2));
  a = hn::Add(p0, sum);
  b = hn::Mul(half, hn::Sub(p1, p2));
  c = hn::Add(sum, p3);
}

void input(const float* x, int64_t row, int64_t column, int64_t channels, float* v,
           int64_t points) {
  each_vector(channels, [&](auto io, int64_t c) HWY_ATTR {
    V t[4][4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const float* p = x + i * row + c;
      input4(io.load(p), io.load(p + column), io.load(p + 2 * column), io.load(p + 3 * column),
             t[i][0], t[i][1], t[i][2], t[i][3]);
    }
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      V p[4];
      input4(t[0][j], t[1][j], t[2][j], t[3][j], p[0], p[1], p[2], p[3]);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) io.store(p[i], v + (4 * i + j) * points + c);
    }
  });
}

void output(const float* m, int64_t points, int64_t channels, const float* bias, float* y,
            int64_t row, int64_t column, int rows, int columns) {
  each_vector(channels, [&](auto io, int64_t c) HWY_ATTR {
    V a[4], b[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      const float* p = m + 4 * i * points + c;
      output4(io.load(p), io.load(p + points), io.load(p + 2 * points), io.load(p + 3 * points),
              a[i], b[i]);
    }
    V y00, y01, y10, y11;
    output4(a[0], a[1], a[2], a[3], y00, y10);
    output4(b[0], b[1], b[2], b[3], y01, y11);
    const V add = bias ? io.load(bias + c) : hn::Zero(D());
    float* to = y + c;
    io.store(hn::Add(y00, add), to);
    if (columns > 1) io.store(hn::Add(y01, add), to + column);
    if (rows > 1) {
      io.store(hn::Add(y10, add), to + row);
      if (columns > 1) io.store(hn::Add(y11, add), to + row + column);
    }
  });
}

void output_adjoint(const float* dy, int64_t row, int64_t column, int rows, int columns,
                    int64_t channels, float* m, int64_t points) {
  each_vector(channels, [&](auto io, int64_t c) HWY_ATTR {
    const V zero = hn::Zero(D());
    const float* from = dy + c;
    const V d00 = io.load(from), d01 = columns > 1 ? io.load(from + column) : zero;
    const V d10 = rows > 1 ? io.load(from + row) : zero;
    const V d11 = rows > 1 && columns > 1 ? io.load(from + row + column) : zero;
    V a[4], b[4];
    output_adjoint2(d00, d10, a[0], a[1], a[2], a[3]);
    output_adjoint2(d01, d11, b[0], b[1], b[2], b[3]);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      V p[4];
      output_adjoint2(a[i], b[i], p[0], p[1], p[2], p[3]);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j) io.store(p[j], m + (4 * i + j) * points + c);
    }
  });
}

// The taps of some k are gathered before any is used: loads soon after narrower stores are slow.
void weights(const float* w, int64_t lane, int64_t k, int64_t count, int64_t lanes, int64_t width,
             bool flip, float* u, int64_t points) {
  constexpr int64_t kMost = 2 * int64_t(hn::MaxLanes(D())), kSome = 8;
  HWY_ALIGN float taps[kSome][9][kMost] = {};
  const int64_t step = int64_t(hn::Lanes(D()));
  for (int64_t n0 = 0; n0 < count; n0 += kSome) {
    const int64_t some = std::min(kSome, count - n0);
    for (int64_t l = 0; l < lanes; ++l)
      for (int64_t n = 0; n < some; ++n) {
        const float* from = w + l * lane + (n0 + n) * k;
        if (flip) {
          for (int t = 0; t < 9; ++t) taps[n][8 - t][l] = from[t];
        } else {
          for (int t = 0; t < 9; ++t) taps[n][t][l] = from[t];
        }
      }
    for (int64_t n = 0; n < some; ++n, u += width)
      for (int64_t c = 0; c < width; c += step) {
        V t[4][3];
#pragma GCC unroll 3
        for (int j = 0; j < 3; ++j)
          weights3(hn::Load(D(), taps[n][j] + c), hn::Load(D(), taps[n][3 + j] + c),
                   hn::Load(D(), taps[n][6 + j] + c), t[0][j], t[1][j], t[2][j], t[3][j]);
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
          V p[4];
          weights3(t[i][0], t[i][1], t[i][2], p[0], p[1], p[2], p[3]);
#pragma GCC unroll 4
          for (int j = 0; j < 4; ++j) hn::StoreU(p[j], D(), u + (4 * i + j) * points + c);
        }
      }
  }
}

void weights_adjoint(const float* u, int64_t points, int64_t channels, float* dw) {
  constexpr int64_t kMost = int64_t(hn::MaxLanes(D()));
  HWY_ALIGN float taps[9][kMost];
  const int64_t lanes = int64_t(hn::Lanes(D()));
  each_vector(channels, [&](auto io, int64_t c) HWY_ATTR {
    V t[3][4];
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      const float* p = u + j * points + c;
      weights_adjoint4(io.load(p), io.load(p + 4 * points), io.load(p + 8 * points),
                       io.load(p + 12 * points), t[0][j], t[1][j], t[2][j]);
    }
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i) {
      V q[3];
      weights_adjoint4(t[i][0], t[i][1], t[i][2], t[i][3], q[0], q[1], q[2]);
#pragma GCC unroll 3
      for (int j = 0; j < 3; ++j) hn::Store(q[j], D(), taps[3 * i + j]);
    }
    float* to = dw + 9 * c;
    for (int64_t l = 0, some = std::min(lanes, channels - c); l < some; ++l, to += 9)
      for (int k = 0; k < 9; ++k) to[k] = taps[k][l];
  });
}

const WinogradKernels* make_winograd() {
  static const WinogradKernels table{input, output, output_adjoint, weights, weights_adjoint};
  return &table;
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxtrain::simd {
OT_SIMD_TABLE(WinogradKernels, winograd_kernels, make_winograd)
}  // namespace onnxtrain::simd
#endif
