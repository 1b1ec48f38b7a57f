// Images to RGB pixels: JPEG (baseline), JPEG 2000, WebP, PNG, BMP, PNM and uncompressed TIFF.
// The bytes are untrusted: everything is checked before it is used, and a damaged image is a data
// error.
#pragma once
#include <cstdint>
#include <vector>

namespace onnxtrain::image {

struct Image {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> rgb;  // [height, width, 3]
};

Image decode(const uint8_t* data, int64_t size);

// By format; each throws a data error that names what is wrong.
Image decode_jpeg(const uint8_t* data, int64_t size);
Image decode_png(const uint8_t* data, int64_t size);
Image decode_bmp(const uint8_t* data, int64_t size);
Image decode_pnm(const uint8_t* data, int64_t size);
Image decode_tiff(const uint8_t* data, int64_t size);
Image decode_webp(const uint8_t* data, int64_t size);
Image decode_jpeg2000(const uint8_t* data, int64_t size);

[[noreturn]] void damaged(const char* format, const char* what);
// An image of this size, after a check against the memory limit.
Image blank(const char* format, int64_t height, int64_t width);

}  // namespace onnxtrain::image
