// Kernels of row normalisations, for all float types.
#include <cmath>

#include "ops/norm/row_norm_shape.hpp"

namespace onnxtrain::ops {

namespace {

template <class C>
struct Statistics {
  C mean, inv;
};

template <class T, class C = compute_t<T>>
Statistics<C> statistics(const RowNorm& g, const T* x) {
  C n = C(g.n), mean = 0;
  if (g.centred) mean = lane_sum<C>(g.n, [&](int64_t k) { return C(x[k]); }) / n;
  C var = lane_sum<C>(g.n,
                      [&](int64_t k) {
                        C d = C(x[k]) - mean;
                        return d * d;
                      }) /
          n;
  return {mean, C(1) / std::sqrt(var + C(g.epsilon))};
}

// f(k0, k1, parameter offset) for runs of a row in which the parameter advances by map.step
template <class F>
void segments(const ParameterMap& m, int64_t r, F f) {
  int64_t at = m.row(r);
  for (size_t s = 0; s < m.segment.size(); ++s)
    f(int64_t(s) * m.length, int64_t(s + 1) * m.length, at + m.segment[s]);
}

int64_t row_grain(const RowNorm& g) {
  return std::max<int64_t>(1, 8192 / std::max<int64_t>(1, g.n));
}

template <class T>
Kernel forward(Prepare& p, const RowNorm& g) {
  using C = compute_t<T>;
  bool has_bias = p.has(2), want_mean = p.wants(1), want_inv = p.wants(2);
  DType scale_type = p.in(1).dtype, bias_type = has_bias ? p.in(2).dtype : DType::kFloat;
  DType stat_type = want_mean ? p.out(1).dtype : want_inv ? p.out(2).dtype : DType::kFloat;
  p.workspace = size_t(g.scale_size + g.bias_size + 2 * g.rows) * sizeof(C);
  return [=](const Run& r) {
    const T* xs = r.in<T>(0);
    T* ys = r.out<T>(0);
    C *scale = static_cast<C*>(r.workspace), *bias = scale + g.scale_size,
      *mean = bias + g.bias_size, *inv = mean + g.rows;
    load_floats(r.inputs[1], scale_type, g.scale_size, scale);
    if (has_bias) load_floats(r.inputs[2], bias_type, g.bias_size, bias);
    parallel_for(*r.pool, g.rows, row_grain(g), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        const T* x = xs + i * g.n;
        T* y = ys + i * g.n;
        const auto found = statistics<T>(g, x);
        const C m = found.mean, v = found.inv;
        mean[i] = m;
        inv[i] = v;
        bool same = has_bias && g.scale.step == g.bias.step && g.scale.length == g.bias.length &&
                    g.scale.segment.size() == g.bias.segment.size();
        if (!has_bias || same) {
          int64_t shift = has_bias ? g.bias.row(i) - g.scale.row(i) : 0;
          size_t s = 0;
          segments(g.scale, i, [&](int64_t k0, int64_t k1, int64_t at) {
            int64_t bat = has_bias ? at + shift + g.bias.segment[s] - g.scale.segment[s] : 0;
            ++s;
            if (g.scale.step == 0) {
              C a = scale[at] * v, c = has_bias ? bias[bat] : C(0);
              for (int64_t k = k0; k < k1; ++k) y[k] = T((C(x[k]) - m) * a + c);
            } else if (has_bias) {
              for (int64_t k = k0; k < k1; ++k)
                y[k] = T((C(x[k]) - m) * v * scale[at + k - k0] + bias[bat + k - k0]);
            } else {
              for (int64_t k = k0; k < k1; ++k) y[k] = T((C(x[k]) - m) * v * scale[at + k - k0]);
            }
          });
        } else {  // scale and bias of different shapes
          auto at = [&](const ParameterMap& map, int64_t k) {
            return map.row(i) + map.segment[size_t(k / map.length)] +
                   (map.step ? k % map.length : 0);
          };
          for (int64_t k = 0; k < g.n; ++k)
            y[k] = T((C(x[k]) - m) * v * scale[at(g.scale, k)] + bias[at(g.bias, k)]);
        }
      }
    });
    if (want_mean) store_floats(mean, stat_type, g.rows, r.outputs[1]);
    if (want_inv) store_floats(inv, stat_type, g.rows, r.outputs[2]);
  };
}

