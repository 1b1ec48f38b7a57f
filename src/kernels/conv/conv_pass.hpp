// The three computations of a convolution that training needs.
#pragma once

namespace onnxtrain {

enum class ConvPass { kForward, kInputGradient, kWeightGradient };

}  // namespace onnxtrain
