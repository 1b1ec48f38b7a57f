// Attention, forward and backward.
#include "kernels/attention/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/error.hpp"
#include "kernels/attention/attention_rows.hpp"
#include "kernels/common/slots.hpp"
#include "kernels/common/vmath.hpp"
#include "kernels/gemm/gemm_typed.hpp"

namespace onnxtrain::kernels {

namespace {

constexpr int64_t kBlock = 64;  // queries at a time

void exp_all(float* x, int64_t n) { simd::vexp(x, x, n); }
void exp_all(double* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = std::exp(x[i]);
}
void tanh_all(float* x, int64_t n) { simd::vtanh(x, x, n); }
void tanh_all(double* x, int64_t n) {
  for (int64_t i = 0; i < n; ++i) x[i] = std::tanh(x[i]);
}

}  // namespace

template <class T>
struct AttentionPlan<T>::Impl {
  // Products for a block of `rows` queries.
  struct Block {
    int64_t rows = 0, keys = 0;  // no query of the block looks at later keys
    TypedGemm<T> scores, output, dp, dq, dk, dv;
  };
  AttentionShape s;
  std::vector<Block> blocks;
  Slots slots;
  size_t product_bytes = 0;

  bool plain_rows;  // nothing but softmax under a mask: rows of attention_rows.hpp
  Impl(const AttentionShape& shape, int threads)
      : s(shape),
        slots(std::max(1, threads)),
        plain_rows(s.softcap == 0 && (!s.has_mask || s.mask_stride[3] == 1 || s.keys == 1)) {
    OT_ASSERT(s.ratio == 0 || plain_rows);
    for (int64_t i = 0; i < s.queries; i += kBlock) {
      int64_t rows = std::min(kBlock, s.queries - i);
      int64_t keys = s.trim ? std::min(s.keys, i + rows + s.past) : s.keys;
      blocks.push_back(make_block(rows, keys));
    }
  }

  Block make_block(int64_t rows, int64_t keys) {
    Block b;
    b.rows = rows;
    b.keys = keys;
    if (rows == 0 || keys == 0) return b;
    auto make = [&](int64_t m, int64_t n, int64_t k, bool ta, bool tb, int64_t lda, int64_t ldb,
                    int64_t ldc, double alpha, float beta) {
      simd::GemmDesc d;
      d.m = m, d.n = n, d.k = k, d.trans_a = ta, d.trans_b = tb, d.lda = lda, d.ldb = ldb,
      d.ldc = ldc;
      d.beta = beta;
      TypedGemm<T> p(d, alpha);
      product_bytes = std::max(product_bytes, Carver::bytes(p.workspace()));
      return p;
    };
    int64_t d = s.width, e = s.value_width;
    b.scores = make(rows, keys, d, false, true, s.q.row, s.k.row, keys, s.scale, 0);
    b.output = make(rows, e, keys, false, false, keys, s.v.row, s.y.row, 1, 0);
    b.dp = make(rows, keys, e, false, true, s.y.row, s.v.row, keys, 1, 0);
    b.dq = make(rows, d, keys, false, false, keys, s.k.row, s.q.row, s.scale, 0);
    b.dk = make(keys, d, rows, true, false, keys, s.q.row, s.k.row, s.scale, 1);
    b.dv = make(keys, e, rows, true, false, keys, s.y.row, s.v.row, 1, 1);
    return b;
  }

  size_t matrix_size() const { return size_t(std::min(kBlock, s.queries) * s.keys); }
  size_t matrix_bytes() const { return Carver::bytes(matrix_size() * sizeof(T)); }
  size_t row_bytes() const { return Carver::bytes(size_t(s.keys + kDropSlack) * sizeof(T)); }
  size_t slot_bytes(bool grad) const {
    return (!grad ? 1 : s.softcap > 0 ? 3 : 2) * matrix_bytes() + row_bytes() + product_bytes;
  }

  // The keys that query i may look at, apart from the mask.
  void range(const int64_t* lengths, int64_t b, int64_t i, int64_t& first, int64_t& last) const {
    int64_t offset = s.past, valid = s.keys;
    if (lengths)
      valid = std::clamp<int64_t>(lengths[b], 0, s.keys),
      offset = s.past ? s.past : lengths[b] - s.queries;
    int64_t at = i + offset;
    first = 0, last = valid;
    if (s.causal) last = std::min(last, at + 1);
    if (s.left >= 0) first = std::max<int64_t>(first, at - s.left);
    if (s.right >= 0) last = std::min(last, at + s.right + 1);
    if (s.has_mask) last = std::min(last, s.mask_keys);
    first = std::clamp<int64_t>(first, 0, s.keys), last = std::clamp<int64_t>(last, first, s.keys);
  }

