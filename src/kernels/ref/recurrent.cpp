// The recurrent forward pass.
#include "kernels/ref/recurrent.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/ref/recurrent_detail.hpp"
#include "kernels/simd/lstm.hpp"
#include "kernels/simd/vmath.hpp"

namespace onnxtrain::kernels {

int64_t RecurrentShape::saved_width() const { return SavedColumns(*this).width * hidden; }

template <class T>
struct RecurrentPlan<T>::Impl {
  RecurrentShape s;
  SavedColumns columns;
  Rows rows;
  Product<T> input, state, candidate;  // X W^T; H R^T (GRU: of z and r); (r.H) Rh^T
  bool two_products;                   // GRU with the reset before the product
  bool usual;                          // the cell of simd/lstm.hpp
  size_t product_bytes = 0, packed_bytes = 0, packed2_bytes = 0;

  explicit Impl(const RecurrentShape& shape) : s(shape), columns(shape), rows(shape) {
    int64_t h = s.hidden, g = s.gates();
    two_products = s.cell == Cell::kGru && !s.linear_before_reset;
    usual = usual_lstm<T>(s);
    simd::GemmDesc d;
    d.m = s.rows(), d.n = g * h, d.k = s.inputs, d.trans_b = true;
    d.lda = s.inputs, d.ldb = s.inputs, d.ldc = g * h;
    d.bias = simd::BiasAxis::kColumn;
    input = Product<T>(d);
    simd::GemmDesc e;
    e.m = s.batch, e.n = (two_products ? 2 : g) * h, e.k = h, e.trans_b = true;
    e.lda = h, e.ldb = h, e.ldc = e.n;
    e.packed_b = std::is_same_v<T, float> && s.steps > 1;
    state = Product<T>(e);
    e.n = e.ldc = h;
    if (two_products) candidate = Product<T>(e);
    product_bytes = std::max(input.workspace(), state.workspace());
    packed_bytes = state.packed_bytes();
    if (two_products) {
      product_bytes = std::max(product_bytes, candidate.workspace());
      packed2_bytes = candidate.packed_bytes();
    }
    product_bytes = Carver::bytes(product_bytes);
  }

  size_t workspace() const {
    int64_t h = s.hidden, g = s.gates();
    auto b = [](int64_t n) { return Carver::bytes(size_t(n) * sizeof(T)); };
    return b(s.rows() * g * h) + b(g * h) * 2 + b(s.batch * g * h) + 3 * b(s.batch * h) +
           Carver::bytes(packed_bytes) + Carver::bytes(packed2_bytes) + product_bytes;
  }

  // One direction's memory during a run.
  struct Memory {
    T *gates, *bias, *rec_bias, *product, *h, *c, *reset, *packed, *packed2;
    void* space;
  };
  Memory carve(void* workspace) const {
    int64_t h = s.hidden, g = s.gates();
    Carver c(workspace);
    Memory m;
    m.gates = c.take<T>(s.rows() * g * h);
    m.bias = c.take<T>(g * h);
    m.rec_bias = c.take<T>(g * h);
    m.product = c.take<T>(s.batch * g * h);
    m.h = c.take<T>(s.batch * h);
    m.c = c.take<T>(s.batch * h);
    m.reset = c.take<T>(s.batch * h);
    m.packed = reinterpret_cast<T*>(c.take<char>(int64_t(packed_bytes)));
    m.packed2 = reinterpret_cast<T*>(c.take<char>(int64_t(packed2_bytes)));
    m.space = c.take<char>(int64_t(product_bytes));
    return m;
  }

  void load_bias(const T* b, int d, Memory& m) const {
    int64_t n = s.gates() * s.hidden;
    std::fill_n(m.bias, n, T(0));
    std::fill_n(m.rec_bias, n, T(0));
    if (!b) return;
    b += d * 2 * n;
    // the candidate's recurrent bias of a GRU stays inside the reset when that comes last
    int64_t apart = s.cell == Cell::kGru && s.linear_before_reset ? 2 * s.hidden : n;
    for (int64_t i = 0; i < n; ++i) {
      m.bias[i] = i < apart ? b[i] + b[n + i] : b[i];
      if (i >= apart) m.rec_bias[i] = b[n + i];
    }
  }

