// Pools and their gradients over planes of any number of spatial dimensions. One task per group of
// planes; inside a plane everything happens in one fixed order.
#pragma once
#include <cmath>
#include <limits>
#include <numeric>

#include "core/counted.hpp"
#include "core/threads.hpp"
#include "kernels/common/window.hpp"

namespace onnxtrain::kernels {

// Planes per task: about 32k multiply-like operations.
inline int64_t plane_grain(const Window& w) {
  int64_t work = std::max<int64_t>(1, w.out_size() * w.taps() + w.in_size());
  return std::max<int64_t>(1, 32 * 1024 / work);
}

template <class T>
constexpr T lowest() {
  if constexpr (std::is_floating_point_v<T>)
    return -std::numeric_limits<T>::infinity();
  else
    return std::numeric_limits<T>::lowest();
}

// Positions of taps inside the input for one output position, by dimension.
struct TapRange {
  std::array<int64_t, kMaxSpatial> at{}, begin{}, end{};  // input coordinates, step = dilation
  // Moves to output number o.
  void move(const Window& w, int64_t o) {
    for (size_t d = w.dims(); d-- > 0;) {
      int64_t pos = o % w.out[d], start = pos * w.strides[d] - w.pads_begin[d];
      o /= w.out[d];
      int64_t skip = start < 0 ? (-start + w.dilations[d] - 1) / w.dilations[d] : 0;
      begin[d] = start + skip * w.dilations[d];
      end[d] = std::min(w.in[d], start + (w.kernel[d] - 1) * w.dilations[d] + 1);
    }
  }
  // Calls f(offset of the first element, begin, end) for rows of taps until f returns true.
  template <class F>
  void rows(const Window& w, F&& f) {
    size_t last = w.dims() - 1;
    for (size_t d = 0; d <= last; ++d)
      if (begin[d] >= end[d]) return;
    at = begin;
    for (;;) {
      int64_t base = 0;
      for (size_t d = 0; d < last; ++d) base = (base + at[d]) * w.in[d + 1];
      if (f(base)) return;
      size_t d = last;
      for (;;) {
        if (d == 0) return;
        --d;
        at[d] += w.dilations[d];
        if (at[d] < end[d]) break;
        at[d] = begin[d];
      }
    }
  }
};

template <class T>
bool is_nan(T v) {
  if constexpr (std::is_floating_point_v<T>)
    return v != v;
  else
    return false;
}

// Offset in its plane of the first largest element (or the first NaN) of output o's window; -1:
// none.
template <class T>
int64_t first_max(const Window& w, TapRange& r, const T* x, int64_t o) {
  r.move(w, o);
  size_t last = w.dims() - 1;
  int64_t best = -1;
  T most = lowest<T>();
  r.rows(w, [&](int64_t base) {
    for (int64_t i = r.begin[last]; i < r.end[last]; i += w.dilations[last])
      if (T v = x[base + i]; best < 0 || v > most || is_nan(v)) {
        if (best >= 0 && is_nan(most)) return true;
        most = v;
        best = base + i;
      }
    return is_nan(most);
  });
  return best;
}

// Maximum pools of one or two dimensions without dilation: the maximum of the window's rows first,
// by whole rows, then along the row. Ties and NaN as in first_max.
inline constexpr int64_t kMostColumns = 2048;
inline bool pools_by_rows(const Window& w) {
  if (w.dims() > 2 || w.in.back() > kMostColumns || w.in.back() == 0 || w.kernel[0] > 255)
    return false;
  for (int64_t d : w.dilations)
    if (d != 1) return false;
  return true;
}

template <class T>
class RowPool {
 public:
  explicit RowPool(const Window& w)
      : w_(w),
        height_(w.dims() == 2 ? w.in[0] : 1),
        width_(w.in.back()),
        out_h_(w.dims() == 2 ? w.out[0] : 1),
        out_w_(w.out.back()),
        kernel_w_(w.kernel.back()),
        stride_w_(w.strides.back()),
        pad_w_(w.pads_begin.back()) {}

