// The gradient of Attention in standard operators: for lowered files, second derivatives, and when
// the scores are an output.
#pragma once
#include "kernels/attention/attention.hpp"
#include "op/grad_builder.hpp"

namespace onnxtrain::ops {

struct AttentionValues {
  ValueId q, k, v;        // k and v include the past
  ValueId mask, lengths;  // or kNone
  ValueId dy, dscores;    // gradients of result and scores; kNone: nothing arrives
  // Batch, queries and keys of the shape only stand for sizes that are known at run time.
  bool open = false;
};

// Gradients of q, k, v and of the bias [batch, heads, queries, keys].
std::vector<ValueId> attention_gradient(GradBuilder& b, const kernels::AttentionShape& s,
                                        const AttentionValues& x);

// The gradient of a present tensor in the layout of key or value.
ValueId to_input_layout(GradBuilder& b, ValueId present, ValueId like);

}  // namespace onnxtrain::ops
