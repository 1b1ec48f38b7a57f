// AlignAxis (own domain): B with ones appended to its shape, so that its dimensions stand at `axis`
// of A by numpy's rule. Broadcasting of opsets before 7 when the file does not tell the ranks.
#include <cstring>

#include "op/grad_builder.hpp"

namespace onnxtrain::ops {

namespace {

void shape(ShapeCtx& c) {
  int64_t rank = c.rank(1), axis = c.node().i("axis", 0);
  if (axis < 0) axis += rank;
  int64_t behind = rank - axis - c.rank(0);
  if (axis < 0 || behind < 0)
    model_error("OT1055", cat("axis=", c.node().i("axis", 0), " does not fit shapes ",
                              to_string(c.shape(1)), " and ", to_string(c.shape(0))));
  Shape s = c.shape(0);
  s.insert(s.end(), size_t(behind), 1);
  c.set(0, c.dtype(0), s);
}

Kernel make(Prepare& p) {
  size_t bytes = size_t(p.out(0).size()) * dtype_size(p.in(0).dtype);
  return [bytes](const Run& r) {
    if (bytes) std::memcpy(r.outputs[0], r.inputs[0], bytes);
  };
}

std::vector<ValueId> grad(GradBuilder& b) { return {b.reshape_like(b.dy(), b.x(0)), kNone}; }

std::vector<ValueId> lower(GradBuilder& b) {
  ValueId own = b.call("Shape", {b.x(0)});
  ValueId rank = b.call("Size", {b.call("Shape", {b.x(1)})});
  int64_t axis = b.node().i("axis", 0);
  ValueId at = axis < 0 ? b.add(rank, b.constant_int(axis)) : b.constant_int(axis);
  ValueId behind = b.sub(b.sub(rank, at), b.call("Size", {own}));
  ValueId ones = b.call("ConstantOfShape", {b.unsqueeze(behind, {0})},
                        {{"value", Tensor::vector<int64_t>({1})}});
  return {b.call("Reshape", {b.x(0), b.call("Concat", {own, ones}, {{"axis", int64_t(0)}})})};
}

}  // namespace

void register_align_axis(OpTable& t) {
  t.add({.name = "AlignAxis",
         .domain = std::string(kOwnDomain),
         .shape = shape,
         .impls = {{"copy", nullptr, make}},
         .grad = grad,
         .view_of = 0,
         .lower = lower});
}

}  // namespace onnxtrain::ops
