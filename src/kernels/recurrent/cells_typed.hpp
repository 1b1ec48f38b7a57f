// One row of a recurrent step, for all cells: the usual ones by kernels/recurrent/cells.hpp, the
// others (peepholes, clipping, other activations, double) by plain loops here.
#pragma once
#include <algorithm>

#include "kernels/common/vmath.hpp"
#include "kernels/recurrent/cells.hpp"
#include "kernels/recurrent/recurrent_layout.hpp"

namespace onnxtrain::kernels {

template <class T>
struct Cells {
  using Row = simd::CellRowOf<T>;
  using GradRow = simd::CellGradRowOf<T>;
  RecurrentShape s;
  SavedColumns columns;
  bool usual;

  explicit Cells(const RecurrentShape& shape)
      : s(shape), columns(shape), usual(usual_cell<T>(shape)) {}
  bool reset_first() const { return s.cell == Cell::kGru && !s.linear_before_reset; }

  // ---------------------------------------------------------------- forward
  // What the rows of one call share.
  struct Shared {
    const CellActivation* f;
    const T* p;     // peepholes i, o, f of these units, `hidden` apart, or null
    const T* bias;  // GRU with the reset last: that of the candidate's recurrent part
    bool second;    // GRU with the reset first: the half after the candidate's GEMM
  };
  void forward(const Shared& a, const Row* rows, int64_t count) const {
    if constexpr (kVectors)
      if (usual && !a.p) return by_vectors(a, rows, count);
    for (int64_t i = 0; i < count; ++i) {
      const Row& r = rows[i];
      if (s.cell == Cell::kLstm)
        lstm(a.f, r, a.p);
      else if (s.cell == Cell::kRnn)
        rnn(a.f, r);
      else if (!reset_first())
        gru(a.f, r, a.bias);
      else if (!a.second)
        gru_gates(a.f, r);
      else
        gru_state(a.f, r);
      if (r.y && (a.second || !reset_first())) std::copy_n(r.h, r.n, r.y);
    }
  }

  // ---------------------------------------------------------------- backward
  void lstm_grad(const CellActivation* f, const GradRow& r, const T* p) const {
    if constexpr (kVectors)
      if (usual && !p) return simd::lstm_cell_grad(r);
    int64_t ss = r.save_stride, zs = r.dz_stride, ph = s.hidden;
    const T* e = r.save + columns.extra * ss;
    arrive(r);
    for (int64_t j = 0; j < r.n; ++j) {
      T i = r.save[j], o = r.save[ss + j], fg = r.save[2 * ss + j], g = r.save[3 * ss + j];
      T before = e[j], after = e[ss + j], hc = e[2 * ss + j];
      T zo = r.dh[j] * hc * slope(f[0], r, 1, j);
      T d = r.dc[j] + r.dh[j] * o * cell_slope(f[2], after, hc);
      if (p) d += p[ph + j] * zo;
      T di = d * g, df = d * before;
      if (s.input_forget) di -= df, df = 0;
      T zi = di * slope(f[0], r, 0, j), zf = s.input_forget ? T(0) : df * slope(f[0], r, 2, j);
      T zc = d * i * slope(f[1], r, 3, j);
      T back = d * fg;
      if (p) back += p[j] * zi + p[2 * ph + j] * zf;
      r.dc[j] = back;
      r.dh[j] = 0;
      r.dz[j] = zi, r.dz[zs + j] = zo, r.dz[2 * zs + j] = zf, r.dz[3 * zs + j] = zc;
    }
  }
  void gru_grad(const CellActivation* f, const GradRow& r) const {
    if constexpr (kVectors)
      if (usual) return simd::gru_cell_grad(r, reset_first());
    int64_t ss = r.save_stride, zs = r.dz_stride;
    const T *before = r.save + columns.h_prev * ss, *part = r.save + columns.extra * ss;
    arrive(r);
    for (int64_t j = 0; j < r.n; ++j) {
      T z = r.save[j], open = r.save[ss + j], g = r.save[2 * ss + j], d = r.dh[j];
      T zh = d * (T(1) - z) * slope(f[1], r, 2, j);
      r.dz[j] = d * (before[j] - g) * slope(f[0], r, 0, j);
      r.dz[2 * zs + j] = zh;
      r.dh[j] = d * z;
      if (!reset_first()) r.dz[zs + j] = zh * part[j] * slope(f[0], r, 1, j);
      r.dz[3 * zs + j] = reset_first() ? zh : zh * open;
    }
  }
  void gru_reset_grad(const CellActivation* f, const GradRow& r, const T* back) const {
    if constexpr (kVectors)
      if (usual) return simd::gru_reset_grad(r, back);
    const T* before = r.save + columns.h_prev * r.save_stride;
    for (int64_t j = 0; j < r.n; ++j) {
      r.dz[r.dz_stride + j] = back[j] * before[j] * slope(f[0], r, 1, j);
      r.dh[j] += back[j] * r.save[r.save_stride + j];
    }
  }
  void rnn_grad(const CellActivation* f, const GradRow& r) const {
    if constexpr (kVectors)
      if (usual) return simd::rnn_cell_grad(r, f[0].fn == CellFn::kRelu);
    arrive(r);
    for (int64_t j = 0; j < r.n; ++j) {
      r.dz[j] = r.dh[j] * slope(f[0], r, 0, j);
      r.dh[j] = 0;
    }
  }

 private:
  void by_vectors(const Shared& a, const Row* rows, int64_t count) const {
    if (s.cell == Cell::kLstm)
      simd::lstm_cells(rows, count);
    else if (s.cell == Cell::kRnn)
      simd::rnn_cells(rows, count, a.f[0].fn == CellFn::kRelu);
    else if (!reset_first())
      simd::gru_cells(rows, count, a.bias);
    else if (!a.second)
      simd::gru_gates(rows, count);
    else
      simd::gru_states(rows, count);
  }

