// Upsampling and colours of JPEG, in the arithmetic of libjpeg.
#include "kernels/image/jpeg_colours.hpp"

#include <algorithm>

namespace onnxtrain::image {

namespace {

uint8_t clamp(int64_t v) { return uint8_t(v < 0 ? 0 : v > 255 ? 255 : v); }

// A component at the size of the image, [height, width]; fx, fy: how often its samples stand.
std::vector<uint8_t> full_size(const JpegComponent& c, int64_t fx, int64_t fy, const Image& image) {
  int64_t w = image.width, h = image.height;
  std::vector<uint8_t> out(size_t(w * h));
  bool smooth = fx == 2 && fy <= 2 && c.width > 2;
  std::vector<int> sums(size_t(c.width));
  for (int64_t y = 0; y < h; ++y) {
    int64_t row = std::min(y / fy, c.height - 1);
    const uint8_t* near = c.samples.data() + row * c.stride;
    if (!smooth) {
      for (int64_t x = 0; x < w; ++x) out[size_t(y * w + x)] = near[x / fx];
      continue;
    }
    int64_t other = std::clamp<int64_t>(y % 2 ? row + 1 : row - 1, 0, c.height - 1);
    const uint8_t* far = c.samples.data() + other * c.stride;
    bool both = fy == 2;
    for (int64_t x = 0; x < c.width; ++x) sums[size_t(x)] = both ? near[x] * 3 + far[x] : near[x];
    for (int64_t x = 0; x < w; ++x) {
      int64_t i = x / 2, n = x % 2 ? i + 1 : i - 1;
      int here = sums[size_t(i)], next = n < 0 || n >= c.width ? here : sums[size_t(n)];
      int bias = both ? (x % 2 ? 7 : 8) : (x % 2 ? 2 : 1);
      bool edge = n < 0 || n >= c.width;
      int v = edge && !both ? here : (here * 3 + next + bias) >> (both ? 4 : 2);
      out[size_t(y * w + x)] = uint8_t(v);
    }
  }
  return out;
}

}  // namespace

void jpeg_colours(const std::vector<JpegComponent>& parts, int max_h, int max_v,
                  int adobe_transform, Image& image) {
  std::vector<std::vector<uint8_t>> planes;
  for (const JpegComponent& c : parts)
    planes.push_back(full_size(c, max_h / c.h, max_v / c.v, image));
  int64_t n = image.width * image.height;
  bool plain = adobe_transform == 0 || (adobe_transform < 0 && parts.size() == 3 &&
                                        parts[0].id == 'R' && parts[1].id == 'G');
  for (int64_t i = 0; i < n; ++i) {
    uint8_t* to = image.rgb.data() + i * 3;
    int64_t y = planes[0][size_t(i)];
    if (parts.size() == 1) {
      to[0] = to[1] = to[2] = uint8_t(y);
    } else if (plain) {
      for (int k = 0; k < 3; ++k) to[k] = planes[size_t(k)][size_t(i)];
    } else {
      int64_t cb = planes[1][size_t(i)] - 128, cr = planes[2][size_t(i)] - 128;
      to[0] = clamp(y + ((91881 * cr + 32768) >> 16));
      to[1] = clamp(y + ((-22554 * cb - 46802 * cr + 32768) >> 16));
      to[2] = clamp(y + ((116130 * cb + 32768) >> 16));
    }
  }
}

}  // namespace onnxtrain::image
