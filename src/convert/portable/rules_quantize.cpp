// QuantizeLinear and DequantizeLinear behind it, as quantisation-aware training has them, in
// float32 alone: whole numbers of 16 bits are exact there.
#include <optional>

#include "convert/portable/rules.hpp"

namespace onnxtrain::portable {

namespace {

using Values = std::vector<ValueId>;

struct Range {
  double low, high;
};

std::optional<Range> range_of(DType t) {
  switch (t) {
    case DType::kInt8:
      return Range{-128, 127};
    case DType::kUint8:
      return Range{0, 255};
    case DType::kInt16:
      return Range{-32768, 32767};
    case DType::kUint16:
      return Range{0, 65535};
    default:
      return {};
  }
}

// A scale or zero point of `n` as float32 that fits x: one number, or one for each place of an
// axis. kNone: blocks, or a rank that is not known.
ValueId fitted(Site& s, const Node& n, size_t input, ValueId x) {
  const ValueId v = n.inputs[input];
  const int64_t rank = s.rank(x), own = s.rank(v);
  if (n.i("block_size", 0) != 0 || rank < 0 || own < 0 || own > 1) return kNone;
  const ValueId number = s.cast(v, DType::kFloat);
  const std::vector<int64_t> sizes = s.sizes(v);
  if (own == 0 || rank <= 1 || sizes == std::vector<int64_t>{1}) return number;
  int64_t axis = n.i("axis", 1);
  if (axis < 0) axis += rank;
  std::vector<int64_t> shape(size_t(rank - axis), 1);
  shape[0] = -1;
  return s.reshape(number, shape);
}

Values dequantize(Site& s) {
  const Node* found = s.producer(s.x(0));
  if (s.context().few_nodes || !found || !found->is("QuantizeLinear")) return {};
  const Node q = *found;
  const ValueId x = q.inputs[0];
  const std::optional<Range> range = range_of(s.dtype(s.x(0)));
  if (!range || s.dtype(x) != DType::kFloat || s.dtype(s.y()) != DType::kFloat) return {};
  const ValueId in = fitted(s, q, 1, x), out = fitted(s, s.node(), 1, x);
  const bool shifted = q.inputs.size() > 2 && q.inputs[2] != kNone;
  const ValueId zero_in = shifted ? fitted(s, q, 2, x) : kNone;
  const ValueId zero_out = s.has(2) ? fitted(s, s.node(), 2, x) : kNone;
  if (in == kNone || out == kNone || (shifted && zero_in == kNone) ||
      (s.has(2) && zero_out == kNone))
    return {};
  ValueId v = s.call("Round", {s.div(x, in)});
  if (shifted) v = s.add(v, zero_in);
  v = s.call("Max", {v, s.scalar(range->low, DType::kFloat)});
  v = s.call("Min", {v, s.scalar(range->high, DType::kFloat)});
  if (s.has(2)) v = s.sub(v, zero_out);
  return {s.mul(v, out)};
}

}  // namespace

Rules quantize_rules() { return {{"DequantizeLinear", "of_floats", dequantize}}; }

}  // namespace onnxtrain::portable
