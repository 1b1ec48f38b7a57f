// The usual LSTM cell (sigmoid, tanh, tanh; no peepholes, no clipping), one row at a time: every
// gate, the new state and what the backward pass needs in one pass.
#pragma once
#include <cstdint>

namespace onnxtrain::simd {

// x: gate inputs of this step, [4n] in ONNX's order i, o, f, c; z: product with the state, [4n].
// h, c: [n], updated. save: [8n] or null: gates, h before, c before, c after, tanh(c after).
void lstm_cell(const float* x, const float* z, float* h, float* c, float* save, int64_t n);

// dh: gradient of h; dc: of c, becomes that of the step before; dz: of the gate inputs, [4n].
void lstm_cell_grad(const float* save, const float* dh, float* dc, float* dz, int64_t n);

}  // namespace onnxtrain::simd
