// Pools over regions of interest: what their attributes say, and RoiAlign's gradient in standard
// operators.
#pragma once
#include "op/grad_builder.hpp"

namespace onnxtrain::ops {

struct RoiShape {
  int64_t batch, channels, height, width, rois, out_h, out_w, sampling = 0;
  float scale = 1;
  bool half_pixel = true, is_max = false, align = true;
};

RoiShape roi_shape(const Node& n, int version, const Shape& x, const Shape& rois);

// RoiAlignGrad(dy, x, rois, batch_indices, [z]) -> dx, drois in standard operators.
std::vector<ValueId> roi_grad_form(GradBuilder& b);
// Its gradient when the gradient of the regions is differentiated.
std::vector<ValueId> roi_grad_of_grad_form(GradBuilder& b);

}  // namespace onnxtrain::ops
