// The recurrent forward pass: the GEMMs with the inputs for a stretch of steps at once, then
// step by step the GEMM with the state and the cell, a group of units at a time.
#include "kernels/recurrent/recurrent.hpp"

#include <utility>
#include <vector>

#include "kernels/recurrent/cells_typed.hpp"
#include "kernels/recurrent/recurrent_step.hpp"

namespace onnxtrain::kernels {

int64_t RecurrentShape::saved_width() const { return SavedColumns(*this).width * hidden; }

template <class T>
struct RecurrentPlan<T>::Impl {
  RecurrentShape s;
  SavedColumns columns;
  Rows rows;
  Cells<T> cells;
  bool two_gemms;                  // GRU with the reset before the GEMM
  int64_t stretch = 1;             // steps whose input GEMMs are computed together
  int64_t ldh;                     // elements between the states of two images
  TypedGemm<T> input, input_rest;  // X W^T of a stretch, of the last one
  UnitGemm<T> state, candidate;    // H R^T (GRU: of z and r), (r.H) Rh^T
  StepSplit split;
  Phases phases;
  size_t gemm_bytes = 0;
  std::vector<T> kept;  // packed weights that never change; one block per direction

  explicit Impl(const RecurrentShape& shape)
      : s(shape),
        columns(shape),
        rows(shape),
        cells(shape),
        two_gemms(cells.reset_first()),
        ldh(state_stride(shape.hidden)),
        state(s.batch, two_gemms ? 2 : s.gates(), s.hidden, s.hidden, true, s.hidden),
        split(s.directions, s.batch, state.groups(),
              double(s.batch) * double(s.gates() * s.hidden) * double(s.hidden + 40)) {
    int64_t h = s.hidden, g = s.gates();
    if (two_gemms) candidate = UnitGemm<T>(s.batch, 1, h, h, true, h);
    // a few hundred rows: their gates stay in the cache until their steps run
    int64_t most = std::clamp<int64_t>((1 << 17) / (g * h), 96, 512);
    stretch =
        std::clamp<int64_t>(most / std::max<int64_t>(1, s.batch), 1, std::max<int64_t>(1, s.steps));
    auto make = [&](int64_t steps) {
      simd::GemmDesc d;
      d.m = steps * s.batch, d.n = g * h, d.k = s.inputs, d.trans_b = true;
      d.lda = s.inputs, d.ldb = s.inputs, d.ldc = g * h;
      d.bias = simd::BiasAxis::kColumn;
      constexpr int64_t kFewRows = 8;  // not worth packing
      d.packed_b = std::is_same_v<T, float> && s.rows() >= kFewRows && s.inputs > 0;
      return TypedGemm<T>(d);
    };
    input = make(stretch);
    input_rest = make(s.steps % stretch);
    gemm_bytes = Carver::bytes(std::max(input.workspace(), input_rest.workspace()));
  }

  // The weights of one direction as the GEMMs want them.
  struct Weights {
    const T *w, *r, *rh;
  };
  size_t candidate_bytes() const { return two_gemms ? candidate.packed_bytes() : 0; }
  size_t weight_bytes() const {
    return Carver::bytes(input.packed_bytes()) + Carver::bytes(state.packed_bytes()) +
           Carver::bytes(candidate_bytes());
  }
  // Packed ones are at `at`, the others are read as they are.
  Weights weights(T* at, const T* w, const T* r, int d) const {
    int64_t h = s.hidden, g = s.gates();
    Carver c(at);
    auto place = [&](size_t bytes, const T* own) {
      T* p = reinterpret_cast<T*>(c.take<char>(int64_t(bytes)));
      return bytes ? p : own;
    };
    r += d * g * h * h;
    Weights x;
    x.w = place(input.packed_bytes(), w + d * g * h * s.inputs);
    x.r = place(state.packed_bytes(), r);
    x.rh = place(candidate_bytes(), r + 2 * h * h);
    return x;
  }
  void pack(ThreadPool& pool, const T* w, const T* r, int d, T* to) const {
    int64_t h = s.hidden, g = s.gates();
    Weights x = weights(to, w, r, d);
    r += d * g * h * h;
    input.pack(pool, w + d * g * h * s.inputs, const_cast<T*>(x.w));
    state.pack(pool, r, const_cast<T*>(x.r));
    if (two_gemms) candidate.pack(pool, r + 2 * h * h, const_cast<T*>(x.rh));
  }
  void keep(const T* w, const T* r, ThreadPool& pool) {
    if (weight_bytes() == 0) return;
    kept.resize((weight_bytes() * size_t(s.directions) + kLine) / sizeof(T));
    for (int d = 0; d < s.directions; ++d) pack(pool, w, r, d, kept_at(d));
  }
  static constexpr size_t kLine = 64;
  T* kept_at(int d) {
    auto at = (reinterpret_cast<uintptr_t>(kept.data()) + kLine - 1) / kLine * kLine;
    return reinterpret_cast<T*>(at) + size_t(d) * (weight_bytes() / sizeof(T));
  }

