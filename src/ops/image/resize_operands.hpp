// What the forms of Resize, Upsample and ResizeGrad have as inputs, and the map they mean.
#pragma once
#include "ops/image/resize_taps.hpp"

namespace onnxtrain::ops {

inline bool is_resize_grad(const Node& n) { return n.op == "ResizeGrad"; }
inline bool is_legacy_resize(const Node& n) {
  if (is_resize_grad(n)) return n.i("legacy", 0) != 0;
  return n.op == "Upsample" || n.version < 11;
}
inline bool crops_input(const Node& n) {
  return n.s("coordinate_transformation_mode", "") == "tf_crop_and_resize";
}

// Where the operands are: -1 when the version has none.
struct ResizeOperands {
  int roi, scales, sizes;
};
inline constexpr int kResizedShape = 4;  // of ResizeGrad: the shape of X
inline ResizeOperands resize_operands(const Node& n) {
  if (is_resize_grad(n)) return {1, 2, 3};
  if (n.op == "Upsample") return {-1, n.version < 9 ? -1 : 1, -1};
  if (n.version < 11) return {-1, 1, -1};
  return {1, 2, 3};
}

// Scales as attributes: Upsample-7 `scales`, Upsample-1 `height_scale` and `width_scale`.
inline Tensor resize_attribute_scales(const Node& n, int64_t rank) {
  std::vector<float> s = n.floats("scales");
  if (s.empty() && (n.has("height_scale") || n.has("width_scale"))) {
    s.assign(size_t(std::max<int64_t>(rank, 2)), 1.0f);
    s[s.size() - 2] = n.f("height_scale", 1);
    s[s.size() - 1] = n.f("width_scale", 1);
  }
  return Tensor::vector<float>(s);
}

template <class Ctx, class Get>
ResizeSpec resize_spec_of(const Ctx& c, const Shape& in, Get get, bool tables) {
  const Node& n = c.node();
  ResizeOperands o = resize_operands(n);
  Tensor from_attribute;
  auto value = [&](int i) -> const Tensor* { return i >= 0 && c.has(i) ? get(i) : nullptr; };
  const Tensor* scales = value(o.scales);
  if (o.scales < 0 ||
      (is_resize_grad(n) && !scales && (n.has("scales") || n.has("height_scale")))) {
    from_attribute = resize_attribute_scales(n, int64_t(in.size()));
    scales = &from_attribute;
  }
  return resize_spec(n, in, is_legacy_resize(n), crops_input(n) ? value(o.roi) : nullptr, scales,
                     value(o.sizes), tables);
}

}  // namespace onnxtrain::ops
