// The lists of rules, one file each.
#pragma once
#include "convert/portable/rewrite.hpp"

namespace onnxtrain::portable {

Rules math_rules();       // comparisons, casts, operators that are a formula
Rules reduce_rules();     // reductions over adjacent axes
Rules loss_rules();       // losses over labels, OneHot
Rules movement_rules();   // gradients of Slice, Gather and MaxPool without scattering
Rules conv_rules();       // weight gradients of convolutions
Rules shape_rules();      // Reshape and Expand with as little run-time shape as possible
Rules index_rules();      // GatherND, SequenceAt and other pickers
Rules linear_rules();     // Einsum, LRN
Rules resize_rules();     // Resize by a matrix per axis
Rules pool_rules();       // LpPool, LpNormalization
Rules quantize_rules();   // QuantizeLinear and DequantizeLinear behind it
Rules recurrent_rules();  // LSTM, GRU and RNN written out
Rules scan_rules();       // Scan along the first axis, from the first element
Rules norm_rules();       // BatchNormalization in fewer passes

// The record of the training form of a node's operator, which can be lowered; null: it has none.
inline const Op* training_form(const Node& n, const OpTable& ops) {
  const Op* op = ops.find(n);
  return op && op->training_form ? ops.find(kOwnDomain, op->training_form, 1) : nullptr;
}

// Shared by the rules: what is written out more than once.
// 1 where the label is the class: classes along `axis` of the result.
ValueId one_hot(Site& s, ValueId labels, int64_t classes, int64_t axis, DType type);
// Zeros between and around the elements along one axis: element k goes to from + k * step of
// `size` places.
ValueId spread(Site& s, ValueId v, int64_t axis, int64_t from, int64_t step, int64_t size);
// The gradient of Gather: adds slices of v along `axis` at the places that `indices` name.
ValueId scatter_rows(Site& s, ValueId v, ValueId indices, int64_t axis, int64_t size);
// Whole numbers that count from the end when negative.
ValueId wrapped_index(Site& s, ValueId v, int64_t size);

}  // namespace onnxtrain::portable