  void forward(const T* x, T* y) {
    for (int64_t o = 0; o < out_h_; ++o) {
      columns(x, o);
      for (int64_t p = 0; p < out_w_; ++p) {
        int64_t b = std::max<int64_t>(0, p * stride_w_ - pad_w_),
                e = std::min(width_, p * stride_w_ - pad_w_ + kernel_w_);
        T most = lowest<T>();
        for (int64_t c = b; c < e && !empty_; ++c) most = better(best_[c], most) ? best_[c] : most;
        y[o * out_w_ + p] = most;
      }
    }
  }

  void backward(const T* x, const T* dy, T* dx) {
    for (int64_t o = 0; o < out_h_; ++o) {
      columns(x, o);
      for (int64_t p = 0; p < out_w_ && !empty_; ++p) {
        int64_t b = std::max<int64_t>(0, p * stride_w_ - pad_w_),
                e = std::min(width_, p * stride_w_ - pad_w_ + kernel_w_);
        if (b >= e) continue;
        int64_t at = b;
        for (int64_t c = b + 1; c < e; ++c) {
          bool tie = best_[c] == best_[at] || (is_nan(best_[c]) && is_nan(best_[at]));
          if (better(best_[c], best_[at]) || (tie && row_[c] < row_[at])) at = c;
        }
        dx[(first_ + row_[at]) * width_ + at] += dy[o * out_w_ + p];
      }
    }
  }

 private:
  static bool better(T v, T than) { return int(v > than) | (int(is_nan(v)) & int(!is_nan(than))); }

  // The largest element of each column over the rows of output row o, and which row it came from.
  void columns(const T* x, int64_t o) {
    int64_t start = w_.dims() == 2 ? o * w_.strides[0] - w_.pads_begin[0] : 0;
    int64_t end = std::min(height_, start + (w_.dims() == 2 ? w_.kernel[0] : 1));
    first_ = std::max<int64_t>(0, start);
    empty_ = first_ >= end;
    if (empty_) return;
    std::copy_n(x + first_ * width_, width_, best_);
    std::fill_n(row_, width_, uint8_t(0));
    for (int64_t r = first_ + 1; r < end; ++r) {
      const T* line = x + r * width_;
      auto number = uint8_t(r - first_);
      for (int64_t c = 0; c < width_; ++c) {
        bool take = better(line[c], best_[c]);
        best_[c] = take ? line[c] : best_[c];
        row_[c] = take ? number : row_[c];
      }
    }
  }