  // Bias of one row of scores; true when some key may be attended.
  bool bias_row(const void* mask, const int64_t* lengths, int64_t b, int64_t h, int64_t i,
                T* bias) const {
    constexpr T kNo = -std::numeric_limits<T>::infinity();
    int64_t first, last;
    range(lengths, b, i, first, last);
    std::fill_n(bias, s.keys, kNo);
    if (!s.has_mask) {
      std::fill(bias + first, bias + last, T(0));
      return last > first;
    }
    int64_t base = b * s.mask_stride[0] + h * s.mask_stride[1] + i * s.mask_stride[2],
            step = s.mask_stride[3];
    bool any = false;
    for (int64_t j = first; j < last; ++j) {
      if (s.mask_is_bool)
        bias[j] = static_cast<const bool*>(mask)[base + j * step] ? T(0) : kNo;
      else
        bias[j] = static_cast<const T*>(mask)[base + j * step];
      any |= bias[j] != kNo;
    }
    return any;
  }

  // What the mask says about a row's keys from `first` on.
  RowMask<T> row_mask(const void* mask, int64_t b, int64_t h, int64_t i, int64_t first) const {
    RowMask<T> m;
    if (!s.has_mask) return m;
    int64_t at = b * s.mask_stride[0] + h * s.mask_stride[1] + i * s.mask_stride[2] + first;
    if (s.mask_is_bool)
      m.open = static_cast<const uint8_t*>(mask) + at;
    else
      m.bias = static_cast<const T*>(mask) + at;
    m.open_is = s.open_is, m.fill = T(s.fill);
    return m;
  }

  // f(row number, first key, number of keys) for the rows of a block, within its keys.
  template <class F>
  void each_row(const int64_t* lengths, int64_t b, int64_t i0, const Block& g, F f) const {
    for (int64_t i = 0; i < g.rows; ++i) {
      int64_t first, last;
      range(lengths, b, i0 + i, first, last);
      first = std::min(first, g.keys), last = std::min(last, g.keys);
      f(i, first, last - first);
    }
  }

  // The same without softcap: a softmax over the keys in range. Stats are made, or those given
  // are used. Bit i of the result: row i has weight on places that are closed.
  uint64_t plain_probabilities(const void* mask, const int64_t* lengths, int64_t b, int64_t h,
                               int64_t i0, const Block& g, T* p, T* made, const T* given) const {
    uint64_t odd = 0;
    const int64_t at = 2 * ((b * s.heads + h) * s.queries + i0);
    each_row(lengths, b, i0, g, [&](int64_t i, int64_t first, int64_t n) {
      T* row = p + i * g.keys;
      std::fill_n(row, first, T(0));
      T own[2] = {0, 0}, *stats = made ? made + at + 2 * i : own;
      const RowMask<T> m = row_mask(mask, b, h, i0 + i, first);
      if (n > 0 && (given ? score_softmax_again(row + first, n, m, given + at + 2 * i)
                          : score_softmax(row + first, n, m, s.empty, stats)))
        odd |= uint64_t(1) << i;
      std::fill_n(row + first + n, g.keys - first - n, T(0));
    });
    return odd;
  }

  // The numbers that decide which of a row's n probabilities from `first` on are dropped.
  float* numbers(const DropCounter& c, int64_t b, int64_t h, int64_t i, int64_t first, int64_t n,
                 T* space) const {
    const int64_t at = c.first + ((b * s.heads + h) * s.queries + i) * s.keys + first;
    return drop_numbers(c.seed, c.stream, c.step, at, n, reinterpret_cast<float*>(space));
  }

