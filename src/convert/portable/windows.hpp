// Windows of pooling and convolution as slices of the padded input: one slice per tap.
#pragma once
#include "convert/portable/rules.hpp"

namespace onnxtrain::portable {

struct Windows {
  std::vector<int64_t> in, out, kernel, strides, dilations, begin, end;  // per spatial dimension
  size_t dims() const { return kernel.size(); }
  int64_t taps() const;
  // The tap's place in the kernel.
  std::vector<int64_t> at(int64_t tap) const;
};

// Of a node with x: [?,?,D...] and y: [?,?,D...]; false when a size is open.
bool windows_of(Site& s, const Node& n, ValueId x, ValueId y, std::vector<int64_t> kernel,
                Windows& w);
// x with what pads, auto_pad and ceil_mode put around it.
ValueId padded(Site& s, ValueId x, const Windows& w, double value);
// What the tap sees: [?,?,out...].
ValueId seen_by(Site& s, ValueId padded, const Windows& w, int64_t tap);

// The gradient of MaxPool node `pool` for dy; the first maximum of a window gets it.
ValueId max_pool_gradient(Site& s, const Node& pool, ValueId dy);
// The same for windows of 2x2 beside each other on many images, as ONNX Runtime runs it fastest;
// kNone: Indices are as good.
ValueId halving_pool_gradient(Site& s, const Node& pool, ValueId dy);

}  // namespace onnxtrain::portable
