// From the samples of the components of a JPEG image to its pixels.
#pragma once
#include <cstdint>
#include <vector>

#include "kernels/image/decode.hpp"

namespace onnxtrain::image {

struct JpegComponent {
  int id = 0, h = 1, v = 1, quant = 0, dc = 0, ac = 0;
  int64_t width = 0, height = 0, stride = 0, rows = 0, predictor = 0;
  std::vector<uint8_t> samples;
  std::vector<int16_t> coefficients;  // progressive: 64 for each block
  bool scanned = false;
};

// max_h, max_v: the largest sampling factors. adobe_transform: of the Adobe marker, -1 without one.
void jpeg_colours(const std::vector<JpegComponent>& parts, int max_h, int max_v,
                  int adobe_transform, Image& image);

}  // namespace onnxtrain::image
