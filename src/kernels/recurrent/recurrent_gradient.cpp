// The recurrent backward pass: through time with what the forward pass saved, a group of units at a
// time, then the weight gradients of all steps as single GEMMs.
#include "kernels/recurrent/cells_typed.hpp"
#include "kernels/recurrent/recurrent_step.hpp"

namespace onnxtrain::kernels {

template <class T>
struct RecurrentGradPlan<T>::Impl {
  RecurrentShape s;
  SavedColumns columns;
  Rows rows;
  Cells<T> cells;
  bool gru, two_gemms;
  int64_t width;                   // of a row of gate gradients, in units of hidden
  int64_t ld;                      // elements between two such rows
  UnitGemm<T> to_state, to_reset;  // dz R (GRU: of z and r); dzh Rh
  StepSplit split;
  Phases phases;
  TypedGemm<T> to_x, to_x_more, to_w, to_r, to_r_reset;  // over all steps
  size_t gemm_bytes = 0;

  explicit Impl(const RecurrentShape& shape)
      : s(shape),
        columns(shape),
        rows(shape),
        cells(shape),
        gru(s.cell == Cell::kGru),
        two_gemms(cells.reset_first()),
        width(gru ? 4 : s.gates()),  // a GRU row ends with the candidate's recurrent part
        ld(state_stride(width * s.hidden)),
        to_state(s.batch, 1, s.hidden, in_step(), false, s.hidden),
        split(plan_split()) {
    int64_t h = s.hidden, g = s.gates(), saved = columns.width * h;
    if (gru) to_reset = UnitGemm<T>(s.batch, 1, h, h, false, h);
    auto make = [&](int64_t m, int64_t n, int64_t k, bool ta, int64_t ldb, float beta = 0) {
      simd::GemmDesc d;
      d.m = m, d.n = n, d.k = k, d.trans_a = ta, d.lda = ld, d.ldb = ldb, d.ldc = n, d.beta = beta;
      return TypedGemm<T>(d);
    };
    to_x = make(s.rows(), s.inputs, g * h, false, s.inputs);
    to_x_more = make(s.rows(), s.inputs, g * h, false, s.inputs, 1);
    to_w = make(g * h, s.inputs, s.rows(), true, s.inputs);
    to_r = make(in_step(), h, s.rows(), true, saved);
    if (gru) to_r_reset = make(h, h, s.rows(), true, saved);
    for (const TypedGemm<T>* p : {&to_x, &to_x_more, &to_w, &to_r, &to_r_reset})
      gemm_bytes = std::max(gemm_bytes, Carver::bytes(p->workspace()));
  }

  int64_t in_step() const { return (gru ? 2 : s.gates()) * s.hidden; }
  // Directions run side by side only where one alone has too few tasks: each needs its own memory.
  StepSplit plan_split() const {
    constexpr int64_t kEnough = 8;
    double work = double(s.batch) * double(s.gates() * s.hidden) * double(s.hidden + 10);
    StepSplit one(1, s.batch, to_state.groups(), work);
    if (s.directions == 1 || one.tasks() >= kEnough) return one;
    return StepSplit(s.directions, s.batch, to_state.groups(), work);
  }

  struct Memory {
    T *dz, *dh, *dc, *r, *rh;
  };
  size_t workspace() const {
    auto b = [](int64_t n) { return Carver::bytes(size_t(n) * sizeof(T)); };
    size_t one = b(s.rows() * ld) + 2 * b(s.batch * s.hidden) +
                 Carver::bytes(to_state.packed_bytes()) + Carver::bytes(reset_bytes());
    return one * size_t(split.directions) + gemm_bytes;
  }
  size_t reset_bytes() const { return gru ? to_reset.packed_bytes() : 0; }

