// Convolution and its two gradients by definition, for float and double, over any number of spatial
// dimensions. Each output plane is made by one task in one order: bit-identical for any thread
// count.
#pragma once
#include "core/threads.hpp"
#include "kernels/common/window.hpp"

namespace onnxtrain::kernels {

struct ConvShape {
  Window window;
  int64_t batch = 1, groups = 1, in_channels = 1, out_channels = 1;
  int64_t in_per_group() const { return in_channels / groups; }
  int64_t out_per_group() const { return out_channels / groups; }
};

// y[n,m] = bias[m] + sum over c of w[m,c] * x[n,c]
template <class T>
void conv_ref(const ConvShape& s, const T* x, const T* w, const T* bias, T* y, ThreadPool& pool) {
  const Window& win = s.window;
  int64_t xs = win.in_size(), ys = win.out_size(), taps = win.taps(), step = win.strides.back();
  int64_t icg = s.in_per_group(), ocg = s.out_per_group();
  pool.run(s.batch * s.out_channels, [&](int64_t task) {
    int64_t n = task / s.out_channels, m = task % s.out_channels, g = m / ocg;
    T* yp = y + task * ys;
    std::fill_n(yp, ys, bias ? bias[m] : T(0));
    for (int64_t c = 0; c < icg; ++c) {
      const T* xp = x + (n * s.in_channels + g * icg + c) * xs;
      const T* wp = w + (m * icg + c) * taps;
      win.for_runs([&](int64_t t, int64_t o, int64_t i, int64_t count) {
        T v = wp[t];
        if (step == 1) {
          for (int64_t j = 0; j < count; ++j) yp[o + j] += v * xp[i + j];
        } else {
          for (int64_t j = 0; j < count; ++j) yp[o + j] += v * xp[i + j * step];
        }
      });
    }
  });
}

// dx[n,c] = bias[c] + sum over m of w[m,c] transposed * dy[n,m]; also the transposed convolution.
template <class T>
void conv_grad_x_ref(const ConvShape& s, const T* dy, const T* w, const T* bias, T* dx,
                     ThreadPool& pool) {
  const Window& win = s.window;
  int64_t xs = win.in_size(), ys = win.out_size(), taps = win.taps(), step = win.strides.back();
  int64_t icg = s.in_per_group(), ocg = s.out_per_group();
  pool.run(s.batch * s.in_channels, [&](int64_t task) {
    int64_t n = task / s.in_channels, channel = task % s.in_channels, g = channel / icg,
            c = channel % icg;
    T* xp = dx + task * xs;
    std::fill_n(xp, xs, bias ? bias[channel] : T(0));
    for (int64_t m = g * ocg; m < (g + 1) * ocg; ++m) {
      const T* yp = dy + (n * s.out_channels + m) * ys;
      const T* wp = w + (m * icg + c) * taps;
      win.for_runs([&](int64_t t, int64_t o, int64_t i, int64_t count) {
        T v = wp[t];
        for (int64_t j = 0; j < count; ++j) xp[i + j * step] += v * yp[o + j];
      });
    }
  });
}

// dw[m,c] = sum over n and positions of dy[n,m] * x[n,c]
template <class T>
void conv_grad_w_ref(const ConvShape& s, const T* dy, const T* x, T* dw, ThreadPool& pool) {
  const Window& win = s.window;
  int64_t xs = win.in_size(), ys = win.out_size(), taps = win.taps(), step = win.strides.back();
  int64_t icg = s.in_per_group(), ocg = s.out_per_group();
  pool.run(s.out_channels * icg, [&](int64_t task) {
    int64_t m = task / icg, c = task % icg, g = m / ocg;
    T* wp = dw + task * taps;
    std::fill_n(wp, taps, T(0));
    for (int64_t n = 0; n < s.batch; ++n) {
      const T* xp = x + (n * s.in_channels + g * icg + c) * xs;
      const T* yp = dy + (n * s.out_channels + m) * ys;
      win.for_runs([&](int64_t t, int64_t o, int64_t i, int64_t count) {
        T sum = 0;
        for (int64_t j = 0; j < count; ++j) sum += yp[o + j] * xp[i + j * step];
        wp[t] += sum;
      });
    }
  });
}

}  // namespace onnxtrain::kernels
