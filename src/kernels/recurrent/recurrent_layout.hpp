// Inside the recurrent kernels: cell activations and where rows of a time step lie.
#pragma once
#include <cmath>

#include "kernels/gemm/gemm_typed.hpp"
#include "kernels/recurrent/recurrent.hpp"

namespace onnxtrain::kernels {

template <class T>
T cell_fn(const CellActivation& a, T v) {
  T alpha = T(a.alpha), beta = T(a.beta);
  switch (a.fn) {
    case CellFn::kSigmoid:
      return T(1) / (T(1) + std::exp(-v));
    case CellFn::kTanh:
      return std::tanh(v);
    case CellFn::kRelu:
      return v > 0 ? v : T(0);
    case CellFn::kLeakyRelu:
      return v >= 0 ? v : alpha * v;
    case CellFn::kThresholdedRelu:
      return v > alpha ? v : T(0);
    case CellFn::kScaledTanh:
      return alpha * std::tanh(beta * v);
    case CellFn::kHardSigmoid:
      return std::fmin(std::fmax(alpha * v + beta, T(0)), T(1));
    case CellFn::kElu:
      return v >= 0 ? v : alpha * (std::exp(v) - T(1));
    case CellFn::kSoftsign:
      return v / (T(1) + std::fabs(v));
    case CellFn::kSoftplus:
      return v > 0 ? v + std::log1p(std::exp(-v)) : std::log1p(std::exp(v));
    case CellFn::kAffine:
      return alpha * v + beta;
  }
  return v;
}

// Derivative at input v with value y; only the functions that `needs_input` names look at v.
template <class T>
T cell_slope(const CellActivation& a, T v, T y) {
  T alpha = T(a.alpha), beta = T(a.beta);
  switch (a.fn) {
    case CellFn::kSigmoid:
      return y * (T(1) - y);
    case CellFn::kTanh:
      return T(1) - y * y;
    case CellFn::kRelu:
      return y > 0 ? T(1) : T(0);
    case CellFn::kLeakyRelu:
      return v >= 0 ? T(1) : alpha;
    case CellFn::kThresholdedRelu:
      return v > alpha ? T(1) : T(0);
    case CellFn::kScaledTanh: {
      T t = std::tanh(beta * v);
      return alpha * beta * (T(1) - t * t);
    }
    case CellFn::kHardSigmoid: {
      T u = alpha * v + beta;
      return u > 0 && u < 1 ? alpha : T(0);
    }
    case CellFn::kElu:
      return v >= 0 ? T(1) : alpha * std::exp(v);
    case CellFn::kSoftsign: {
      T u = T(1) + std::fabs(v);
      return T(1) / (u * u);
    }
    case CellFn::kSoftplus:
      return T(1) / (T(1) + std::exp(-v));
    case CellFn::kAffine:
      return alpha;
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

// A cell of kernels/recurrent/cells.hpp, when there are no peepholes.
template <class T>
bool usual_cell(const RecurrentShape& s) {
  if (!std::is_same_v<T, float> || s.input_forget || s.clip > 0) return false;
  for (int d = 0; d < s.directions; ++d) {
    const auto& a = s.activations[size_t(d)];
    bool sigmoid_tanh = a[0].fn == CellFn::kSigmoid && a[1].fn == CellFn::kTanh;
    bool ok = s.cell == Cell::kLstm  ? sigmoid_tanh && a[2].fn == CellFn::kTanh
              : s.cell == Cell::kGru ? sigmoid_tanh
                                     : a[0].fn == CellFn::kTanh || a[0].fn == CellFn::kRelu;
    if (!ok) return false;
  }
  return true;
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
  explicit Rows(const RecurrentShape& s)
      : step(s.batch_first ? 1 : s.batch), image(s.batch_first ? s.steps : 1) {}
  int64_t at(int64_t t, int64_t b) const { return t * step + b * image; }
};

}  // namespace onnxtrain::kernels