  // Gate inputs to gate values, in place.
  void activate(const CellActivation& f, T* v, int64_t n) const {
    if (s.clip > 0) {
      T c = T(s.clip);
      for (int64_t j = 0; j < n; ++j) v[j] = v[j] > c ? c : v[j] < -c ? -c : v[j];
    }
    apply(f, v, n);
  }
  static void apply(const CellActivation& f, T* v, int64_t n) {
    if constexpr (std::is_same_v<T, float>) {
      if (f.fn == CellFn::kSigmoid) return simd::vsigmoid(v, v, n);
      if (f.fn == CellFn::kTanh) return simd::vtanh(v, v, n);
    }
    for (int64_t j = 0; j < n; ++j) v[j] = cell_fn(f, v[j]);
  }
  static void add_to(T* to, const T* x, int64_t n) {
    for (int64_t j = 0; j < n; ++j) to[j] += x[j];
  }
  // Inputs of gates [k, k + count) for the backward pass, when it needs them.
  void save_inputs(T* save, const T* z, int64_t k, int64_t count) const {
    if (save && columns.inputs >= 0)
      std::copy_n(z + k * s.hidden, count * s.hidden, save + (columns.inputs + k) * s.hidden);
  }

  // `z` holds the product with the state and is written over.
  void lstm_row(const CellActivation* f, const T* x, T* z, const T* p, T* h, T* c, T* save) const {
    int64_t n = s.hidden;
    if constexpr (std::is_same_v<T, float>)
      if (usual && !p) return simd::lstm_cell(x, z, h, c, save, n);
    add_to(z, x, 4 * n);
    T *i = z, *o = z + n, *forget = z + 2 * n, *g = z + 3 * n;
    for (int64_t j = 0; j < n && p; ++j) i[j] += p[j] * c[j], forget[j] += p[2 * n + j] * c[j];
    save_inputs(save, z, 0, 4);
    if (!p && !s.input_forget) {
      activate(f[0], z, 3 * n);
    } else {
      activate(f[0], i, n);
      activate(f[0], forget, n);
    }
    activate(f[1], g, n);
    for (int64_t j = 0; j < n && s.input_forget; ++j) forget[j] = T(1) - i[j];
    T* e = save ? save + columns.extra * n : nullptr;
    if (save) {
      std::copy_n(h, n, save + columns.h_prev * n);
      std::copy_n(c, n, e);
    }
    for (int64_t j = 0; j < n; ++j) c[j] = forget[j] * c[j] + i[j] * g[j];
    if (p || s.input_forget) {
      for (int64_t j = 0; j < n && p; ++j) o[j] += p[n + j] * c[j];
      save_inputs(save, z, 1, 1);
      activate(f[0], o, n);
    }
    std::copy_n(c, n, h);
    apply(f[2], h, n);
    if (save) {
      std::copy_n(z, 4 * n, save);
      std::copy_n(c, n, e + n);
      std::copy_n(h, n, e + 2 * n);
    }
    for (int64_t j = 0; j < n; ++j) h[j] *= o[j];
  }

  void rnn_row(const CellActivation* f, const T* x, T* z, T* h, T* save) const {
    int64_t n = s.hidden;
    add_to(z, x, n);
    save_inputs(save, z, 0, 1);
    activate(f[0], z, n);
    if (save) {
      std::copy_n(z, n, save);
      std::copy_n(h, n, save + n);
    }
    std::copy_n(z, n, h);
  }

  // Gates z and r, written over the product; what the candidate's product needs into `reset`.
  void gru_gates(const CellActivation* f, const T* x, T* zr, const T* h, T* reset, T* save) const {
    int64_t n = s.hidden;
    add_to(zr, x, 2 * n);
    save_inputs(save, zr, 0, 2);
    activate(f[0], zr, 2 * n);
    if (save) std::copy_n(zr, 2 * n, save);
    if (!reset) return;
    for (int64_t j = 0; j < n; ++j) reset[j] = zr[n + j] * h[j];
    if (save) std::copy_n(reset, n, save + columns.extra * n);
  }

  // The candidate (written over `rec`, its recurrent part without the reset) and the new state.
  void gru_state(const CellActivation* f, const T* x, const T* zr, T* rec, const T* rec_bias, T* h,
                 T* save) const {
    int64_t n = s.hidden;
    add_to(rec, rec_bias + 2 * n, n);
    if (save && !two_products) std::copy_n(rec, n, save + columns.extra * n);
    for (int64_t j = 0; j < n; ++j)
      rec[j] = x[2 * n + j] + (two_products ? rec[j] : zr[n + j] * rec[j]);
    if (save && columns.inputs >= 0) std::copy_n(rec, n, save + (columns.inputs + 2) * n);
    activate(f[1], rec, n);
    if (save) {
      std::copy_n(rec, n, save + 2 * n);
      std::copy_n(h, n, save + columns.h_prev * n);
    }
    for (int64_t j = 0; j < n; ++j) h[j] = (T(1) - zr[j]) * rec[j] + zr[j] * h[j];
  }

