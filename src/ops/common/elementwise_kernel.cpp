// Shape functions and the broadcasting loop of element-wise operators.
#include "ops/common/elementwise_kernel.hpp"

namespace onnxtrain::ops {

void shape_same(ShapeCtx& c) { c.set(0, c.dtype(0), c.shape(0)); }

namespace {
Shape broadcast_all(ShapeCtx& c) {
  Shape s = c.shape(0);
  for (int i = 1; i < c.inputs(); ++i)
    s = broadcast(s, i == 1 ? second_shape(c.node(), s, c.shape(1)) : c.shape(i));
  return s;
}
}  // namespace

void shape_broadcast(ShapeCtx& c) {
  require_same_types(c);
  c.set(0, c.dtype(0), broadcast_all(c));
}
void shape_broadcast_bool(ShapeCtx& c) {
  require_same_types(c);
  c.set(0, DType::kBool, broadcast_all(c));
}

Shape second_shape(const Node& n, const Shape& a, const Shape& b) {
  if (n.version >= 7 || !n.domain.empty() || n.i("broadcast", 0) == 0 || !n.has("axis")) return b;
  int64_t axis = n.i("axis", 0), rank = int64_t(a.size());
  if (axis < 0) axis += rank;
  int64_t after = rank - axis - int64_t(b.size());
  if (axis < 0 || after < 0)
    model_error("OT1130", cat(n.op, " cannot place a second input of shape ", to_string(b),
                              " at axis ", axis, " of ", to_string(a)));
  Shape s = b;
  s.insert(s.end(), size_t(after), 1);
  return s;
}

void require_same_types(ShapeCtx& c) {
  for (int i = 1; i < c.inputs(); ++i)
    if (c.dtype(i) != c.dtype(0))
      model_error("OT1110", cat(c.node().op, " of ", dtype_name(c.dtype(0)), " and ",
                                dtype_name(c.dtype(i))));
}

ValueId legacy_second(GradBuilder& b) {
  const Node& n = b.node();
  if (n.version >= 7 || n.i("broadcast", 0) == 0 || !n.has("axis")) return b.x(1);
  int64_t axis = n.i("axis", 0), ra = b.need_rank(b.x(0)), rb = b.need_rank(b.x(1));
  if (axis < 0) axis += ra;
  std::vector<int64_t> axes;
  for (int64_t d = rb; d < ra - axis; ++d) axes.push_back(d);
  return axes.empty() ? b.x(1) : b.unsqueeze(b.x(1), axes);
}

BroadcastLoop::BroadcastLoop(const std::vector<Shape>& operands, const Shape& out) {
  OT_ASSERT(operands.size() <= kMaxOperands);
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
  if (dims.size() > kMaxDims)
    model_error("OT1112", cat("a tensor of rank ", dims.size(), " is more than ", kMaxDims));
  outer = dims;
  strides = merged;
  rows = 1;
  for (int64_t d : outer) rows *= d;
  if (num_elements(out) == 0) rows = 0;
}

Kernel unary_kernel(const Prepare& p, UnaryLoop loop, const ElementFunction& f) {
  int64_t n = p.out(0).size();
  return [n, loop, f](const Run& r) {
    parallel_for(*r.pool, n, kGrain, [&](int64_t begin, int64_t end) {
      loop(f, r.inputs[0], r.outputs[0], begin, end);
    });
  };
}

Kernel binary_kernel(const Prepare& p, BinaryLoop loop, const ElementFunction& f) {
  BroadcastLoop rows({p.in(0).shape, second_shape(p.node(), p.in(0).shape, p.in(1).shape)},
                     p.out(0).shape);
  return [rows, loop, f](const Run& r) {
    const BinaryRow row{r.inputs[0],  r.inputs[1],  r.outputs[0],
                        rows.step[0], rows.step[1], rows.inner};
    parallel_for(*r.pool, rows.rows, rows.grain_rows(), [&](int64_t begin, int64_t end) {
      rows.run(begin, end, [&](int64_t o, const int64_t* at) { loop(f, row, o, at[0], at[1]); });
    });
  };
}

}  // namespace onnxtrain::ops
