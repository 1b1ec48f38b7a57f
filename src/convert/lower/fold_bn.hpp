// BatchNormalization in inference form multiplied into the Conv, ConvTranspose or Gemm before it.
#pragma once
#include "model/model.hpp"

namespace onnxtrain {

// Changes the main graph; returns how many were folded. Others stay as they are: with training
// statistics, with a layer whose result or weights something else reads, or with unknown weights.
int fold_batch_norms(Model& m);

}  // namespace onnxtrain