// What one row adds to the gradients of its parameters: to `col_...` where a parameter has a number
// per column, otherwise (null) into `seg_...`, a number per segment.
template <class T, class C>
void row_gradient(const RowNorm& g, int64_t i, const T* dy, const T* x, T* dx, const C* scale,
                  C dmean, C dinv, C* col_scale, C* col_bias, C* seg_scale, C* seg_bias) {
  auto [m, v] = statistics<T>(g, x);
  C mean = m, inv = v, c1 = 0, c2 = 0;
  size_t s = 0;
  segments(g.scale, i, [&](int64_t k0, int64_t k1, int64_t at) {
    int64_t n = k1 - k0;
    const T *pd = dy + k0, *px = x + k0;
    if (!col_scale) {
      C sum = lane_sum<C>(n, [&](int64_t k) { return C(pd[k]); });
      C dot = inv * lane_sum<C>(n, [&](int64_t k) { return C(pd[k]) * (C(px[k]) - mean); });
      seg_scale[s] = dot;
      seg_bias[s] = sum;
      c1 += scale[at] * sum;
      c2 += scale[at] * dot;
    } else {
      const C* w = scale + at;
      c1 += lane_sum<C>(n, [&](int64_t k) { return C(pd[k]) * w[k]; });
      c2 += inv * lane_sum<C>(n, [&](int64_t k) { return C(pd[k]) * w[k] * (C(px[k]) - mean); });
      for (int64_t k = 0; k < n; ++k) {
        C d = C(pd[k]);
        col_scale[at + k] += d * ((C(px[k]) - mean) * inv);
        col_bias[at + k] += d;
      }
    }
    ++s;
  });
  if (!dx) return;
  // dx = inv (w dy - mean(w dy) - xhat mean(w dy xhat)) + what comes from the statistics
  C n = C(g.n);
  C q = -(inv * inv) * (c2 + dinv * inv) / n;
  C shift = g.centred ? -inv * c1 / n + dmean / n : C(0);
  segments(g.scale, i, [&](int64_t k0, int64_t k1, int64_t at) {
    for (int64_t k = k0; k < k1; ++k) {
      C w = scale[at + (g.scale.step ? k - k0 : 0)] * inv;
      dx[k] = T(C(dy[k]) * w + ((C(x[k]) - mean) * q + shift));
    }
  });
}

template <class T>
Kernel backward(Prepare& p, const RowNorm& g) {
  using C = compute_t<T>;
  DType scale_type = p.in(2).dtype, mean_type = p.has(3) ? p.in(3).dtype : DType::kFloat,
        inv_type = p.has(4) ? p.in(4).dtype : DType::kFloat;
  bool has_dmean = p.has(3), has_dinv = p.has(4), want_dx = p.wants(0), want_scale = p.wants(1),
       want_bias = p.wants(2);
  bool columns = g.scale.step != 0;
  // rows are taken in at most 32 chunks, each with its own sums over columns
  int64_t chunk = std::max({int64_t(1), (g.rows + 31) / 32, 4096 / std::max<int64_t>(1, g.n)});
  int64_t chunks = columns ? (g.rows + chunk - 1) / chunk : 0;
  int64_t segs = columns ? 0 : int64_t(g.scale.segment.size());
  int64_t doubles = 2 * g.scale_size;
  p.workspace =
      size_t(doubles) * 8 +
      size_t(g.scale_size + 2 * g.rows + 2 * chunks * g.scale_size + 2 * g.rows * segs) * sizeof(C);
  return [=](const Run& r) {
    double *sum_scale = static_cast<double*>(r.workspace), *sum_bias = sum_scale + g.scale_size;
    C *scale = reinterpret_cast<C*>(sum_scale + doubles), *dmean = scale + g.scale_size,
      *dinv = dmean + g.rows, *cols = dinv + g.rows, *per_seg = cols + 2 * chunks * g.scale_size;
    load_floats(r.inputs[2], scale_type, g.scale_size, scale);
    std::fill_n(dmean, 2 * g.rows, C(0));
    if (has_dmean) load_floats(r.inputs[3], mean_type, g.rows, dmean);
    if (has_dinv) load_floats(r.inputs[4], inv_type, g.rows, dinv);
    std::fill_n(cols, 2 * chunks * g.scale_size, C(0));
    const T *dy = r.in<T>(0), *x = r.in<T>(1);
    T* dx = want_dx ? r.out<T>(0) : nullptr;
    parallel_for(*r.pool, g.rows, chunk, [&](int64_t b, int64_t e) {
      C* col = columns ? cols + 2 * (b / chunk) * g.scale_size : nullptr;
      for (int64_t i = b; i < e; ++i) {
        C* seg = per_seg + 2 * i * segs;
        row_gradient<T, C>(g, i, dy + i * g.n, x + i * g.n, dx ? dx + i * g.n : nullptr, scale,
                           dmean[i], dinv[i], col, col ? col + g.scale_size : nullptr, seg,
                           seg + segs);
      }
    });
    std::fill_n(sum_scale, doubles, 0.0);
    for (int64_t c = 0; c < chunks; ++c)
      for (int64_t k = 0; k < 2 * g.scale_size; ++k)
        sum_scale[k] += double(cols[2 * c * g.scale_size + k]);
    for (int64_t i = 0; i < g.rows && segs; ++i)
      for (int64_t s = 0; s < segs; ++s) {
        int64_t at = g.scale.row(i) + g.scale.segment[size_t(s)];
        sum_scale[at] += double(per_seg[2 * i * segs + s]);
        sum_bias[at] += double(per_seg[2 * i * segs + segs + s]);
      }
    if (want_scale) store_floats(sum_scale, scale_type, g.scale_size, r.outputs[1]);
    if (want_bias) store_floats(sum_bias, scale_type, g.scale_size, r.outputs[2]);
  };
}

}  // namespace

Kernel make_row_norm(Prepare& p, RowNorm g) {
  return dispatch<float, double, Half, BFloat16>(p.in(0).dtype, p.node().op,
                                                 [&]<class T>() { return forward<T>(p, g); });
}
Kernel make_row_norm_grad(Prepare& p, RowNorm g) {
  return dispatch<float, double, Half, BFloat16>(p.in(1).dtype, p.node().op,
                                                 [&]<class T>() { return backward<T>(p, g); });
}

}  // namespace onnxtrain::ops
