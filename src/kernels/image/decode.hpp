// Pictures to RGB pixels: JPEG (baseline), JPEG 2000, WebP, PNG, BMP, PNM and uncompressed TIFF.
// The bytes are untrusted: everything is checked before it is used, and a damaged picture is a data
// error.
#pragma once
#include <cstdint>
#include <vector>

namespace onnxtrain::image {

struct Picture {
  int64_t height = 0, width = 0;
  std::vector<uint8_t> rgb;  // [height, width, 3]
};

Picture decode(const uint8_t* data, int64_t size);

// By format; each throws a data error that names what is wrong.
Picture decode_jpeg(const uint8_t* data, int64_t size);
Picture decode_png(const uint8_t* data, int64_t size);
Picture decode_bmp(const uint8_t* data, int64_t size);
Picture decode_pnm(const uint8_t* data, int64_t size);
Picture decode_tiff(const uint8_t* data, int64_t size);
Picture decode_webp(const uint8_t* data, int64_t size);
Picture decode_jpeg2000(const uint8_t* data, int64_t size);

[[noreturn]] void damaged(const char* format, const char* what);
// A picture of this size, after a check against the memory limit.
Picture blank(const char* format, int64_t height, int64_t width);

}  // namespace onnxtrain::image
