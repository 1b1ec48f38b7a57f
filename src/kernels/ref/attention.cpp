// Attention, forward and backward.
#include "kernels/ref/attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/ref/product.hpp"
#include "kernels/simd/rows.hpp"
#include "kernels/simd/vmath.hpp"
#include "kernels/slots.hpp"

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
    Product<T> scores, output, dp, dq, dk, dv;
  };
  AttentionShape s;
  std::vector<Block> blocks;
  Slots slots;
  size_t product_bytes = 0;

  bool plain_rows;  // no bias, nothing shown: rows of simd/rows.hpp
  Impl(const AttentionShape& shape, int threads)
      : s(shape),
        slots(std::max(1, threads)),
        plain_rows(std::is_same_v<T, float> && !s.has_mask && s.softcap == 0) {
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
      Product<T> p(d, alpha);
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
  size_t row_bytes() const { return Carver::bytes(size_t(s.keys) * sizeof(T)); }
  size_t slot_bytes(bool grad) const {
    return (grad ? 3 : 1) * matrix_bytes() + 2 * row_bytes() + product_bytes;
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

  // The same without a bias: a softmax over the keys in range.
  void plain_probabilities(const int64_t* lengths, int64_t b, int64_t i0, const Block& g, T* p,
                           ThreadPool& pool) const {
    if constexpr (std::is_same_v<T, float>)
      for (int64_t i = 0; i < g.rows; ++i) {
        int64_t first, last;
        range(lengths, b, i0 + i, first, last);
        first = std::min(first, g.keys), last = std::min(last, g.keys);
        T* row = p + i * g.keys;
        std::fill_n(row, first, T(0));
        if (last > first) simd::softmax(pool, row + first, row + first, 1, last - first);
        std::fill_n(row + last, g.keys - last, T(0));
      }
  }

  // Scores of a block become probabilities. `capped` (or null) gets tanh(score / softcap).
  void probabilities(const void* mask, const int64_t* lengths, int64_t b, int64_t h, int64_t i0,
                     const Block& g, T* p, T* capped, T* bias, T* shown, ThreadPool& pool) const {
    constexpr T kNo = -std::numeric_limits<T>::infinity();
    int64_t keys = g.keys, rows = g.rows;
    if (plain_rows && !shown) return plain_probabilities(lengths, b, i0, g, p, pool);
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
      T *p = c.take<T>(int64_t(matrix_size())), *bias = c.take<T>(s.keys);
      c.take<T>(s.keys);
      char* space = c.take<char>(int64_t(product_bytes));
      g.scores.run(pool, a.q + s.q.at(b, h, i0), a.k + s.k.at(b, h / group), p, space);
      T* shown = a.scores ? a.scores + ((b * s.heads + h) * s.queries + i0) * s.keys : nullptr;
      probabilities(a.mask, a.lengths, b, h, i0, g, p, nullptr, bias, shown, pool);
      g.output.run(pool, p, a.v + s.v.at(b, h / group), a.y + s.y.at(b, h, i0), space);
      slots.give_back(slot);
    });
  }

  void zero(T* to, const HeadStrides& at, int64_t b, int64_t h, int64_t width) const {
    for (int64_t j = 0; j < s.keys; ++j) std::fill_n(to + at.at(b, h, j), width, T(0));
  }

  // One block of queries of one head: adds to dk and dv, writes dq.
  void back_block(const AttentionGradArgs<T>& a, int64_t b, int64_t h, int64_t k, char* area,
                  ThreadPool& pool) const {
    const Block& g = blocks[size_t(k)];
    int64_t kv = h / (s.heads / s.kv_heads), i0 = k * kBlock, keys = g.keys;
    Carver c(area);
    const int64_t most = int64_t(matrix_size());
    T *p = c.take<T>(most), *dp = c.take<T>(most), *capped = c.take<T>(most);
    T* bias = c.take<T>(s.keys);
    c.take<T>(s.keys);
    char* space = c.take<char>(int64_t(product_bytes));
    g.scores.run(pool, a.q + s.q.at(b, h, i0), a.k + s.k.at(b, kv), p, space);
    probabilities(a.mask, a.lengths, b, h, i0, g, p, capped, bias, nullptr, pool);
    const T* dy = a.dy + s.y.at(b, h, i0);
    g.dp.run(pool, dy, a.v + s.v.at(b, kv), dp, space);
    if (a.dv) g.dv.run(pool, p, dy, a.dv + s.v.at(b, kv), space);
    if constexpr (std::is_same_v<T, float>) simd::softmax_grad(pool, dp, p, dp, g.rows, keys);
    for (int64_t i = 0; i < g.rows && (!std::is_same_v<T, float> || a.dbias || s.softcap > 0);
         ++i) {
      T *row = p + i * keys, *d = dp + i * keys, sum = 0;
      if constexpr (!std::is_same_v<T, float>) {
        for (int64_t j = 0; j < keys; ++j) sum += row[j] * d[j];
        for (int64_t j = 0; j < keys; ++j) d[j] = row[j] * (d[j] - sum);
      }
      if (a.dbias) std::copy_n(d, keys, a.dbias + ((b * s.heads + h) * s.queries + i0 + i) * keys);
      if (s.softcap > 0)
        for (int64_t j = 0; j < keys; ++j)
          d[j] *= T(1) - capped[i * keys + j] * capped[i * keys + j];
    }
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