  Memory prepare(const RecurrentGradArgs<T>& a, int d, Carver& c, ThreadPool& pool) const {
    int64_t h = s.hidden;
    Memory m;
    m.dz = c.take<T>(s.rows() * ld);
    m.dh = c.take<T>(s.batch * h);
    m.dc = c.take<T>(s.batch * h);
    m.r = c.take<T>(int64_t(to_state.packed_bytes() / sizeof(T)));
    m.rh = c.take<T>(int64_t(reset_bytes() / sizeof(T)));
    const T* weights = a.r + d * s.gates() * h * h;
    m.r = const_cast<T*>(to_state.pack(pool, weights, m.r));
    if (gru) m.rh = const_cast<T*>(to_reset.pack(pool, weights + 2 * h * h, m.rh));
    load_state(s, a.dyh, d, m.dh, h);
    load_state(s, a.dyc, d, m.dc, h);
    return m;
  }

  // The time of step k of the way back.
  int64_t time(int d, int64_t k) const { return (d == 1) != s.reverse ? k : s.steps - 1 - k; }

  // What step k sends back through the GEMMs: [images, group].
  T* send_back(const Memory& m, int d, int64_t k, int64_t b0, int64_t images, int64_t group,
               ThreadPool& pool) const {
    const T* dz = m.dz + rows.at(time(d, k), b0) * ld;
    T* z = step_scratch<T>();
    to_state.run(pool, dz, rows.image * ld, images, m.r, group, z);
    if (gru && !two_gemms)
      to_reset.run(pool, dz + 3 * s.hidden, rows.image * ld, images, m.rh, group, z, true);
    return z;
  }
  // The same, added to dh.
  void add_back(const Memory& m, int d, int64_t k, int64_t b0, int64_t images, int64_t group,
                ThreadPool& pool) const {
    int64_t h = s.hidden, unit = to_state.group(), u = group * unit;
    const T* z = send_back(m, d, k, b0, images, group, pool);
    for (int64_t i = 0; i < images; ++i)
      for (int64_t j = 0; j < std::min(unit, h - u); ++j)
        m.dh[(b0 + i) * h + u + j] += z[i * unit + j];
  }
  // Brings what the cells will read nearer while the GEMM runs.
  void fetch(const RecurrentGradArgs<T>& a, int d, int64_t t, int64_t b0, int64_t images,
             int64_t u) const {
    int64_t h = s.hidden;
    for (int64_t b = b0; b < b0 + images; ++b) {
      const T* save = a.saved + (d * s.rows() + rows.at(t, b)) * columns.width * h + u;
      for (int64_t k = 0; k < columns.width; ++k) __builtin_prefetch(save + k * h, 0, 2);
      if (a.dy) __builtin_prefetch(a.dy + output_at(s, d, t, b) + u, 0, 2);
    }
  }

  simd::CellGradRowOf<T> grad_row(const RecurrentGradArgs<T>& a, const Memory& m, int d, int64_t t,
                                  int64_t b, int64_t u) const {
    int64_t h = s.hidden;
    simd::CellGradRowOf<T> r;
    r.n = std::min(to_state.group(), h - u);
    r.save = a.saved + (d * s.rows() + rows.at(t, b)) * columns.width * h + u, r.save_stride = h;
    r.dh = m.dh + b * h + u, r.dc = m.dc + b * h + u;
    r.dz = m.dz + rows.at(t, b) * ld + u, r.dz_stride = h;
    return r;
  }

  // The cells of some images and units at step k.
  void cell(const RecurrentGradArgs<T>& a, const Memory& m, int d, int64_t k, int64_t b0,
            int64_t images, int64_t group, ThreadPool& pool) const {
    int64_t t = time(d, k), u = group * to_state.group();
    const CellActivation* f = s.activations[size_t(d)].data();
    fetch(a, d, t, b0, images, u);
    const T* sent = k > 0 ? send_back(m, d, k - 1, b0, images, group, pool) : nullptr;
    for (int64_t b = b0; b < b0 + images; ++b) {
      auto r = grad_row(a, m, d, t, b, u);
      r.sent = sent ? sent + (b - b0) * to_state.group() : nullptr;
      if (a.lengths && t >= a.lengths[b]) {
        for (int64_t j = 0; j < r.n && r.sent; ++j) r.dh[j] += r.sent[j];
        for (int64_t g = 0; g < width; ++g) std::fill_n(r.dz + g * r.dz_stride, r.n, T(0));
        continue;
      }
      if (a.dy) r.dy = a.dy + output_at(s, d, t, b) + u;
      if (s.cell == Cell::kLstm)
        cells.lstm_grad(f, r, a.p ? a.p + d * 3 * s.hidden + u : nullptr);
      else if (gru)
        cells.gru_grad(f, r);
      else
        cells.rnn_grad(f, r);
    }
  }