  void step(const RecurrentArgs<T>& a, int d, int64_t t, Memory& m, const T* r, const T* r2,
            ThreadPool& pool) {
    int64_t h = s.hidden, g = s.gates(), width = two_products ? 2 * h : g * h,
            saved = columns.width * h;
    const CellActivation* f = s.activations[size_t(d)].data();
    const T* p = a.p ? a.p + d * 3 * h : nullptr;
    state.run(pool, m.h, r, m.product, m.space);
    auto active = [&](int64_t b) { return !a.lengths || t < a.lengths[b]; };
    auto x_of = [&](int64_t b) { return m.gates + rows.at(t, b) * g * h; };
    auto save_of = [&](int64_t b) {
      return a.saved ? a.saved + (d * s.rows() + rows.at(t, b)) * saved : nullptr;
    };
    int64_t grain = std::max<int64_t>(1, kCellGrain / std::max<int64_t>(1, h));
    if (two_products) {
      parallel_for(pool, s.batch, grain, [&](int64_t b0, int64_t b1) {
        for (int64_t b = b0; b < b1; ++b)
          gru_gates(f, x_of(b), m.product + b * width, m.h + b * h, m.reset + b * h,
                    active(b) ? save_of(b) : nullptr);
      });
      candidate.run(pool, m.reset, r2, m.c, m.space);  // a GRU has no other use for c
    }
    parallel_for(pool, s.batch, grain, [&](int64_t b0, int64_t b1) {
      for (int64_t b = b0; b < b1; ++b) {
        T* hb = m.h + b * h;
        T* save = save_of(b);
        if (active(b)) {
          T* hr = m.product + b * width;
          if (s.cell == Cell::kLstm) {
            lstm_row(f, x_of(b), hr, p, hb, m.c + b * h, save);
          } else if (s.cell == Cell::kRnn) {
            rnn_row(f, x_of(b), hr, hb, save);
          } else {
            if (!two_products) gru_gates(f, x_of(b), hr, hb, nullptr, save);
            gru_state(f, x_of(b), hr, two_products ? m.c + b * h : hr + 2 * h, m.rec_bias, hb,
                      save);
          }
        } else if (save) {
          std::fill_n(save, saved, T(0));
        }
        if (a.y) {
          int64_t at = s.batch_first ? (b * s.steps + t) * s.directions + d
                                     : (t * s.directions + d) * s.batch + b;
          if (active(b))
            std::copy_n(hb, h, a.y + at * h);
          else
            std::fill_n(a.y + at * h, h, T(0));
        }
      }
    });
  }

  // [directions, batch, hidden], or [batch, directions, hidden]
  int64_t state_at(int d, int64_t b) const {
    return (s.batch_first ? b * s.directions + d : d * s.batch + b) * s.hidden;
  }
  void load_state(const T* from, int d, T* to) const {
    for (int64_t b = 0; b < s.batch; ++b) {
      if (from)
        std::copy_n(from + state_at(d, b), s.hidden, to + b * s.hidden);
      else
        std::fill_n(to + b * s.hidden, s.hidden, T(0));
    }
  }
  void store_state(const T* from, int d, T* to) const {
    if (!to) return;
    for (int64_t b = 0; b < s.batch; ++b)
      std::copy_n(from + b * s.hidden, s.hidden, to + state_at(d, b));
  }

  void run(const RecurrentArgs<T>& a, void* workspace, ThreadPool& pool) {
    int64_t h = s.hidden, g = s.gates();
    for (int d = 0; d < s.directions; ++d) {
      Memory m = carve(workspace);
      load_bias(a.b, d, m);
      input.run(pool, a.x, a.w + d * g * h * s.inputs, m.gates, m.space, m.bias);
      const T* weights = a.r + d * g * h * h;
      const T* r = state.pack(pool, weights, m.packed);
      const T* r2 = two_products ? candidate.pack(pool, weights + 2 * h * h, m.packed2) : nullptr;
      load_state(a.h0, d, m.h);
      load_state(a.c0, d, m.c);
      bool backwards = (d == 1) != s.reverse;
      for (int64_t k = 0; k < s.steps; ++k)
        step(a, d, backwards ? s.steps - 1 - k : k, m, r, r2, pool);
      store_state(m.h, d, a.yh);
      store_state(m.c, d, a.yc);
    }
  }
};

template <class T>
RecurrentPlan<T>::RecurrentPlan(const RecurrentShape& s) : impl_(std::make_unique<Impl>(s)) {}
template <class T>
RecurrentPlan<T>::~RecurrentPlan() = default;
template <class T>
size_t RecurrentPlan<T>::workspace() const {
  return impl_->workspace();
}
template <class T>
void RecurrentPlan<T>::run(const RecurrentArgs<T>& a, void* workspace, ThreadPool& pool) {
  impl_->run(a, workspace, pool);
}

template class RecurrentPlan<float>;
template class RecurrentPlan<double>;

}  // namespace onnxtrain::kernels
