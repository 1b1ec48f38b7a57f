// What operators say about the order of dimensions: which of them can work on tensors [N,D...,C] in
// place of [N,C,D...], and which do not care. Said beside the operator's record in ops/, read by
// the pass `layout`. A node that the pass turned has the attribute channels_last = 1 and operand
// types in that order.
#pragma once
#include "op/op.hpp"

namespace onnxtrain {

struct ChannelsLast {
  std::vector<int> in = {}, out = {};  // operands that are turned; none at all: not possible
  bool gains = false;                  // faster so: worth turning what comes in and goes out
  // Which nodes can (all operands have concrete types); null: every one.
  bool (*applies)(const Graph&, const Node&) = nullptr;
  // Every element of the output depends on the elements at its place only (operands may broadcast):
  // any order will do. True without being said for records with `broadcasts` or a micro_op.
  bool elementwise = false;
};

void set_channels_last(std::string_view domain, std::string_view op, ChannelsLast rule);
// Never null; an operator that said nothing has an empty rule.
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
