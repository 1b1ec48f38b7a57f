// The usual cells of recurrent layers over a stretch of their hidden units, forward and backward:
// LSTM with sigmoid, tanh, tanh; GRU with sigmoid, tanh; RNN with tanh or relu. No peepholes, no
// clipping. Every gate, the new state and what the backward pass needs in one pass.
#pragma once
#include <cstdint>

namespace onnxtrain::simd {

// One row of a step: n units of one image. Gate k of x, z and dz begins k * (its stride) after the
// first; column k of `save` likewise.
template <class T>
struct CellRowOf {
  int64_t n = 0;
  const T* x = nullptr;  // gate inputs that do not depend on the state
  int64_t x_stride = 0;
  T* z = nullptr;  // GEMMs with the state; may be written over
  int64_t z_stride = 0;
  const T* h_before = nullptr;
  T* h = nullptr;      // new state; may be h_before
  T* y = nullptr;      // a second place for it, or null
  T* c = nullptr;      // LSTM: updated; GRU with the reset before the GEMM: gate z
  T* reset = nullptr;  // GRU with the reset before the GEMM: r * h
  T* save = nullptr;   // or null
  int64_t save_stride = 0;
};
using CellRow = CellRowOf<float>;

// All of them take `count` rows at once.
// Order of gates i, o, f, c. save: gates, h before, c before, c after, tanh(c after).
void lstm_cells(const CellRow* rows, int64_t count);

// Gates z, r, h with the reset after the GEMM: z[2] is the candidate's GEMM, `bias` [n] its
// bias. save: z, r, candidate, h before, what the reset acts on.
void gru_cells(const CellRow* rows, int64_t count, const float* bias);
// With the reset before the GEMM, first half: gates z and r into c and reset; save as above.
void gru_gates(const CellRow* rows, int64_t count);
// Second half: z[0] is the GEMM of `reset`.
void gru_states(const CellRow* rows, int64_t count);

// y = tanh or relu of x + z. save: y, h before.
void rnn_cells(const CellRow* rows, int64_t count, bool relu);

// Backward, from what was saved. dh + sent + dy: gradient of the new state; dh becomes what flows
// to the state before without a GEMM (LSTM, RNN: 0). dc: of c, becomes that of the step before.
template <class T>
struct CellGradRowOf {
  int64_t n = 0;
  const T* save = nullptr;
  int64_t save_stride = 0;
  T* dh = nullptr;
  const T* sent = nullptr;  // what the step after sent through its GEMM, or null
  const T* dy = nullptr;    // or null
  T* dc = nullptr;
  T* dz = nullptr;  // of the gate inputs
  int64_t dz_stride = 0;
};
using CellGradRow = CellGradRowOf<float>;
void lstm_cell_grad(const CellGradRow& r);
// dz: z, r, candidate, candidate's recurrent part. reset_first: column r is left to
// gru_reset_grad, which gets the GEMM `back` of the candidate's gradient.
void gru_cell_grad(const CellGradRow& r, bool reset_first);
void gru_reset_grad(const CellGradRow& r, const float* back);
void rnn_cell_grad(const CellGradRow& r, bool relu);

}  // namespace onnxtrain::simd
