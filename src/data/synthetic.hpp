// Random data that a model can learn, for trying things out and for measuring.
#pragma once
#include "data/columns/dataset.hpp"

namespace onnxtrain {

// spec: what follows "synthetic:", a list of key=value:
//   x=1x28x28      shape of one row            rows=1000   seed=0   noise=1
//   classes=10     labels int64 'y'; each class is a cloud around its own centre
//   targets=1      numbers float 'y' instead: a smooth function of x plus a little noise
//   vocab=100      x and y are int64 tokens, y follows from x token by token
// `x_default` and `classes_default` (0 = none) come from the model when the spec does not say.
Dataset make_synthetic(const std::string& spec, DataPart part, const Shape& x_default,
                       int64_t classes_default);

}  // namespace onnxtrain
