// Shape functions and the broadcasting loop of element-wise operators.
#include "ops/elementwise_detail.hpp"

namespace onnxtrain::ops {

void shape_same(ShapeCtx& c) { c.set(0, c.dtype(0), c.shape(0)); }

namespace {
Shape broadcast_all(ShapeCtx& c) {
  Shape s = c.shape(0);
  for (int i = 1; i < c.inputs(); ++i) s = broadcast(s, c.shape(i));
  return s;
}
}  // namespace

void shape_broadcast(ShapeCtx& c) { c.set(0, c.dtype(0), broadcast_all(c)); }
void shape_broadcast_bool(ShapeCtx& c) { c.set(0, DType::kBool, broadcast_all(c)); }

BroadcastLoop::BroadcastLoop(const std::vector<Shape>& operands, const Shape& out) {
  std::vector<Shape> s;
  for (const Shape& o : operands) s.push_back(broadcast_strides(o, out));
  // merge dimension d into the one before it when every operand walks through both evenly
  std::vector<int64_t> dims;
  std::vector<std::vector<int64_t>> merged(operands.size());
  for (size_t d = 0; d < out.size(); ++d) {
    if (out[d] == 1) continue;
    bool can = !dims.empty();
    for (size_t k = 0; k < s.size() && can; ++k) can = merged[k].back() == s[k][d] * out[d];
    if (can) {
      dims.back() *= out[d];
      for (size_t k = 0; k < s.size(); ++k) merged[k].back() = s[k][d];
    } else {
      dims.push_back(out[d]);
      for (size_t k = 0; k < s.size(); ++k) merged[k].push_back(s[k][d]);
    }
  }
  step.assign(operands.size(), 1);
  if (!dims.empty()) {
    inner = dims.back();
    for (size_t k = 0; k < s.size(); ++k) step[k] = merged[k].back();
    dims.pop_back();
    for (auto& m : merged) m.pop_back();
  } else {
    inner = 1;
  }
  outer = dims;
  strides = merged;
  rows = 1;
  for (int64_t d : outer) rows *= d;
  if (num_elements(out) == 0) rows = 0;
}

}  // namespace onnxtrain::ops
