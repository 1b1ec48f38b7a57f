// What the rules ask of a node: which operands are rows, constants, alike for every row.
#include <algorithm>

#include "distributed/rows.hpp"

namespace onnxtrain {

bool uses_batch_statistics(const Node& n) {
  if (!n.is("BatchNormalization")) return false;
  if (n.version >= 14) return n.i("training_mode", 0) != 0;
  if (n.version < 7) return n.i("is_test", 0) == 0;
  return std::any_of(n.outputs.begin() + 1, n.outputs.end(), [](ValueId v) { return v != kNone; });
}

bool RowNode::only_rows(std::initializer_list<size_t> allowed) const {
  for (size_t i = 0; i < n.inputs.size(); ++i)
    if (is_rows(i) && std::find(allowed.begin(), allowed.end(), i) == allowed.end()) return false;
  return true;
}

const Tensor* RowNode::constant(size_t i) const {
  if (!has(i)) return nullptr;
  const ValueDef& d = g.value(n.inputs[i]);
  return d.is_constant() ? &d.constant : nullptr;
}

bool RowNode::fits_all_rows(size_t i, int axis) const {
  const Shape s = in(i);
  if (axis < 0 || size_t(axis) >= s.size() || s[size_t(axis)] == 1) return true;
  const Tensor* t = constant(i);  // made from the shape of the batch: alike for every row?
  if (!t || t->dtype() == DType::kString || s[size_t(axis)] % rows != 0) return false;
  const size_t inner = t->bytes() / size_t(std::max<int64_t>(1, t->size()));
  size_t line = inner, outer = 1;
  for (size_t d = size_t(axis) + 1; d < s.size(); ++d) line *= size_t(s[d]);
  for (size_t d = 0; d < size_t(axis); ++d) outer *= size_t(s[d]);
  const auto* p = static_cast<const char*>(t->data());
  const size_t extent = size_t(s[size_t(axis)]);
  for (size_t o = 0; o < outer; ++o, p += line * extent)
    for (size_t r = 1; r < extent; ++r)
      if (!std::equal(p, p + line, p + r * line)) return false;
  return true;
}

}  // namespace onnxtrain