  // Scores of a block become probabilities. `capped` (or null) gets tanh(score / softcap).
  void probabilities(const void* mask, const int64_t* lengths, int64_t b, int64_t h, int64_t i0,
                     const Block& g, T* p, T* capped, T* bias, T* shown) const {
    constexpr T kNo = -std::numeric_limits<T>::infinity();
    int64_t keys = g.keys, rows = g.rows;
    T cap = T(s.softcap);
    for (int64_t i = 0; i < rows; ++i) {
      T *row = p + i * keys, *show = shown ? shown + i * keys : nullptr;
      if (show && s.mode == 0) std::copy_n(row, keys, show);
      if (s.softcap > 0) {
        for (int64_t j = 0; j < keys; ++j) row[j] /= cap;
        tanh_all(row, keys);
        if (capped) std::copy_n(row, keys, capped + i * keys);
        for (int64_t j = 0; j < keys; ++j) row[j] *= cap;
      }
      if (show && s.mode == 1) std::copy_n(row, keys, show);
      bool any = bias_row(mask, lengths, b, h, i0 + i, bias);
      if (show && s.mode == 2)
        for (int64_t j = 0; j < keys; ++j) show[j] = row[j] + bias[j];
      if (!any) {
        std::fill_n(row, keys, T(0));
      } else {
        T most = kNo;
        for (int64_t j = 0; j < keys; ++j) {
          row[j] = bias[j] == kNo ? kNo : row[j] + bias[j];
          most = row[j] > most ? row[j] : most;
        }
        if (most == kNo) most = 0;
        for (int64_t j = 0; j < keys; ++j) row[j] -= most;
        exp_all(row, keys);
        T sum = 0;
        for (int64_t j = 0; j < keys; ++j) sum += row[j];
        T inverse = sum == 0 ? T(1) : T(1) / sum;
        for (int64_t j = 0; j < keys; ++j) row[j] *= inverse;
      }
      if (show && s.mode == 3) std::copy_n(row, keys, show);
    }
  }

  void forward(const AttentionArgs<T>& a, void* workspace, ThreadPool& pool) {
    int64_t per_head = int64_t(blocks.size()), group = s.heads / s.kv_heads;
    pool.run(s.batch * s.heads * per_head, [&](int64_t task) {
      int64_t k = task % per_head, h = task / per_head % s.heads, b = task / per_head / s.heads,
              i0 = k * kBlock;
      const Block& g = blocks[size_t(k)];
      int slot = slots.take();
      Carver c(static_cast<char*>(workspace) + size_t(slot) * slot_bytes(false));
      T *p = c.take<T>(int64_t(matrix_size())), *bias = c.take<T>(s.keys + kDropSlack);
      char* space = c.take<char>(int64_t(product_bytes));
      g.scores.run(pool, a.q + s.q.at(b, h, i0), a.k + s.k.at(b, h / group), p, space);
      T* shown = a.scores ? a.scores + ((b * s.heads + h) * s.queries + i0) * s.keys : nullptr;
      if (shown || !plain_rows)
        probabilities(a.mask, a.lengths, b, h, i0, g, p, nullptr, bias, shown);
      else
        plain_probabilities(a.mask, a.lengths, b, h, i0, g, p, a.stats, nullptr);
      if (s.ratio > 0)
        each_row(a.lengths, b, i0, g, [&](int64_t i, int64_t first, int64_t n) {
          drop_row(p + i * g.keys + first, numbers(a.drop, b, h, i0 + i, first, n, bias), n,
                   s.ratio);
        });
      g.output.run(pool, p, a.v + s.v.at(b, h / group), a.y + s.y.at(b, h, i0), space);
      slots.give_back(slot);
    });
  }

  void zero(T* to, const HeadStrides& at, int64_t b, int64_t h, int64_t width) const {
    for (int64_t j = 0; j < s.keys; ++j) std::fill_n(to + at.at(b, h, j), width, T(0));
  }

  static void softmax_back(const T* p, T* dp, int64_t rows, int64_t keys, ThreadPool& pool) {
    if constexpr (std::is_same_v<T, float>) return simd::softmax_grad(pool, dp, p, dp, rows, keys);
    for (int64_t i = 0; i < rows; ++i, p += keys, dp += keys) {
      T sum = 0;
      for (int64_t j = 0; j < keys; ++j) sum += p[j] * dp[j];
      for (int64_t j = 0; j < keys; ++j) dp[j] = p[j] * (dp[j] - sum);
    }
  }

