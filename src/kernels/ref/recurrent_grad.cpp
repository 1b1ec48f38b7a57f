// The recurrent backward pass: through time with what the forward pass saved, then the weight
// gradients of all steps as single matrix products.
#include <algorithm>
#include <cstring>

#include "kernels/ref/recurrent_detail.hpp"
#include "kernels/simd/lstm.hpp"

namespace onnxtrain::kernels {

template <class T>
struct RecurrentGradPlan<T>::Impl {
  RecurrentShape s;
  SavedColumns columns;
  Rows rows;
  bool two_products, usual;                 // usual: the cell of simd/lstm.hpp
  int64_t width;                            // of a row of gate gradients, in units of hidden
  Product<T> to_state, to_reset;            // dz R; dzh Rh
  Product<T> to_x, to_w, to_r, to_r_reset;  // over all steps
  size_t product_bytes = 0, packed_bytes = 0, packed2_bytes = 0;

  explicit Impl(const RecurrentShape& shape) : s(shape), columns(shape), rows(shape) {
    int64_t h = s.hidden, g = s.gates();
    two_products = s.cell == Cell::kGru && !s.linear_before_reset;
    usual = usual_lstm<T>(s);
    // a GRU row ends with the gradient of the candidate's recurrent part
    width = s.cell == Cell::kGru ? 4 : g;
    int64_t saved = columns.width * h, ld = width * h;
    auto make = [&](int64_t m, int64_t n, int64_t k, bool ta, int64_t lda, int64_t ldb,
                    int64_t ldc) {
      simd::GemmDesc d;
      d.m = m, d.n = n, d.k = k, d.trans_a = ta, d.lda = lda, d.ldb = ldb, d.ldc = ldc;
      return d;
    };
    int64_t in_step = s.cell == Cell::kGru ? 2 * h : g * h;
    simd::GemmDesc st = make(s.batch, h, in_step, false, rows.image * ld, h, h);
    st.packed_b = std::is_same_v<T, float> && s.steps > 1;
    to_state = Product<T>(st);
    st.k = h;
    if (s.cell == Cell::kGru) to_reset = Product<T>(st);
    simd::GemmDesc dx = make(s.rows(), s.inputs, g * h, false, ld, s.inputs, s.inputs);
    to_x = Product<T>(dx);
    dx.beta = 1;
    to_x_more = Product<T>(dx);
    to_w = Product<T>(make(g * h, s.inputs, s.rows(), true, ld, s.inputs, s.inputs));
    to_r = Product<T>(make(in_step, h, s.rows(), true, ld, saved, h));
    if (s.cell == Cell::kGru) to_r_reset = Product<T>(make(h, h, s.rows(), true, ld, saved, h));
    for (const Product<T>* p : {&to_state, &to_reset, &to_x, &to_x_more, &to_w, &to_r, &to_r_reset})
      product_bytes = std::max(product_bytes, p->workspace());
    product_bytes = Carver::bytes(product_bytes);
    packed_bytes = to_state.packed_bytes();
    if (s.cell == Cell::kGru) packed2_bytes = to_reset.packed_bytes();
  }
  Product<T> to_x_more;

  size_t workspace() const {
    auto b = [](int64_t n) { return Carver::bytes(size_t(n) * sizeof(T)); };
    int64_t state = s.batch * s.hidden;
    return b(s.rows() * width * s.hidden) + 4 * b(state) + Carver::bytes(packed_bytes) +
           Carver::bytes(packed2_bytes) + product_bytes;
  }

