// Shapes and settings of the optimizers.
#include "ops/optim/optimizer_update.hpp"

namespace onnxtrain::ops {

namespace {

void expect_scalar(const ShapeCtx& c, int i) {
  if (c.in(i).size() != 1)
    model_error("OT1133", cat("input ", i, " of ", c.node().op, " must be a scalar, it is ",
                              to_string(c.shape(i))));
}

}  // namespace

void optimizer_shape(ShapeCtx& c, int scalars, int scalar_states) {
  const int tensors = c.inputs() - scalar_states;
  for (int i = 0; i < scalars; ++i) expect_scalar(c, i);
  for (int i = tensors; i < c.inputs(); ++i) expect_scalar(c, i);
  for (int i = scalars + 1; i < tensors; ++i)
    if (c.shape(i) != c.shape(scalars) || c.dtype(i) != c.dtype(scalars))
      model_error("OT1133", cat("input ", i, " of ", c.node().op, " is ", dtype_name(c.dtype(i)),
                                to_string(c.shape(i)), ", the weights are ",
                                dtype_name(c.dtype(scalars)), to_string(c.shape(scalars))));
  for (int o = 0; o < c.outputs(); ++o) {
    const int from = o < c.outputs() - scalar_states ? scalars : scalars + 1 + o;
    c.set(o, c.dtype(from), c.shape(from));
  }
}

Attributes adam_attrs(const OptimizerSettings& s) {
  return {{"beta1", s.real("beta1")},
          {"beta2", s.real("beta2")},
          {"epsilon", s.real("eps")},
          {"decay", s.real("weight_decay")}};
}

std::vector<OptimizerSetting> adam_settings(double lr, OptimizerSetting eps,
                                            OptimizerSetting decay) {
  return {{"lr", lr},
          {"beta1", 0.9, SettingRange::kBelowOne},
          {"beta2", 0.999, SettingRange::kBelowOne},
          eps,
          decay};
}

}  // namespace onnxtrain::ops
