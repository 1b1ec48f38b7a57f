// Vector parts of rows.hpp; how rows are split is in rows.cpp.
#include "kernels/norm/rows_simd.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/common/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/norm/rows_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// after highway.h
#include "kernels/common/loops-inl.hpp"
#include "kernels/common/table-inl.hpp"
#include "kernels/common/vmath-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using vm::D;
using vm::set;
using vm::V;

HWY_INLINE V lanes_of(WholeIo, V v) { return v; }
HWY_INLINE V lanes_of(PartIo io, V v) { return hn::IfThenElseZero(io.mask, v); }

// Sum of f(io, i) over the vectors of a piece of a row: four chains, then one fixed tree.
template <class F>
HWY_INLINE float piece_sum(int64_t n, F f) {
  const int64_t lanes = int64_t(hn::Lanes(D()));
  V a = hn::Zero(D()), b = a, c = a, e = a;
  int64_t i = 0;
  for (; i + 4 * lanes <= n; i += 4 * lanes) {
    a = hn::Add(a, f(WholeIo(), i));
    b = hn::Add(b, f(WholeIo(), i + lanes));
    c = hn::Add(c, f(WholeIo(), i + 2 * lanes));
    e = hn::Add(e, f(WholeIo(), i + 3 * lanes));
  }
  each_vector(n - i,
              [&](auto io, int64_t j) HWY_ATTR { a = hn::Add(a, lanes_of(io, f(io, i + j))); });
  return hn::GetLane(hn::SumOfLanes(D(), hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

// The same over a whole row. Long ones are added in pieces, in double: chains of millions of floats
// lose digits.
constexpr int64_t kPiece = int64_t(1) << 16;
template <class F>
HWY_INLINE float row_sum(int64_t n, F f) {
  if (n <= kPiece) return piece_sum(n, f);
  double sum = 0;
  for (int64_t at = 0; at < n; at += kPiece)
    sum += double(piece_sum(std::min(kPiece, n - at),
                            [&](auto io, int64_t i) HWY_ATTR { return f(io, at + i); }));
  return float(sum);
}

// NaN may be lost here; it comes back through x - max.
HWY_INLINE float row_max(const float* x, int64_t n) {
  const int64_t lanes = int64_t(hn::Lanes(D()));
  const V low = set(-std::numeric_limits<float>::infinity());
  V a = low, b = low;
  int64_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a = hn::Max(a, hn::LoadU(D(), x + i));
    b = hn::Max(b, hn::LoadU(D(), x + i + lanes));
  }
  for (; i + lanes <= n; i += lanes) a = hn::Max(a, hn::LoadU(D(), x + i));
  if (i < n) {
    const PartIo io(n - i);
    b = hn::Max(b, hn::IfThenElse(io.mask, io.load(x + i), low));
  }
  return hn::GetLane(hn::MaxOfLanes(D(), hn::Max(a, b)));
}

void softmax_rows(const float* x, float* y, int64_t rows, int64_t n, float scale) {
  const V vs = set(scale);
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    // a negative scale turns the order around
    float top = scale >= 0 ? row_max(x, n) * scale : 0;
    if (scale < 0) {
      each_vector(
          n, [&](auto io, int64_t i) HWY_ATTR { io.store(hn::Mul(io.load(x + i), vs), y + i); });
      top = row_max(y, n);
    }
    const V vtop = set(top);
    const float sum = row_sum(n, [&](auto io, int64_t i) HWY_ATTR {
      const V v = scale < 0 ? io.load(y + i) : hn::Mul(io.load(x + i), vs);
      const V e = vm::exp_nonpositive(hn::Sub(v, vtop));
      io.store(e, y + i);
      return e;
    });
    const V inv = set(1.0f / sum);
    each_vector(
        n, [&](auto io, int64_t i) HWY_ATTR { io.store(hn::Mul(io.load(y + i), inv), y + i); });
  }
}

void softmax_grad_rows(const float* dy, const float* y, float* dx, int64_t rows, int64_t n,
                       float scale) {
  const V vs = set(scale);
  for (int64_t r = 0; r < rows; ++r, dy += n, y += n, dx += n) {
    const V dot = set(row_sum(
        n, [&](auto io, int64_t i) HWY_ATTR { return hn::Mul(io.load(dy + i), io.load(y + i)); }));
    each_vector(n, [&](auto io, int64_t i) HWY_ATTR {
      const V g = hn::Mul(io.load(y + i), hn::Sub(io.load(dy + i), dot));
      io.store(hn::Mul(g, vs), dx + i);
    });
  }
}

// Where the mask is open, for whole vectors and tails.
HWY_INLINE hn::Mask<D> open_at(const ScoreMask& m, const uint8_t* at, size_t count) {
  const D d;
  const hn::Rebind<uint8_t, D> bytes;
  const hn::Rebind<int32_t, D> words;
  HWY_ALIGN uint8_t lane[hn::MaxLanes(D())] = {};
  const uint8_t* from = at;
  if (count < hn::Lanes(d)) {
    for (size_t i = 0; i < count; ++i) lane[i] = at[i];
    from = lane;
  }
  const auto set_bits =
      hn::RebindMask(d, hn::PromoteTo(words, hn::LoadU(bytes, from)) != hn::Zero(words));
  return m.open_is ? set_bits : hn::Not(set_bits);
}
HWY_INLINE size_t count_of(WholeIo) { return hn::Lanes(D()); }
HWY_INLINE size_t count_of(PartIo io) { return io.count; }
HWY_INLINE V lanes_or(WholeIo, V v, V) { return v; }
HWY_INLINE V lanes_or(PartIo io, V v, V other) { return hn::IfThenElse(io.mask, v, other); }

// f(io, i, masked scores) for every vector of a row.
template <class F>
HWY_INLINE void each_masked(const float* x, int64_t n, const ScoreMask& m, F f) {
  const V fill = set(m.fill);
  if (m.bias)
    each_vector(n, [&](auto io, int64_t i)
                       HWY_ATTR { f(io, i, hn::Add(io.load(x + i), io.load(m.bias + i))); });
  else if (m.open)
    each_vector(n, [&](auto io, int64_t i) HWY_ATTR {
      f(io, i, hn::IfThenElse(open_at(m, m.open + i, count_of(io)), io.load(x + i), fill));
    });
  else
    each_vector(n, [&](auto io, int64_t i) HWY_ATTR { f(io, i, io.load(x + i)); });
}

// Applies the mask; the greatest score.
HWY_INLINE float masked_max(float* x, int64_t n, const ScoreMask& m) {
  if (!m.bias && !m.open) return row_max(x, n);
  const V low = set(-std::numeric_limits<float>::infinity());
  V top = low;
  each_masked(x, n, m, [&](auto io, int64_t i, V v) HWY_ATTR {
    io.store(v, x + i);
    top = hn::Max(top, lanes_or(io, v, low));
  });
  return hn::GetLane(hn::MaxOfLanes(D(), top));
}

HWY_INLINE bool fill_has_weight(const ScoreMask& m, float top) {
  return m.open && m.fill - top >= -87.0f;
}

bool score_softmax_row(float* x, int64_t n, const ScoreMask& m, EmptyRow empty, float& top,
                       float& inverse) {
  top = masked_max(x, n, m);
  inverse = 0;
  if (empty == EmptyRow::kZero && top == -std::numeric_limits<float>::infinity() &&
      std::none_of(x, x + n, [](float v) { return std::isnan(v); })) {
    std::memset(x, 0, size_t(n) * sizeof(float));
    return false;
  }
  const V vtop = set(top);
  const float sum = row_sum(n, [&](auto io, int64_t i) HWY_ATTR {
    const V e = vm::exp_nonpositive(hn::Sub(io.load(x + i), vtop));
    io.store(e, x + i);
    return e;
  });
  if (empty == EmptyRow::kNeverNan && !(sum > 0)) {
    std::memset(x, 0, size_t(n) * sizeof(float));
    return false;
  }
  inverse = 1.0f / sum;
  const V inv = set(inverse);
  each_vector(n,
              [&](auto io, int64_t i) HWY_ATTR { io.store(hn::Mul(io.load(x + i), inv), x + i); });
  return fill_has_weight(m, top);
}

bool score_softmax_again_row(float* x, int64_t n, const ScoreMask& m, float top, float inverse) {
  if (inverse == 0) {
    std::memset(x, 0, size_t(n) * sizeof(float));
    return false;
  }
  const V vtop = set(top), inv = set(inverse);
  each_masked(x, n, m, [&](auto io, int64_t i, V v) HWY_ATTR {
    io.store(hn::Mul(vm::exp_nonpositive(hn::Sub(v, vtop)), inv), x + i);
  });
  return fill_has_weight(m, top);
}

void dropped_softmax_grad_row(float* p, float* dp, const float* u, int64_t n, float ratio,
                              float scale) {
  const V r = set(ratio), s = set(scale);
  const V dot = set(row_sum(n, [&](auto io, int64_t i) HWY_ATTR {
    const V kept = hn::Mul(io.load(p + i), hn::Mul(io.load(dp + i), s));
    return hn::IfThenElseZero(hn::Ge(io.load(u + i), r), kept);
  }));
  each_vector(n, [&](auto io, int64_t i) HWY_ATTR {
    const auto keep = hn::Ge(io.load(u + i), r);
    const V w = io.load(p + i), d = hn::IfThenElseZero(keep, hn::Mul(io.load(dp + i), s));
    io.store(hn::Mul(w, hn::Sub(d, dot)), dp + i);
    io.store(hn::IfThenElseZero(keep, hn::Mul(w, s)), p + i);
  });
}

void close_one_row(float* x, int64_t n, const ScoreMask& m) {
  each_vector(n, [&](auto io, int64_t i) HWY_ATTR {
    io.store(hn::IfThenElseZero(open_at(m, m.open + i, count_of(io)), io.load(x + i)), x + i);
  });
}

// x - log(sum(exp(x))) of a row in two steps: beside large scores the logarithm, added to the
// largest of them, would be rounded to too few digits.
struct LogSoftmaxRow {
  float first, second;
  HWY_INLINE LogSoftmaxRow(const float* x, int64_t n) {
    const float top = row_max(x, n);
    const V vtop = set(top);
    const float sum = row_sum(n, [&](auto io, int64_t i) HWY_ATTR {
      return vm::exp_nonpositive(hn::Sub(io.load(x + i), vtop));
    });
    const float log = hn::GetLane(vm::log(set(sum)));
    const bool large = std::abs(top) > 32;
    first = large ? top : top + log;
    second = large ? log : 0;
  }
  HWY_INLINE V operator()(V x) const { return hn::Sub(hn::Sub(x, set(first)), set(second)); }
  HWY_INLINE float negative(float x) const { return second - (x - first); }
};

void log_softmax_rows(const float* x, float* y, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    const LogSoftmaxRow row(x, n);
    each_vector(n, [&](auto io, int64_t i) HWY_ATTR { io.store(row(io.load(x + i)), y + i); });
  }
}

