// WebP through libwebp.
#include <webp/decode.h>

#include <cstring>
#include <memory>

#include "kernels/image/decode.hpp"
#include "kernels/image/library.hpp"

namespace onnxtrain::image {

Image decode_webp(const uint8_t* data, int64_t size) {
  static const Library library("libwebp.so.7", "WebP", "libwebp7");
  static auto* const info = library.function<decltype(WebPGetInfo)>("WebPGetInfo");
  static auto* const decode_into =
      library.function<decltype(WebPDecodeRGBInto)>("WebPDecodeRGBInto");
  int width = 0, height = 0;
  if (!info(data, size_t(size), &width, &height)) damaged("WebP", "its header cannot be read");
  Image p = blank("WebP", height, width);
  if (!decode_into(data, size_t(size), p.rgb.data(), p.rgb.size(), width * 3))
    damaged("WebP", "its pixels cannot be decoded");
  return p;
}

}  // namespace onnxtrain::image
