// Gradients of data movement by scattering over element numbers.
#include "ops/common/movement_lower.hpp"

#include "ops/common/wide.hpp"

namespace onnxtrain::ops {

namespace {
ValueId flat(GradBuilder& b, ValueId v) { return b.call("Reshape", {v, b.constant_ints({-1})}); }
ValueId count(GradBuilder& b, ValueId shape) {
  return b.call("ReduceProd", {shape}, {{"keepdims", int64_t(0)}});
}
ValueId shaped(GradBuilder& b, ValueId v, ValueId shape) {
  return b.call("Reshape", {v, shape}, {{"allowzero", int64_t(1)}});
}
}  // namespace

ValueId element_numbers(GradBuilder& b, ValueId shape) {
  ValueId range = b.call("Range", {b.constant_int(0), count(b, shape), b.constant_int(1)});
  return shaped(b, range, shape);
}

ValueId scatter_add_elements(GradBuilder& b, ValueId dy, ValueId from, ValueId shape) {
  ValueId n = b.call("Reshape", {count(b, shape), b.constant_ints({1})});
  // the type of dy may be known only at run time
  ValueId zero = b.dtype(dy) == DType::kUndefined
                     ? b.call("CastLike", {b.scalar(0, DType::kFloat), dy})
                     : b.scalar(0, dy);
  ValueId zeros = b.call("Expand", {zero, n});
  ValueId indices = flat(b, from);
  ValueId updates = flat(b, dy);
  ValueId sum = scatter_sum(b, "ScatterElements", zeros, indices, updates, {{"axis", int64_t(0)}});
  return shaped(b, sum, shape);
}

void add_moving_op(OpTable& t, const std::string& name, const MovingOp& op) {
  t.add({.name = name,
         .shape = op.shape,
         .shape_values = op.shape_values,
         .impls = {{"ref", nullptr, op.make}},
         .grad = op.grad,
         .settings_from = op.settings_from});
  t.add({.name = name + "Grad",
         .domain = std::string(kOwnDomain),
         .shape = op.back_shape,
         .shape_values = op.back_shape_values,
         .impls = {{"ref", nullptr, op.make_back}},
         .grad = op.back_grad,
         .lower = op.back_lower});
}

}  // namespace onnxtrain::ops