  struct Memory {
    T *dz, *dh, *dc, *dh_prev, *reset, *packed, *packed2;
    void* space;
  };
  Memory carve(void* workspace) const {
    Carver c(workspace);
    int64_t state = s.batch * s.hidden;
    Memory m;
    m.dz = c.take<T>(s.rows() * width * s.hidden);
    m.dh = c.take<T>(state);
    m.dc = c.take<T>(state);
    m.dh_prev = c.take<T>(state);
    m.reset = c.take<T>(state);
    m.packed = reinterpret_cast<T*>(c.take<char>(int64_t(packed_bytes)));
    m.packed2 = reinterpret_cast<T*>(c.take<char>(int64_t(packed2_bytes)));
    m.space = c.take<char>(int64_t(product_bytes));
    return m;
  }

  // The derivative of gate number k (with activation f) at column j of a saved row.
  T slope(const CellActivation& f, const T* save, int64_t k, int64_t j) const {
    int64_t n = s.hidden;
    T y = save[k * n + j];
    if (columns.inputs < 0) return cell_slope(f, T(0), y);
    T z = save[(columns.inputs + k) * n + j];
    if (s.clip > 0) {
      T c = T(s.clip);
      if (z > c || z < -c) return T(0);
    }
    return cell_slope(f, z, y);
  }

  void lstm_row(const CellActivation* f, const T* save, const T* p, const T* dh, T* dc,
                T* dz) const {
    int64_t n = s.hidden;
    if constexpr (std::is_same_v<T, float>)
      if (usual && !p) return simd::lstm_cell_grad(save, dh, dc, dz, n);
    const T* e = save + columns.extra * n;
    for (int64_t j = 0; j < n; ++j) {
      T i = save[j], o = save[n + j], fg = save[2 * n + j], g = save[3 * n + j];
      T before = e[j], after = e[n + j], hc = e[2 * n + j];
      T zo = dh[j] * hc * slope(f[0], save, 1, j);
      T d = dc[j] + dh[j] * o * cell_slope(f[2], after, hc);
      if (p) d += p[n + j] * zo;
      T di = d * g, df = d * before;
      if (s.input_forget) di -= df, df = 0;
      T zi = di * slope(f[0], save, 0, j),
        zf = s.input_forget ? T(0) : df * slope(f[0], save, 2, j);
      T zc = d * i * slope(f[1], save, 3, j);
      T back = d * fg;
      if (p) back += p[j] * zi + p[2 * n + j] * zf;
      dc[j] = back;
      dz[j] = zi, dz[n + j] = zo, dz[2 * n + j] = zf, dz[3 * n + j] = zc;
    }
  }

  // First half of a GRU step: gradients of the candidate and of z; dh becomes what flows directly.
  void gru_candidate(const CellActivation* f, const T* save, T* dh, T* dz) const {
    int64_t n = s.hidden;
    const T *h_prev = save + columns.h_prev * n, *u = save + columns.extra * n;
    for (int64_t j = 0; j < n; ++j) {
      T z = save[j], r = save[n + j], g = save[2 * n + j], d = dh[j];
      T zh = d * (T(1) - z) * slope(f[1], save, 2, j);
      dz[j] = d * (h_prev[j] - g) * slope(f[0], save, 0, j);
      dz[2 * n + j] = zh;
      dh[j] = d * z;
      if (!two_products) {
        dz[n + j] = zh * u[j] * slope(f[0], save, 1, j);
        dz[3 * n + j] = zh * r;
      } else {
        dz[3 * n + j] = zh;
      }
    }
  }

  // Second half: the recurrent part of the candidate has been sent back into `back`.
  void gru_reset(const CellActivation* f, const T* save, const T* back, T* dh, T* dz) const {
    int64_t n = s.hidden;
    const T* h_prev = save + columns.h_prev * n;
    for (int64_t j = 0; j < n; ++j) {
      if (two_products) {
        dz[n + j] = back[j] * h_prev[j] * slope(f[0], save, 1, j);
        dh[j] += back[j] * save[n + j];
      } else {
        dh[j] += back[j];
      }
    }
  }

  void rnn_row(const CellActivation* f, const T* save, const T* dh, T* dz) const {
    for (int64_t j = 0; j < s.hidden; ++j) dz[j] = dh[j] * slope(f[0], save, 0, j);
  }