  const Window& w_;
  int64_t height_, width_, out_h_, out_w_, kernel_w_, stride_w_, pad_w_, first_ = 0;
  bool empty_ = false;
  T best_[kMostColumns];
  uint8_t row_[kMostColumns];
};

template <class T>
void max_pool(const Window& w, int64_t planes, const T* x, T* y, ThreadPool& pool) {
  int64_t xs = w.in_size(), ys = w.out_size(), step = w.strides.back();
  if (pools_by_rows(w)) {
    return parallel_for(pool, planes, plane_grain(w), [&](int64_t b, int64_t e) {
      RowPool<T> rows(w);
      for (int64_t p = b; p < e; ++p) rows.forward(x + p * xs, y + p * ys);
    });
  }
  parallel_for(pool, planes, plane_grain(w), [&](int64_t b, int64_t e) {
    for (int64_t p = b; p < e; ++p) {
      const T* xp = x + p * xs;
      T* yp = y + p * ys;
      std::fill_n(yp, ys, lowest<T>());
      w.for_runs([&](int64_t, int64_t o, int64_t i, int64_t count) {
        auto one = [&](int64_t stride) {
          for (int64_t j = 0; j < count; ++j) {
            T v = xp[i + j * stride], m = yp[o + j];
            yp[o + j] = v > m || is_nan(v) ? v : m;
          }
        };
        if (step == 1)
          one(1);
        else if (step == 2)
          one(2);
        else
          one(step);
      });
    }
  });
}

// With the position of each maximum, counted over the whole tensor; column_major: within a plane
// the first dimension runs fastest.
template <class T>
void max_pool_indices(const Window& w, int64_t planes, bool column_major, const T* x, T* y,
                      int64_t* indices, ThreadPool& pool) {
  int64_t xs = w.in_size(), ys = w.out_size();
  auto reordered = [&](int64_t at) {
    if (!column_major) return at;
    int64_t r = 0, scale = xs;
    std::array<int64_t, kMaxSpatial> index{};
    for (size_t d = w.dims(); d-- > 0; at /= w.in[d]) index[d] = at % w.in[d];
    for (size_t d = w.dims(); d-- > 0;) {
      scale /= w.in[d];
      r += index[d] * scale;
    }
    return r;
  };
  parallel_for(pool, planes, plane_grain(w), [&](int64_t b, int64_t e) {
    TapRange r;
    for (int64_t p = b; p < e; ++p)
      for (int64_t o = 0; o < ys; ++o) {
        int64_t at = first_max(w, r, x + p * xs, o);
        if (y) y[p * ys + o] = at < 0 ? lowest<T>() : x[p * xs + at];
        indices[p * ys + o] = p * xs + (at < 0 ? 0 : reordered(at));
      }
  });
}

template <class T>
void max_pool_grad(const Window& w, int64_t planes, const T* dy, const T* x, T* dx,
                   ThreadPool& pool) {
  int64_t xs = w.in_size(), ys = w.out_size();
  if (pools_by_rows(w)) {
    return parallel_for(pool, planes, plane_grain(w), [&](int64_t b, int64_t e) {
      RowPool<T> rows(w);
      std::fill_n(dx + b * xs, (e - b) * xs, T(0));
      for (int64_t p = b; p < e; ++p) rows.backward(x + p * xs, dy + p * ys, dx + p * xs);
    });
  }
  parallel_for(pool, planes, plane_grain(w), [&](int64_t b, int64_t e) {
    TapRange r;
    for (int64_t p = b; p < e; ++p) {
      std::fill_n(dx + p * xs, xs, T(0));
      for (int64_t o = 0; o < ys; ++o) {
        int64_t at = first_max(w, r, x + p * xs, o);
        if (at >= 0) dx[p * xs + at] += dy[p * ys + o];
      }
    }
  });
}

// Number of taps each output position divides by.
template <class T>
CountedVector<T> tap_counts(const Window& w, bool include_pad) {
  CountedVector<T> counts(size_t(w.out_size()), T(1));
  for (int64_t o = 0; o < int64_t(counts.size()); ++o) {
    int64_t rest = o;
    T n = 1;
    for (size_t d = w.dims(); d-- > 0; rest /= w.out[d]) {
      int64_t start = (rest % w.out[d]) * w.strides[d] - w.pads_begin[d];
      int64_t limit = include_pad ? w.in[d] + w.pads_end[d] : w.in[d];
      int64_t last = std::min(w.kernel[d], (limit - start + w.dilations[d] - 1) / w.dilations[d]);
      int64_t first =
          include_pad || start >= 0 ? 0 : (-start + w.dilations[d] - 1) / w.dilations[d];
      n *= T(std::max<int64_t>(0, last - first));
    }
    counts[size_t(o)] = n > 0 ? n : T(1);
  }
  return counts;
}

// Fills `to`, planes of `size`, with zeros, and adds to plane p by add(p).
template <class T, class F>
void add_planes(const Window& w, int64_t planes, T* to, int64_t size, ThreadPool& pool, F&& add) {
  parallel_for(pool, planes, plane_grain(w), [&](int64_t b, int64_t e) {
    for (int64_t p = b; p < e; ++p) {
      std::fill_n(to + p * size, size, T(0));
      add(p);
    }
  });
}

constexpr int64_t kChain = 1024;  // numbers of a sum that are added one after the other

// y[o] = the sum of term(element of x) over window o; long windows are added in double.
template <class T, class F>
void sum_windows(const Window& w, const T* x, T* y, const F& term) {
  const int64_t step = w.strides.back();
  auto add = [&](auto* sums) {
    w.for_runs([&](int64_t, int64_t o, int64_t i, int64_t count) {
      for (int64_t j = 0; j < count; ++j) sums[o + j] += term(x[i + j * step]);
    });
  };
  double taps = 1;
  for (const int64_t k : w.kernel) taps *= double(k);
  if (taps <= kChain) return add(y);
  CountedVector<double> sums(size_t(w.out_size()), 0.0);
  add(sums.data());
  for (size_t o = 0; o < sums.size(); ++o) y[o] = T(sums[o]);
}

template <class T>
void average_pool(const Window& w, int64_t planes, const T* counts, const T* x, T* y,
                  ThreadPool& pool) {
  int64_t xs = w.in_size(), ys = w.out_size();
  add_planes(w, planes, y, ys, pool, [&](int64_t p) {
    const T* xp = x + p * xs;
    T* yp = y + p * ys;
    if (ys == 1 && xs > kChain && counts[0] == T(xs)) {  // a whole plane, in pieces
      double sum = 0;
      for (int64_t at = 0; at < xs; at += kChain)
        sum += double(std::accumulate(xp + at, xp + std::min(xs, at + kChain), T(0)));
      yp[0] = T(sum / double(xs));
      return;
    }
    sum_windows(w, xp, yp, [](T v) { return v; });
    for (int64_t o = 0; o < ys; ++o) yp[o] /= counts[o];
  });
}

template <class T>
void average_pool_grad(const Window& w, int64_t planes, const T* counts, const T* dy, T* dx,
                       ThreadPool& pool) {
  int64_t xs = w.in_size(), ys = w.out_size(), step = w.strides.back();
  add_planes(w, planes, dx, xs, pool, [&](int64_t p) {
    const T* yp = dy + p * ys;
    T* xp = dx + p * xs;
    w.for_runs([&](int64_t, int64_t o, int64_t i, int64_t count) {
      for (int64_t j = 0; j < count; ++j) xp[i + j * step] += yp[o + j] / counts[o + j];
    });
  });
}

template <class T>
void lp_pool(const Window& w, int64_t planes, double power, const T* x, T* y, ThreadPool& pool) {
  int64_t xs = w.in_size(), ys = w.out_size();
  T p_ = T(power), inverse = T(1 / power);
  add_planes(w, planes, y, ys, pool, [&](int64_t p) {
    const T* xp = x + p * xs;
    T* yp = y + p * ys;
    if (power == 2)
      sum_windows(w, xp, yp, [](T v) { return v * v; });
    else
      sum_windows(w, xp, yp, [&](T v) { return std::pow(std::fabs(v), p_); });
    for (int64_t o = 0; o < ys; ++o)
      yp[o] = power == 2 ? std::sqrt(yp[o]) : std::pow(yp[o], inverse);
  });
}

// dx = dy * sign(x) |x|^(p-1) / y^(p-1), zero where y is zero
template <class T>
void lp_pool_grad(const Window& w, int64_t planes, double power, const T* dy, const T* x,
                  const T* y, T* dx, ThreadPool& pool) {
  int64_t xs = w.in_size(), ys = w.out_size(), step = w.strides.back();
  T q = T(power - 1);
  add_planes(w, planes, dx, xs, pool, [&](int64_t p) {
    const T *dyp = dy + p * ys, *xp = x + p * xs, *yp = y + p * ys;
    T* dxp = dx + p * xs;
    w.for_runs([&](int64_t, int64_t o, int64_t i, int64_t count) {
      for (int64_t j = 0; j < count; ++j) {
        T v = xp[i + j * step], n = yp[o + j];
        if (n == 0 || v == 0) continue;
        T f = q == 1 ? v / n : std::copysign(std::pow(std::fabs(v) / n, q), v);
        dxp[i + j * step] += dyp[o + j] * f;
      }
    });
  });
}

}  // namespace onnxtrain::kernels
