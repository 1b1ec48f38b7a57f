// Shapes of the optimizers.
#include "ops/optim/optimizer_shape.hpp"

namespace onnxtrain::ops {

void optimizer_shape(ShapeCtx& c, int scalars) {
  for (int i = 0; i < scalars; ++i)
    if (c.in(i).size() != 1)
      model_error("OT1133", cat("input ", i, " of ", c.node().op, " must be a scalar, it is ",
                                to_string(c.shape(i))));
  for (int i = scalars + 1; i < c.inputs(); ++i)
    if (c.shape(i) != c.shape(scalars) || c.dtype(i) != c.dtype(scalars))
      model_error("OT1133", cat("input ", i, " of ", c.node().op, " is ", dtype_name(c.dtype(i)),
                                to_string(c.shape(i)), ", the weights are ",
                                dtype_name(c.dtype(scalars)), to_string(c.shape(scalars))));
  for (int o = 0; o < c.outputs(); ++o) c.set(o, c.dtype(scalars), c.shape(scalars));
}

}  // namespace onnxtrain::ops
