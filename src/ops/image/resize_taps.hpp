// Resize and Upsample as linear maps along one axis at a time: where each output takes its value
// from.
#pragma once
#include "core/counted.hpp"
#include "op/op.hpp"

namespace onnxtrain::ops {

// Output i of the axis is the sum over k < taps of weight[i*taps+k] * input[index[i*taps+k]].
struct ResizeAxis {
  int64_t axis = 0, in = 0, out = 0, taps = 1;
  CountedVector<int64_t> index;
  CountedVector<double> weight;
  CountedVector<char> outside;  // of tf_crop_and_resize: output i gets the extrapolation value
  bool any_outside = false;
};

// That map as a matrix [out, in], row by row; rows that are outside are 0.
std::vector<double> axis_matrix(const ResizeAxis& a);

struct ResizeSpec {
  Shape out;
  std::vector<ResizeAxis> axes;  // those that change something, in order
  double extrapolation = 0;
  bool nearest = true;
};

// Tensors may be null. `legacy`: Upsample and Resize before opset 11. Without tables only the
// shape.
ResizeSpec resize_spec(const Node& n, const Shape& in, bool legacy, const Tensor* roi,
                       const Tensor* scales, const Tensor* sizes, bool with_tables);

}  // namespace onnxtrain::ops