  // GRU with the reset before the GEMM: the candidate's gradient through it.
  void reset(const RecurrentGradArgs<T>& a, const Memory& m, int d, int64_t k, int64_t b0,
             int64_t images, int64_t group, ThreadPool& pool) const {
    int64_t t = time(d, k), unit = to_reset.group(), u = group * unit;
    T* z = step_scratch<T>();
    to_reset.run(pool, m.dz + rows.at(t, b0) * ld + 3 * s.hidden, rows.image * ld, images, m.rh,
                 group, z);
    for (int64_t i = 0; i < images; ++i)
      if (!a.lengths || t < a.lengths[b0 + i])
        cells.gru_reset_grad(s.activations[size_t(d)].data(), grad_row(a, m, d, t, b0 + i, u),
                             z + i * unit);
  }

  static constexpr int64_t kBiasColumns = 64;
  // Bias: sums over rows, in their order; columns are independent.
  void bias_grad(const T* dz, T* db, ThreadPool& pool) const {
    int64_t h = s.hidden, n = s.gates() * h;
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
    int64_t h = s.hidden, sw = columns.width * h;
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

  void weight_grads(const RecurrentGradArgs<T>& a, const Memory& m, int d, void* space,
                    ThreadPool& pool) const {
    int64_t h = s.hidden, g = s.gates(), sw = columns.width * h;
    const T* saved = a.saved + d * s.rows() * sw;
    if (a.dx) (d == 0 ? to_x : to_x_more).run(pool, m.dz, a.w + d * g * h * s.inputs, a.dx, space);
    if (a.dw) to_w.run(pool, m.dz, a.x, a.dw + d * g * h * s.inputs, space);
    if (a.dr) {
      T* dr = a.dr + d * g * h * h;
      to_r.run(pool, m.dz, saved + columns.h_prev * h, dr, space);
      if (gru)
        to_r_reset.run(pool, m.dz + 3 * h, saved + (two_gemms ? columns.extra : columns.h_prev) * h,
                       dr + 2 * h * h, space);
    }
    if (a.db) bias_grad(m.dz, a.db + d * 2 * g * h, pool);
    if (a.dp) peephole_grad(m.dz, saved, a.dp + d * 3 * h);
  }

  void run(const RecurrentGradArgs<T>& a, void* workspace, ThreadPool& pool) {
    const int64_t each = two_gemms ? 2 : 1, last = s.steps * each;
    const bool through = a.dh0 && s.steps > 0;
    for (int d0 = 0; d0 < s.directions; d0 += int(split.directions)) {
      Carver c(workspace);
      Memory m[2];
      for (int d = 0; d < split.directions; ++d) m[d] = prepare(a, d0 + d, c, pool);
      void* space = c.take<char>(int64_t(gemm_bytes));
      auto body = [&](int64_t phase, const StepSplit& part, int64_t chain, int64_t task) {
        part.each_piece(chain, task, [&](int d, int64_t b0, int64_t images, int64_t group) {
          if (phase == last)
            add_back(m[d], d0 + d, s.steps - 1, b0, images, group, pool);
          else if (phase % each == 0)
            cell(a, m[d], d0 + d, phase / each, b0, images, group, pool);
          else
            reset(a, m[d], d0 + d, phase / each, b0, images, group, pool);
        });
      };
      run_steps(pool, phases, split, double(s.gates() * s.hidden * s.hidden) * sizeof(T),
                last + (through ? 1 : 0), body);
      for (int d = 0; d < split.directions; ++d) {
        store_state(s, m[d].dh, s.hidden, d0 + d, a.dh0);
        store_state(s, m[d].dc, s.hidden, d0 + d, a.dc0);
        weight_grads(a, m[d], d0 + d, space, pool);
      }
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