void log_softmax_grad_rows(const float* dy, const float* y, float* dx, int64_t rows, int64_t n) {
  for (int64_t r = 0; r < rows; ++r, dy += n, y += n, dx += n) {
    const V sum = set(row_sum(n, [&](auto io, int64_t i) HWY_ATTR { return io.load(dy + i); }));
    each_vector(n, [&](auto io, int64_t i) HWY_ATTR {
      io.store(hn::NegMulAdd(vm::exp(io.load(y + i)), sum, io.load(dy + i)), dx + i);
    });
  }
}

void cross_entropy_rows(const CrossEntropy& c, int64_t row0, int64_t row1, float grad_each) {
  const int64_t n = c.n;
  for (int64_t r = row0; r < row1; ++r) {
    const float* x = c.x + r * n;
    const int64_t label = c.labels[r];
    const bool ignored = c.has_ignore && label == c.ignore_index;
    const float weight = ignored ? 0.0f : c.weights ? c.weights[label] : 1.0f;
    float* grad = c.grad ? c.grad + r * n : nullptr;
    if (ignored && !c.log_prob) {
      c.row_loss[r] = 0;
      if (grad) std::memset(grad, 0, size_t(n) * sizeof(float));
      continue;
    }
    const LogSoftmaxRow row(x, n);
    c.row_loss[r] = ignored ? 0.0f : weight * row.negative(x[label]);
    if (c.log_prob) {
      float* out = c.log_prob + r * n;
      each_vector(n, [&](auto io, int64_t i) HWY_ATTR { io.store(row(io.load(x + i)), out + i); });
    }
    if (!grad) continue;
    const float g = ignored ? 0.0f : weight * grad_each;
    const V vg = set(g);
    each_vector(n, [&](auto io, int64_t i) HWY_ATTR {
      io.store(hn::Mul(vg, vm::exp_nonpositive(row(io.load(x + i)))), grad + i);
    });
    if (!ignored) grad[label] -= g;
  }
}

