// The order [N,D...,C] in place of [N,C,D...]: what records say about it, and turned shapes.
#pragma once
#include "op/op.hpp"

namespace onnxtrain {

// What the record says; an operator that said nothing has an empty rule.
const ChannelsLast& channels_last_rule(const Op& op);

inline constexpr const char* kChannelsLast = "channels_last";
inline bool is_channels_last(const Node& n) { return n.i(kChannelsLast, 0) != 0; }
Shape to_channels_last(const Shape& s);    // [N,C,D...] -> [N,D...,C]
Shape from_channels_last(const Shape& s);  // and back
// The shape in ONNX's order of an operand that is turned when the node is.
inline Shape channels_first(const Node& n, const Shape& s) {
  return is_channels_last(n) ? from_channels_last(s) : s;
}

}  // namespace onnxtrain
