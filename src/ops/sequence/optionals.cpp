// Optional, OptionalHasElement, OptionalGetElement. At run time an optional is its element itself,
// or nothing.
#include "op/grad_builder.hpp"
#include "ops/common/values.hpp"

namespace onnxtrain::ops {

namespace {

bool filled(const ValueCtx& c) {
  return c.has(0) && !std::holds_alternative<std::monostate>(*c.in(0));
}

void run_optional(ValueCtx& c) {
  if (!c.has(0) && !c.node().has("type"))
    model_error("OT1142", "Optional has neither an input nor a type");
  c.out(0, c.has(0) ? keep(*c.in(0)) : Value());
}

void run_has(ValueCtx& c) { c.out(0, Tensor::scalar<bool>(filled(c))); }

void run_get(ValueCtx& c) {
  if (!filled(c)) model_error("OT1143", "OptionalGetElement of an optional that is empty");
  c.out(0, keep(*c.in(0)));
}

std::vector<ValueId> pass(GradBuilder& b) {
  if (b.inputs() == 0) return {};
  return {b.dy()};
}

}  // namespace

void register_optionals(OpTable& t) {
  t.add({.name = "Optional", .run_values = run_optional, .grad = pass});
  t.add({.name = "OptionalHasElement",
         .run_values = run_has,
         .no_grad = "its result is a bool, there is no gradient"});
  t.add({.name = "OptionalGetElement", .run_values = run_get, .grad = pass});
}

}  // namespace onnxtrain::ops
