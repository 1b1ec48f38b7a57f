// Inside the recurrent kernels: cell activations, matrix products for float and double, and where
// rows of a time step lie.
#pragma once
#include <cmath>

#include "kernels/ref/recurrent.hpp"
#include "kernels/simd/gemm.hpp"

namespace onnxtrain::kernels {

template <class T>
T cell_fn(const CellActivation& a, T v) {
  T alpha = T(a.alpha), beta = T(a.beta);
  switch (a.fn) {
    case CellFn::kSigmoid: return T(1) / (T(1) + std::exp(-v));
    case CellFn::kTanh: return std::tanh(v);
    case CellFn::kRelu: return v > 0 ? v : T(0);
    case CellFn::kLeakyRelu: return v >= 0 ? v : alpha * v;
    case CellFn::kThresholdedRelu: return v > alpha ? v : T(0);
    case CellFn::kScaledTanh: return alpha * std::tanh(beta * v);
    case CellFn::kHardSigmoid: return std::fmin(std::fmax(alpha * v + beta, T(0)), T(1));
    case CellFn::kElu: return v >= 0 ? v : alpha * (std::exp(v) - T(1));
    case CellFn::kSoftsign: return v / (T(1) + std::fabs(v));
    case CellFn::kSoftplus: return v > 0 ? v + std::log1p(std::exp(-v)) : std::log1p(std::exp(v));
    case CellFn::kAffine: return alpha * v + beta;
  }
  return v;
}

// Derivative at input v with value y; only the functions that `needs_input` names look at v.
template <class T>
T cell_slope(const CellActivation& a, T v, T y) {
  T alpha = T(a.alpha), beta = T(a.beta);
  switch (a.fn) {
    case CellFn::kSigmoid: return y * (T(1) - y);
    case CellFn::kTanh: return T(1) - y * y;
    case CellFn::kRelu: return y > 0 ? T(1) : T(0);
    case CellFn::kLeakyRelu: return v >= 0 ? T(1) : alpha;
    case CellFn::kThresholdedRelu: return v > alpha ? T(1) : T(0);
    case CellFn::kScaledTanh: {
      T t = std::tanh(beta * v);
      return alpha * beta * (T(1) - t * t);
    }
    case CellFn::kHardSigmoid: {
      T u = alpha * v + beta;
      return u > 0 && u < 1 ? alpha : T(0);
    }
    case CellFn::kElu: return v >= 0 ? T(1) : alpha * std::exp(v);
    case CellFn::kSoftsign: {
      T u = T(1) + std::fabs(v);
      return T(1) / (u * u);
    }
    case CellFn::kSoftplus: return T(1) / (T(1) + std::exp(-v));
    case CellFn::kAffine: return alpha;
  }
  return T(1);
}

inline bool needs_input(CellFn f) {
  return f != CellFn::kSigmoid && f != CellFn::kTanh && f != CellFn::kRelu;
}
inline bool keeps_inputs(const RecurrentShape& s) {
  if (s.clip > 0) return true;
  for (int d = 0; d < s.directions; ++d)
    for (const CellActivation& a : s.activations[size_t(d)])
      if (needs_input(a.fn)) return true;
  return false;
}

// Columns of a saved row, in units of hidden: gates after their activation, the state before the
// step, and per cell: LSTM c before, c after, h(c after); GRU what reset acts on. Gate inputs last.
struct SavedColumns {
  int64_t gates = 0, h_prev = 0, extra = 0, inputs = -1, width = 0;
  explicit SavedColumns(const RecurrentShape& s) {
    h_prev = s.gates();
    extra = h_prev + 1;
    width = extra + (s.cell == Cell::kLstm ? 3 : s.cell == Cell::kGru ? 1 : 0);
    if (keeps_inputs(s)) {
      inputs = width;
      width += s.gates();
    }
  }
};

// Row of step t, image b in [steps, batch] or [batch, steps] order.
struct Rows {
  int64_t step, image;
  explicit Rows(const RecurrentShape& s) : step(s.batch_first ? 1 : s.batch), image(s.batch_first ? s.steps : 1) {}
  int64_t at(int64_t t, int64_t b) const { return t * step + b * image; }
};

// C = A * op(B) (+ C, + bias), through the planned float product or the plain double one.
template <class T>
class Product {
 public:
  Product() = default;
  explicit Product(simd::GemmDesc d) : d_(d) {
    if constexpr (std::is_same_v<T, float>) plan_ = simd::GemmPlan::make(d);
  }
  size_t workspace() const {
    if constexpr (std::is_same_v<T, float>) return plan_.workspace_bytes();
    return 0;
  }
  size_t packed_bytes() const {
    if constexpr (std::is_same_v<T, float>)
      if (d_.packed_b) return plan_.packed_b_bytes();
    return 0;
  }
  // The form of B to pass to run().
  const T* pack(ThreadPool& pool, const T* b, T* to) const {
    if constexpr (std::is_same_v<T, float>)
      if (d_.packed_b) {
        plan_.pack_b(pool, b, to);
        return to;
      }
    return b;
  }
  void run(ThreadPool& pool, const T* a, const T* b, T* c, void* workspace, const T* bias = nullptr) const {
    if constexpr (std::is_same_v<T, float>) {
      simd::GemmArgs g;
      g.a = a, g.b = b, g.c = c, g.bias = bias, g.workspace = workspace;
      plan_.run(pool, g);
    } else {
      T beta = T(d_.beta);
      if (d_.bias == simd::BiasAxis::kColumn) {
        for (int64_t i = 0; i < d_.m; ++i)
          for (int64_t j = 0; j < d_.n; ++j) c[i * d_.ldc + j] = bias[j];
        beta = 1;
      }
      simd::gemm_f64(pool, d_.trans_a, d_.trans_b, d_.m, d_.n, d_.k, 1, a, d_.lda, b, d_.ldb, beta, c, d_.ldc);
    }
  }

 private:
  simd::GemmDesc d_;
  simd::GemmPlan plan_;
};

// Takes pieces of a workspace one after another.
class Carver {
 public:
  explicit Carver(void* base) : at_(static_cast<char*>(base)) {}
  template <class T>
  T* take(int64_t n) {
    auto* p = reinterpret_cast<T*>(at_);
    at_ += bytes(size_t(n) * sizeof(T));
    return p;
  }
  static size_t bytes(size_t n) { return (n + 63) / 64 * 64; }

 private:
  char* at_;
};

inline constexpr int64_t kCellGrain = 4096;  // cells per task

}  // namespace onnxtrain::kernels