  // One block of queries of one head: adds to dk and dv, writes dq.
  void back_block(const AttentionGradArgs<T>& a, int64_t b, int64_t h, int64_t k, char* area,
                  ThreadPool& pool) const {
    const Block& g = blocks[size_t(k)];
    int64_t kv = h / (s.heads / s.kv_heads), i0 = k * kBlock, keys = g.keys;
    Carver c(area);
    const int64_t most = int64_t(matrix_size());
    T *p = c.take<T>(most), *dp = c.take<T>(most), *capped = c.take<T>(s.softcap > 0 ? most : 0);
    T* bias = c.take<T>(s.keys + kDropSlack);
    char* space = c.take<char>(int64_t(product_bytes));
    g.scores.run(pool, a.q + s.q.at(b, h, i0), a.k + s.k.at(b, kv), p, space);
    uint64_t odd = 0;
    if (plain_rows)
      odd = plain_probabilities(a.mask, a.lengths, b, h, i0, g, p, nullptr, a.stats);
    else
      probabilities(a.mask, a.lengths, b, h, i0, g, p, capped, bias, nullptr);
    const T* dy = a.dy + s.y.at(b, h, i0);
    g.dp.run(pool, dy, a.v + s.v.at(b, kv), dp, space);
    if (s.ratio > 0)
      each_row(a.lengths, b, i0, g, [&](int64_t i, int64_t first, int64_t n) {
        T *row = p + i * keys, *d = dp + i * keys;
        std::fill_n(d, first, T(0));
        dropped_softmax_grad(row + first, d + first, numbers(a.drop, b, h, i0 + i, first, n, bias),
                             n, s.ratio);
        std::fill_n(d + first + n, keys - first - n, T(0));
      });
    else
      softmax_back(p, dp, g.rows, keys, pool);
    if (odd)
      each_row(a.lengths, b, i0, g, [&](int64_t i, int64_t first, int64_t n) {
        if (odd >> i & 1)
          close_row(dp + i * keys + first, n, row_mask(a.mask, b, h, i0 + i, first));
      });
    for (int64_t i = 0; i < g.rows && a.dbias; ++i)
      std::copy_n(dp + i * keys, keys, a.dbias + ((b * s.heads + h) * s.queries + i0 + i) * keys);
    if (s.softcap > 0)
      for (int64_t i = 0; i < g.rows * keys; ++i) dp[i] *= T(1) - capped[i] * capped[i];
    if (a.dv) g.dv.run(pool, p, dy, a.dv + s.v.at(b, kv), space);
    if (a.dq) g.dq.run(pool, dp, a.k + s.k.at(b, kv), a.dq + s.q.at(b, h, i0), space);
    if (a.dk) g.dk.run(pool, dp, a.q + s.q.at(b, h, i0), a.dk + s.k.at(b, kv), space);
  }

  void backward(const AttentionGradArgs<T>& a, void* workspace, ThreadPool& pool) {
    int64_t group = s.heads / s.kv_heads;
    pool.run(s.batch * s.kv_heads, [&](int64_t task) {
      int64_t b = task / s.kv_heads, kv = task % s.kv_heads;
      int slot = slots.take();
      char* area = static_cast<char*>(workspace) + size_t(slot) * slot_bytes(true);
      if (a.dk) zero(a.dk, s.k, b, kv, s.width);
      if (a.dv) zero(a.dv, s.v, b, kv, s.value_width);
      for (int64_t h = kv * group; h < (kv + 1) * group; ++h)
        for (int64_t k = 0; k < int64_t(blocks.size()); ++k) back_block(a, b, h, k, area, pool);
      slots.give_back(slot);
    });
  }
};

template <class T>
AttentionPlan<T>::AttentionPlan(const AttentionShape& s, int threads)
    : impl_(std::make_unique<Impl>(s, threads)) {}
template <class T>
AttentionPlan<T>::~AttentionPlan() = default;
template <class T>
size_t AttentionPlan<T>::workspace() const {
  return impl_->slot_bytes(false) * size_t(impl_->slots.count());
}
template <class T>
size_t AttentionPlan<T>::grad_workspace() const {
  return impl_->slot_bytes(true) * size_t(impl_->slots.count());
}
template <class T>
void AttentionPlan<T>::run(const AttentionArgs<T>& a, void* workspace, ThreadPool& pool) {
  impl_->forward(a, workspace, pool);
}
template <class T>
void AttentionPlan<T>::grad(const AttentionGradArgs<T>& a, void* workspace, ThreadPool& pool) {
  impl_->backward(a, workspace, pool);
}

template class AttentionPlan<float>;
template class AttentionPlan<double>;

}  // namespace onnxtrain::kernels