  // Memory of a run, per direction.
  struct Memory {
    T *gates, *bias, *rec_bias, *h[2], *c, *reset, *turned;
    Weights weights;
  };
  size_t workspace() const {
    int64_t h = s.hidden, g = s.gates();
    auto b = [](int64_t n) { return Carver::bytes(size_t(n) * sizeof(T)); };
    size_t one = b(stretch * s.batch * g * h) + b(g * h) * 2 + 3 * b(s.batch * ldh) +
                 b(s.batch * h) + b(turned_size()) + (kept.empty() ? weight_bytes() : 0);
    return one * size_t(s.directions) + gemm_bytes;
  }
  // Inputs of a stretch in the order of time, when they are stored in the order of images.
  int64_t turned_size() const { return s.batch_first ? stretch * s.batch * s.inputs : 0; }

  Memory prepare(const RecurrentArgs<T>& a, int d, Carver& c, ThreadPool& pool) {
    int64_t h = s.hidden, g = s.gates();
    Memory m;
    m.gates = c.take<T>(stretch * s.batch * g * h);
    m.bias = c.take<T>(g * h);
    m.rec_bias = c.take<T>(g * h);
    for (T*& state_h : m.h) state_h = c.take<T>(s.batch * ldh);
    m.reset = c.take<T>(s.batch * ldh);
    m.c = c.take<T>(s.batch * h);
    m.turned = c.take<T>(turned_size());
    T* at = kept.empty() ? c.take<T>(int64_t(weight_bytes() / sizeof(T))) : kept_at(d);
    m.weights = weights(at, a.w, a.r, d);
    if (kept.empty()) pack(pool, a.w, a.r, d, at);
    load_bias(a.b, d, m);
    load_state(s, a.h0, d, m.h[0], ldh);
    load_state(s, a.c0, d, m.c, h);
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

  // The time of step k of a direction.
  int64_t time(int d, int64_t k) const { return (d == 1) != s.reverse ? s.steps - 1 - k : k; }

  // Gate inputs of the steps [k, k + count), in the order of time.
  void input_gemm(const RecurrentArgs<T>& a, int d, int64_t k, int64_t count, const Memory& m,
                  void* space, ThreadPool& pool) const {
    int64_t first = std::min(time(d, k), time(d, k + count - 1)), n = s.inputs;
    const T* x = a.x + first * s.batch * n;
    if (s.batch_first) {
      for (int64_t t = 0; t < count; ++t)
        for (int64_t b = 0; b < s.batch; ++b)
          std::copy_n(a.x + rows.at(first + t, b) * n, n, m.turned + (t * s.batch + b) * n);
      x = m.turned;
    }
    (count == stretch ? input : input_rest).run(pool, x, m.weights.w, m.gates, space, m.bias);
  }

  // One task of one phase of step k; `k0` is the first step of the stretch.
  void work(const RecurrentArgs<T>& a, const Memory* memory, int64_t k, int64_t k0, int64_t count,
            bool second, StepSplit part, int64_t chain, int64_t task, ThreadPool& pool) const {
    const UnitGemm<T>& gemm = second ? candidate : state;
    int64_t h = s.hidden, g = s.gates(), unit = gemm.group();
    int64_t columns_z = unit * (second ? 1 : two_gemms ? 2 : g);
    T* z = step_scratch<T>();
    part.groups = gemm.groups();
    part.each_piece(chain, task, [&](int d, int64_t b0, int64_t images, int64_t group) {
      const Memory& m = memory[d];
      int64_t t = time(d, k), first = std::min(time(d, k0), time(d, k0 + count - 1));
      int64_t u = group * unit;
      T *before = m.h[k & 1] + b0 * ldh, *after = m.h[(k + 1) & 1] + b0 * ldh;
      if (!second) fetch(a, m, d, t, first, b0, images, u);
      gemm.run(pool, second ? m.reset + b0 * ldh : before, ldh, images,
               second ? m.weights.rh : m.weights.r, group, z);
      constexpr int64_t kTogether = 8;
      typename Cells<T>::Row list[kTogether];
      int64_t n = 0;
      const typename Cells<T>::Shared shared = {
          s.activations[size_t(d)].data(), a.p ? a.p + d * 3 * h + u : nullptr,
          s.cell == Cell::kGru ? m.rec_bias + 2 * h + u : nullptr, second};
      for (int64_t i = 0; i < images; ++i) {
        int64_t b = b0 + i;
        typename Cells<T>::Row& r = list[n];
        r.n = std::min(unit, h - u);
        r.x = m.gates + ((t - first) * s.batch + b) * g * h + u, r.x_stride = h;
        r.z = z + i * columns_z, r.z_stride = unit;
        r.h_before = before + i * ldh + u, r.h = after + i * ldh + u;
        r.y = a.y ? a.y + output_at(s, d, t, b) + u : nullptr;
        r.c = m.c + b * h + u;
        r.reset = m.reset + b * ldh + u;
        if (a.saved) {
          r.save = a.saved + (d * s.rows() + rows.at(t, b)) * columns.width * h + u;
          r.save_stride = h;
        }
        if (a.lengths && t >= a.lengths[b])
          rest(r, second);
        else if (++n == kTogether)
          cells.forward(shared, list, std::exchange(n, 0));
      }
      cells.forward(shared, list, n);
    });
  }

  // Brings what the cells will read and write nearer while the GEMM runs.
  void fetch(const RecurrentArgs<T>& a, const Memory& m, int d, int64_t t, int64_t first,
             int64_t b0, int64_t images, int64_t u) const {
    int64_t h = s.hidden, g = s.gates();
    for (int64_t b = b0; b < b0 + images; ++b) {
      const T* x = m.gates + ((t - first) * s.batch + b) * g * h + u;
      for (int64_t k = 0; k < g; ++k) __builtin_prefetch(x + k * h, 0, 2);
      if (!a.saved) continue;
      T* save = a.saved + (d * s.rows() + rows.at(t, b)) * columns.width * h + u;
      for (int64_t k = 0; k < columns.width; ++k) __builtin_prefetch(save + k * h, 1, 2);
    }
  }

  // An image whose sequence has ended.
  void rest(const simd::CellRowOf<T>& r, bool second) const {
    if (two_gemms && !second) return void(std::fill_n(r.reset, r.n, T(0)));
    std::copy_n(r.h_before, r.n, r.h);
    if (r.y) std::fill_n(r.y, r.n, T(0));
    for (int64_t k = 0; r.save && k < columns.width; ++k)
      std::fill_n(r.save + k * r.save_stride, r.n, T(0));
  }

  void run(const RecurrentArgs<T>& a, void* workspace, ThreadPool& pool) {
    Carver c(workspace);
    Memory m[2];
    for (int d = 0; d < s.directions; ++d) m[d] = prepare(a, d, c, pool);
    void* space = c.take<char>(int64_t(gemm_bytes));
    const int64_t each = two_gemms ? 2 : 1;
    for (int64_t k0 = 0; k0 < s.steps; k0 += stretch) {
      int64_t count = std::min(stretch, s.steps - k0);
      for (int d = 0; d < s.directions; ++d) input_gemm(a, d, k0, count, m[d], space, pool);
      run_steps(
          pool, phases, split, double(s.gates() * s.hidden * s.hidden) * sizeof(T), count * each,
          [&](int64_t phase, const StepSplit& part, int64_t chain, int64_t task) {
            work(a, m, k0 + phase / each, k0, count, phase % each == 1, part, chain, task, pool);
          });
    }
    for (int d = 0; d < s.directions; ++d) {
      store_state(s, m[d].h[s.steps & 1], ldh, d, a.yh);
      store_state(s, m[d].c, s.hidden, d, a.yc);
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
void RecurrentPlan<T>::keep_weights(const T* w, const T* r, ThreadPool& pool) {
  impl_->keep(w, r, pool);
}
template <class T>
void RecurrentPlan<T>::run(const RecurrentArgs<T>& a, void* workspace, ThreadPool& pool) {
  impl_->run(a, workspace, pool);
}

template class RecurrentPlan<float>;
template class RecurrentPlan<double>;

}  // namespace onnxtrain::kernels