  void step(const RecurrentGradArgs<T>& a, int d, int64_t t, Memory& m, const T* r, const T* r2,
            ThreadPool& pool) {
    int64_t h = s.hidden, ld = width * h, saved = columns.width * h;
    const CellActivation* f = s.activations[size_t(d)].data();
    const T* p = a.p ? a.p + d * 3 * h : nullptr;
    bool gru = s.cell == Cell::kGru;
    auto active = [&](int64_t b) { return !a.lengths || t < a.lengths[b]; };
    auto save_of = [&](int64_t b) { return a.saved + (d * s.rows() + rows.at(t, b)) * saved; };
    auto dz_of = [&](int64_t b) { return m.dz + rows.at(t, b) * ld; };
    int64_t grain = std::max<int64_t>(1, kCellGrain / std::max<int64_t>(1, h));
    parallel_for(pool, s.batch, grain, [&](int64_t b0, int64_t b1) {
      for (int64_t b = b0; b < b1; ++b) {
        T *dh = m.dh + b * h, *dz = dz_of(b);
        if (!active(b)) {
          std::fill_n(dz, ld, T(0));
          continue;
        }
        if (a.dy) {
          int64_t at = s.batch_first ? (b * s.steps + t) * s.directions + d
                                     : (t * s.directions + d) * s.batch + b;
          for (int64_t j = 0; j < h; ++j) dh[j] += a.dy[at * h + j];
        }
        if (s.cell == Cell::kLstm)
          lstm_row(f, save_of(b), p, dh, m.dc + b * h, dz);
        else if (gru)
          gru_candidate(f, save_of(b), dh, dz);
        else
          rnn_row(f, save_of(b), dh, dz);
      }
    });
    T* dz0 = m.dz + rows.at(t, 0) * ld;
    if (gru) {
      to_reset.run(pool, dz0 + 3 * h, r2, m.reset, m.space);
      parallel_for(pool, s.batch, grain, [&](int64_t b0, int64_t b1) {
        for (int64_t b = b0; b < b1; ++b)
          if (active(b)) gru_reset(f, save_of(b), m.reset + b * h, m.dh + b * h, dz_of(b));
      });
    }
    if (!gru && !a.lengths) return to_state.run(pool, dz0, r, m.dh, m.space);
    to_state.run(pool, dz0, r, m.dh_prev, m.space);
    for (int64_t b = 0; b < s.batch; ++b) {
      if (!active(b)) continue;
      T *dh = m.dh + b * h, *prev = m.dh_prev + b * h;
      if (gru) {
        for (int64_t j = 0; j < h; ++j) dh[j] += prev[j];
      } else {
        std::copy_n(prev, h, dh);
      }
    }
  }

  int64_t state_at(int d, int64_t b) const {
    return (s.batch_first ? b * s.directions + d : d * s.batch + b) * s.hidden;
  }
  void load(const T* from, int d, T* to) const {
    for (int64_t b = 0; b < s.batch; ++b) {
      if (from)
        std::copy_n(from + state_at(d, b), s.hidden, to + b * s.hidden);
      else
        std::fill_n(to + b * s.hidden, s.hidden, T(0));
    }
  }
  void store(const T* from, int d, T* to) const {
    if (!to) return;
    for (int64_t b = 0; b < s.batch; ++b)
      std::copy_n(from + b * s.hidden, s.hidden, to + state_at(d, b));
  }

