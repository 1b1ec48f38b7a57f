// Turned shapes, and the rule of a record.
#include "op/channels_last.hpp"

#include <algorithm>

namespace onnxtrain {

const ChannelsLast& channels_last_rule(const Op& op) {
  static const ChannelsLast none, indifferent{.elementwise = true};
  if (op.channels_last) return *op.channels_last;
  return op.broadcasts || op.micro_op >= 0 ? indifferent : none;
}

Shape to_channels_last(const Shape& s) {
  Shape r = s;
  if (s.size() > 2) std::rotate(r.begin() + 1, r.begin() + 2, r.end());
  return r;
}

Shape from_channels_last(const Shape& s) {
  Shape r = s;
  if (s.size() > 2) std::rotate(r.begin() + 1, r.end() - 1, r.end());
  return r;
}

}  // namespace onnxtrain
