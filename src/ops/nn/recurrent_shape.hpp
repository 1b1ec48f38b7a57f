// Attributes and shapes of LSTM, GRU and RNN.
#pragma once
#include "kernels/recurrent/recurrent.hpp"
#include "op/grad_builder.hpp"
#include "op/op.hpp"

namespace onnxtrain::ops {

// Which cell a node is: LSTM, LSTMTrain, LSTMGrad, ...
kernels::Cell cell_of(const Node& n);
// Checked attributes with the sizes from x [steps, batch, inputs] (or batch first) and r.
kernels::RecurrentShape recurrent_shape(const Node& n, const Shape& x, const Shape& w,
                                        const Shape& r);
// Expected shapes of operands.
Shape state_shape(const kernels::RecurrentShape& s);
Shape sequence_shape(const kernels::RecurrentShape& s);
Shape saved_shape(const kernels::RecurrentShape& s);
// Saved values of 16-bit types are kept in float.
DType saved_type(DType t);

// The same in standard operators, step by step; in recurrent_lower.cpp.
std::vector<ValueId> recurrent_train_lower(GradBuilder& b);
std::vector<ValueId> recurrent_grad_lower(GradBuilder& b);
// The first as a Scan over time, of any length: asked for by this attribute of the node, which
// files do not have; in recurrent_scan.cpp.
inline constexpr const char* kAsScan = "as_scan";
std::vector<ValueId> recurrent_scan_lower(GradBuilder& b);

}  // namespace onnxtrain::ops
