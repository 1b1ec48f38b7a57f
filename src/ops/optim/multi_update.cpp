// MultiUpdate: the updates of many small tensors by one rule, in one pass, or of one tensor whose
// gradient is multiplied by a number first. Made by the passes group_updates and scale_updates;
// never written to files.
#include "ops/optim/optimizer_update.hpp"
#include "ops/optim/update_kernel.hpp"

namespace onnxtrain::ops {

namespace {

void shape(ShapeCtx& c) {
  const UpdateLayout at(c.node());
  const int operands = c.inputs() - at.form.scalars - at.scaled;
  if (at.tensors < 1 || operands != at.tensors * at.width() ||
      c.outputs() != at.tensors * at.results())
    model_error("OT1135", cat("MultiUpdate has ", c.inputs(), " inputs and ", c.outputs(),
                              " outputs, which does not fit its rule"));
  for (int i = 0; i < at.form.scalars; ++i)
    if (c.in(i).size() != 1) model_error("OT1133", "the scalars of MultiUpdate are no scalars");
  if (at.scaled && (c.in(c.inputs() - 1).size() != 1 || c.dtype(c.inputs() - 1) != DType::kFloat))
    model_error("OT1133", "the factor of MultiUpdate is no float scalar");
  for (int k = 0; k < at.tensors; ++k) {
    const int x = at.input(k, 0);
    for (int s = 1; s < at.width(); ++s)
      if (c.shape(x + s) != c.shape(x) || c.dtype(x + s) != c.dtype(x))
        model_error("OT1133", cat("MultiUpdate: inputs ", x, " and ", x + s, " differ in type"));
    for (int o = 0; o < at.results(); ++o) c.set(k * at.results() + o, c.dtype(x), c.shape(x));
  }
}

std::vector<std::pair<int, int>> in_place(const Node& n) {
  const UpdateLayout at(n);
  std::vector<std::pair<int, int>> pairs;
  for (int k = 0; k < at.tensors; ++k)
    for (int o = 0; o < at.results(); ++o) pairs.push_back({at.source(k, o), k * at.results() + o});
  return pairs;
}

}  // namespace

void register_multi_update(OpTable& t) {
  t.add({.name = "MultiUpdate",
         .domain = std::string(kOwnDomain),
         .shape = shape,
         .impls = {{"simd", refuses_simd_update, make_simd_update}},
         .no_grad = kUpdateNoGrad,
         .in_place_of = in_place});
}

}  // namespace onnxtrain::ops
