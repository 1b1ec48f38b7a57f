// Images of another size: a triangle filter, as the Resize operator with antialias computes it.
#include <algorithm>
#include <cmath>

#include "data/images.hpp"

namespace onnxtrain {
namespace {

struct Weights {
  int64_t first = 0;
  std::vector<float> w;
};

// For each target position the source positions it looks at, and how much of each.
std::vector<Weights> triangle(int64_t from, int64_t to, double larger) {
  const double scale = larger > 0 ? 1 / larger : double(from) / double(to);
  const double reach = std::max(1.0, scale);
  std::vector<Weights> all(static_cast<size_t>(to));
  for (int64_t i = 0; i < to; ++i) {
    const double center = (double(i) + 0.5) * scale;
    const int64_t lo = std::max<int64_t>(0, int64_t(std::floor(center - reach)));
    const int64_t hi = std::min<int64_t>(from, int64_t(std::ceil(center + reach)));
    Weights& k = all[size_t(i)];
    k.first = lo;
    double sum = 0;
    // a size that was rounded up can end beyond the last pixel
    if (hi <= lo) {
      k.first = from - 1;
      k.w = {1};
      continue;
    }
    for (int64_t j = lo; j < hi; ++j) {
      const double w = std::max(0.0, 1 - std::fabs(double(j) + 0.5 - center) / reach);
      k.w.push_back(float(w));
      sum += w;
    }
    for (float& w : k.w) w = float(double(w) / sum);
  }
  return all;
}

}  // namespace

std::vector<float> resample(const std::vector<uint8_t>& pixels, int64_t height, int64_t width,
                            int64_t channels, int64_t to_height, int64_t to_width, double scale) {
  if (height == to_height && width == to_width) return {pixels.begin(), pixels.end()};
  const std::vector<Weights> across = triangle(width, to_width, scale),
                             down = triangle(height, to_height, scale);
  std::vector<float> wide(size_t(height * to_width * channels));
  for (int64_t y = 0; y < height; ++y)
    for (int64_t x = 0; x < to_width; ++x)
      for (int64_t c = 0; c < channels; ++c) {
        const Weights& k = across[size_t(x)];
        float sum = 0;
        for (size_t j = 0; j < k.w.size(); ++j)
          sum += k.w[j] * float(pixels[size_t((y * width + k.first + int64_t(j)) * channels + c)]);
        wide[size_t((y * to_width + x) * channels + c)] = sum;
      }
  std::vector<float> out(size_t(to_height * to_width * channels));
  const int64_t line = to_width * channels;
  for (int64_t y = 0; y < to_height; ++y)
    for (int64_t i = 0; i < line; ++i) {
      const Weights& k = down[size_t(y)];
      float sum = 0;
      for (size_t j = 0; j < k.w.size(); ++j)
        sum += k.w[j] * wide[size_t((k.first + int64_t(j)) * line + i)];
      out[size_t(y * line + i)] = sum;
    }
  return out;
}

std::vector<float> resized(const std::vector<uint8_t>& pixels, int64_t height, int64_t width,
                           int64_t channels, int64_t to_height, int64_t to_width,
                           const std::string& rule) {
  if (rule == "stretch") return resample(pixels, height, width, channels, to_height, to_width);
  const float down = float(to_height) / float(height), across = float(to_width) / float(width);
  const float scale = rule == "crop" ? std::max(down, across) : std::min(down, across);
  const auto side = [&](int64_t n) {
    return std::max<int64_t>(1, int64_t(std::floor(scale * float(n) + 0.5F)));
  };
  const int64_t h = side(height), w = side(width);
  const std::vector<float> whole = resample(pixels, height, width, channels, h, w, double(scale));
  // the middle; 0 where there is nothing
  std::vector<float> out(size_t(to_height * to_width * channels), 0);
  const auto from = [](int64_t have, int64_t want) { return have > want ? (have - want) / 2 : 0; };
  const int64_t rows = std::min(h, to_height), columns = std::min(w, to_width);
  for (int64_t y = 0; y < rows; ++y) {
    const auto at = whole.begin() + ((from(h, to_height) + y) * w + from(w, to_width)) * channels;
    std::copy(at, at + columns * channels,
              out.begin() + ((from(to_height, h) + y) * to_width + from(to_width, w)) * channels);
  }
  return out;
}

}  // namespace onnxtrain