  void lstm(const CellActivation* f, const Row& r, const T* p) const {
    int64_t n = r.n, ph = s.hidden;
    T *i = r.z, *o = i + r.z_stride, *forget = o + r.z_stride, *g = forget + r.z_stride;
    add_inputs(r, 4);
    for (int64_t j = 0; j < n && p; ++j) i[j] += p[j] * r.c[j], forget[j] += p[2 * ph + j] * r.c[j];
    save_inputs(r, 0, 4);
    activate(f[0], i, n);
    if (s.input_forget)
      for (int64_t j = 0; j < n; ++j) forget[j] = T(1) - i[j];
    else
      activate(f[0], forget, n);
    activate(f[1], g, n);
    save(r, columns.h_prev, r.h_before);
    save(r, columns.extra, r.c);
    for (int64_t j = 0; j < n; ++j) r.c[j] = forget[j] * r.c[j] + i[j] * g[j];
    for (int64_t j = 0; j < n && p; ++j) o[j] += p[ph + j] * r.c[j];
    save_inputs(r, 1, 1);
    activate(f[0], o, n);
    std::copy_n(r.c, n, r.h);
    apply(f[2], r.h, n);
    for (int64_t k = 0; k < 4; ++k) save(r, k, r.z + k * r.z_stride);
    save(r, columns.extra + 1, r.c);
    save(r, columns.extra + 2, r.h);
    for (int64_t j = 0; j < n; ++j) r.h[j] *= o[j];
  }
  void rnn(const CellActivation* f, const Row& r) const {
    add_inputs(r, 1);
    save_inputs(r, 0, 1);
    activate(f[0], r.z, r.n);
    save(r, 0, r.z);
    save(r, 1, r.h_before);
    std::copy_n(r.z, r.n, r.h);
  }
  void gru(const CellActivation* f, const Row& r, const T* bias) const {
    gru_two_gates(f, r);
    T *rec = r.z + 2 * r.z_stride, *reset = r.z + r.z_stride;
    for (int64_t j = 0; j < r.n; ++j) rec[j] += bias[j];
    save(r, columns.extra, rec);
    for (int64_t j = 0; j < r.n; ++j) rec[j] = r.x[2 * r.x_stride + j] + reset[j] * rec[j];
    gru_candidate(f, r, rec, r.z);
  }
  void gru_gates(const CellActivation* f, const Row& r) const {
    gru_two_gates(f, r);
    const T* open = r.z + r.z_stride;
    std::copy_n(r.z, r.n, r.c);
    for (int64_t j = 0; j < r.n; ++j) r.reset[j] = open[j] * r.h_before[j];
    save(r, columns.extra, r.reset);
  }
  void gru_state(const CellActivation* f, const Row& r) const {
    for (int64_t j = 0; j < r.n; ++j) r.z[j] += r.x[2 * r.x_stride + j];
    gru_candidate(f, r, r.z, r.c);
  }

  static void arrive(const GradRow& r) {
    for (int64_t j = 0; j < r.n; ++j)
      r.dh[j] += (r.sent ? r.sent[j] : T(0)) + (r.dy ? r.dy[j] : T(0));
  }
  static constexpr bool kVectors = std::is_same_v<T, float>;

  static void add_inputs(const Row& r, int64_t gates) {
    for (int64_t k = 0; k < gates; ++k) {
      T* z = r.z + k * r.z_stride;
      const T* x = r.x + k * r.x_stride;
      for (int64_t j = 0; j < r.n; ++j) z[j] += x[j];
    }
  }
  static void save(const Row& r, int64_t column, const T* from) {
    if (r.save) std::copy_n(from, r.n, r.save + column * r.save_stride);
  }
  // Inputs of gates [k, k + count) for the backward pass, when it needs them.
  void save_inputs(const Row& r, int64_t k, int64_t count) const {
    for (int64_t g = k; g < k + count && columns.inputs >= 0; ++g)
      save(r, columns.inputs + g, r.z + g * r.z_stride);
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
    if constexpr (kVectors) {
      if (f.fn == CellFn::kSigmoid) return simd::vsigmoid(v, v, n);
      if (f.fn == CellFn::kTanh) return simd::vtanh(v, v, n);
    }
    for (int64_t j = 0; j < n; ++j) v[j] = cell_fn(f, v[j]);
  }
  void gru_two_gates(const CellActivation* f, const Row& r) const {
    add_inputs(r, 2);
    save_inputs(r, 0, 2);
    for (int64_t k = 0; k < 2; ++k) {
      activate(f[0], r.z + k * r.z_stride, r.n);
      save(r, k, r.z + k * r.z_stride);
    }
    save(r, columns.h_prev, r.h_before);
  }
  // g: input of the candidate, written over
  void gru_candidate(const CellActivation* f, const Row& r, T* g, const T* update) const {
    if (columns.inputs >= 0) save(r, columns.inputs + 2, g);
    activate(f[1], g, r.n);
    save(r, 2, g);
    for (int64_t j = 0; j < r.n; ++j)
      r.h[j] = (T(1) - update[j]) * g[j] + update[j] * r.h_before[j];
  }
  // The derivative of gate number k (with activation f) at unit j.
  T slope(const CellActivation& f, const GradRow& r, int64_t k, int64_t j) const {
    T y = r.save[k * r.save_stride + j];
    if (columns.inputs < 0) return cell_slope(f, T(0), y);
    T z = r.save[(columns.inputs + k) * r.save_stride + j], c = T(s.clip);
    if (c > 0 && (z > c || z < -c)) return T(0);
    return cell_slope(f, z, y);
  }
};

}  // namespace onnxtrain::kernels
