// Attributes of convolutions and pools (strides, pads, auto_pad, dilations, ceil_mode), checked and
// turned into a window.
#pragma once
#include "kernels/common/window.hpp"
#include "op/op.hpp"

namespace onnxtrain::ops {

// The window of a node over an input's spatial shape. `kernel` has one entry per spatial dimension.
kernels::Window window_of(const Node& n, const Shape& spatial, const Shape& kernel,
                          bool ceil_mode = false);
// An attribute with one positive entry per dimension; ones when absent.
std::vector<int64_t> positive_ints(const Node& n, const char* key, size_t dims);
// The pads attribute with its 2 * dims entries; zeros when absent.
std::vector<int64_t> pads_of(const Node& n, size_t dims);
// auto_pad, checked.
std::string auto_pad_of(const Node& n);
// kernel_shape, which a pool must have; one positive entry per dimension.
Shape kernel_shape_of(const Node& n, size_t dims);
// Dimensions after batch and channel of input i, at least one and at most kMaxSpatial.
Shape spatial_of(const Shape& s, const char* what);
// The same node attributes for a gradient node (all that describe the window).
Attributes window_attrs(const Node& n);

}  // namespace onnxtrain::ops
