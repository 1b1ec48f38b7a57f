// Images of any size as the input of a model: resizing and cropping are its first nodes, so that
// every runtime does the same to them.
#pragma once
#include <map>
#include <optional>
#include <string>

#include "model/model.hpp"
#include "op/op.hpp"

namespace onnxtrain {

// How an image gets the size that the network takes. Bilinear with antialiasing: a triangle filter
// that widens when the image shrinks and ends at the image's edges, as Pillow's (ONNX Resize,
// linear, antialias=1, exclude_outside=1, half_pixel).
struct ImageRule {
  int64_t height = 0, width = 0;
  // stretch: both sides to the size; crop: the image covers the size, the middle is kept; pad: the
  // image fits into the size, the rest is 0
  std::string resize = "stretch";
  // Whoever resizes an image before the model does hands on the numbers as they are, float32; false
  // (files of earlier versions): rounded to bytes.
  bool numbers = true;
};

// Metadata of the file; none when it has no such rule.
std::optional<ImageRule> image_rule(const std::map<std::string, std::string>& metadata);
inline constexpr const char* kImageKey = "onnxtrain.image";

// The input `x` [N,C,H,W] takes images of any height and width; nodes bring them to those of the
// rule. A byte input stays one. Raises the model to opset 18, where antialiasing is. Throws OT2204
// when it cannot be raised.
Model with_image_input(const Model& m, const std::string& x, const ImageRule& rule,
                       const OpTable& ops);

}  // namespace onnxtrain
