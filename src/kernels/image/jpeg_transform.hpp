// The inverse cosine transform of a JPEG block, in libjpeg's accurate integer arithmetic.
#pragma once
#include <cstdint>

namespace onnxtrain::image {

// v: 64 dequantised coefficients, row by row; to: 8 x 8 samples, lines `stride` apart.
void jpeg_transform(const int64_t* v, uint8_t* to, int64_t stride);

}  // namespace onnxtrain::image