void norm_rows(const RowNorm& p, const float* x, float* y, float* mean, float* rstd, int64_t rows) {
  const int64_t n = p.n;
  const float inv_n = 1.0f / float(n);
  for (int64_t r = 0; r < rows; ++r, x += n, y += n) {
    const float mu =
        p.rms ? 0.0f
              : inv_n * row_sum(n, [&](auto io, int64_t i) HWY_ATTR { return io.load(x + i); });
    const V vmu = set(mu);
    const float var = inv_n * row_sum(n, [&](auto io, int64_t i) HWY_ATTR {
                        const V v = hn::Sub(io.load(x + i), vmu);
                        return hn::Mul(v, v);
                      });
    const float rs = 1.0f / std::sqrt(var + p.epsilon);
    if (mean) mean[r] = mu;
    if (rstd) rstd[r] = rs;
    const V vrs = set(rs);
    each_vector(n, [&](auto io, int64_t i) HWY_ATTR {
      V v = hn::Mul(hn::Sub(io.load(x + i), vmu), vrs);
      if (p.scale) v = hn::Mul(v, io.load(p.scale + i));
      if (p.bias) v = hn::Add(v, io.load(p.bias + i));
      io.store(v, y + i);
    });
  }
}

void norm_grad_rows(const RowNorm& p, const float* dy, const float* x, const float* mean,
                    const float* rstd, float* dx, float* dscale, float* dbias, int64_t rows) {
  const int64_t n = p.n;
  const float inv_n = 1.0f / float(n);
  if (dscale) std::memset(dscale, 0, size_t(n) * sizeof(float));
  if (dbias) std::memset(dbias, 0, size_t(n) * sizeof(float));
  for (int64_t r = 0; r < rows; ++r, dy += n, x += n, dx += n) {
    const V mu = set(p.rms ? 0.0f : mean[r]), rs = set(rstd[r]);
    auto grad = [&](auto io, int64_t i) HWY_ATTR {  // with respect to the normalized value
      const V g = io.load(dy + i);
      return p.scale ? hn::Mul(g, io.load(p.scale + i)) : g;
    };
    auto hat = [&](auto io, int64_t i)
                   HWY_ATTR { return hn::Mul(hn::Sub(io.load(x + i), mu), rs); };
    const float along = inv_n * row_sum(n, [&](auto io, int64_t i) HWY_ATTR {
                          return hn::Mul(grad(io, i), hat(io, i));
                        });
    const float flat = p.rms ? 0.0f : inv_n * row_sum(n, grad);
    const V va = set(along), vf = set(flat);
    each_vector(n, [&](auto io, int64_t i) HWY_ATTR {
      const V h = hat(io, i), d = io.load(dy + i), g = grad(io, i);
      if (dscale) io.store(hn::MulAdd(d, h, io.load(dscale + i)), dscale + i);
      if (dbias) io.store(hn::Add(d, io.load(dbias + i)), dbias + i);
      io.store(hn::Mul(rs, hn::NegMulAdd(h, va, hn::Sub(g, vf))), dx + i);
    });
  }
}

const RowKernels* make_rows() {
  static const RowKernels table = {softmax_rows,
                                   softmax_grad_rows,
                                   score_softmax_row,
                                   score_softmax_again_row,
                                   dropped_softmax_grad_row,
                                   close_one_row,
                                   log_softmax_rows,
                                   log_softmax_grad_rows,
                                   cross_entropy_rows,
                                   norm_rows,
                                   norm_grad_rows};
  return &table;
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxtrain::simd {
OT_SIMD_TABLE(RowKernels, row_kernels, make_rows)
}  // namespace onnxtrain::simd
#endif