  static constexpr int64_t kBiasColumns = 64;
  // Bias: sums over rows, in their order; columns are independent.
  void bias_grad(const T* dz, T* db, ThreadPool& pool) const {
    int64_t h = s.hidden, g = s.gates(), ld = width * h, n = g * h;
    parallel_for(pool, n, kBiasColumns, [&](int64_t j0, int64_t j1) {
      T sum[kBiasColumns] = {}, apart[kBiasColumns] = {};
      const int64_t count = j1 - j0;
      const bool gru = s.cell == Cell::kGru;  // the candidate's recurrent part has its own gradient
      for (int64_t row = 0; row < s.rows(); ++row) {
        const T* z = dz + row * ld + j0;
        for (int64_t j = 0; j < count; ++j) sum[j] += z[j];
        for (int64_t j = 0; gru && j < count; ++j) apart[j] += z[j0 + j >= 2 * h ? j + h : j];
      }
      std::copy_n(sum, count, db + j0);
      std::copy_n(gru ? apart : sum, count, db + n + j0);
    });
  }

  // Peepholes: i, o, f with the cell state they looked at.
  void peephole_grad(const T* dz, const T* saved, T* dp) const {
    int64_t h = s.hidden, ld = width * h, sw = columns.width * h;
    std::fill_n(dp, 3 * h, T(0));
    for (int64_t row = 0; row < s.rows(); ++row) {
      const T *z = dz + row * ld, *e = saved + row * sw + columns.extra * h;
      for (int64_t j = 0; j < h; ++j) {
        dp[j] += z[j] * e[j];
        dp[h + j] += z[h + j] * e[h + j];
        dp[2 * h + j] += z[2 * h + j] * e[j];
      }
    }
  }

  void run(const RecurrentGradArgs<T>& a, void* workspace, ThreadPool& pool) {
    int64_t h = s.hidden, g = s.gates(), sw = columns.width * h;
    for (int d = 0; d < s.directions; ++d) {
      Memory m = carve(workspace);
      const T* weights = a.r + d * g * h * h;
      const T* r = to_state.pack(pool, weights, m.packed);
      const T* r2 =
          s.cell == Cell::kGru ? to_reset.pack(pool, weights + 2 * h * h, m.packed2) : nullptr;
      load(a.dyh, d, m.dh);
      load(a.dyc, d, m.dc);
      bool backwards = (d == 1) != s.reverse;
      for (int64_t k = 0; k < s.steps; ++k)
        step(a, d, backwards ? k : s.steps - 1 - k, m, r, r2, pool);
      store(m.dh, d, a.dh0);
      store(m.dc, d, a.dc0);
      const T* saved = a.saved + d * s.rows() * sw;
      const T* w = a.w + d * g * h * s.inputs;
      if (a.dx) (d == 0 ? to_x : to_x_more).run(pool, m.dz, w, a.dx, m.space);
      if (a.dw) to_w.run(pool, m.dz, a.x, a.dw + d * g * h * s.inputs, m.space);
      if (a.dr) {
        T* dr = a.dr + d * g * h * h;
        to_r.run(pool, m.dz, saved + columns.h_prev * h, dr, m.space);
        if (s.cell == Cell::kGru)
          to_r_reset.run(pool, m.dz + 3 * h,
                         saved + (two_products ? columns.extra : columns.h_prev) * h,
                         dr + 2 * h * h, m.space);
      }
      if (a.db) bias_grad(m.dz, a.db + d * 2 * g * h, pool);
      if (a.dp) peephole_grad(m.dz, saved, a.dp + d * 3 * h);
    }
  }
};

template <class T>
RecurrentGradPlan<T>::RecurrentGradPlan(const RecurrentShape& s)
    : impl_(std::make_unique<Impl>(s)) {}
template <class T>
RecurrentGradPlan<T>::~RecurrentGradPlan() = default;
template <class T>
size_t RecurrentGradPlan<T>::workspace() const {
  return impl_->workspace();
}
template <class T>
void RecurrentGradPlan<T>::run(const RecurrentGradArgs<T>& a, void* workspace, ThreadPool& pool) {
  impl_->run(a, workspace, pool);
}

template class RecurrentGradPlan<float>;
template class RecurrentGradPlan<double>;

}  // namespace onnxtrain::kernels
