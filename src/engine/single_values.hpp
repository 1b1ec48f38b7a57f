// BatchNormalization that would train on a single value per channel.
#pragma once
#include "model/model.hpp"

namespace onnxtrain {

// The variance of one value is 0 and the result does not depend on it: nothing before such a layer
// would train, and its running variance would go to 0. PyTorch refuses it as well. `g` has concrete
// types.
void refuse_single_values(const Graph& g);

}  // namespace onnxtrain
