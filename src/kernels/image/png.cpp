// PNG: grey, RGB, palette, of all depths, with or without alpha (which is dropped), interlaced or
// not. Of 16 bits the upper eight are kept.
#include <zlib.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <span>

#include "core/error.hpp"
#include "kernels/image/decode.hpp"

namespace onnxtrain::image {

namespace {

uint32_t u32(const uint8_t* p) {
  return uint32_t(p[0]) << 24 | uint32_t(p[1]) << 16 | uint32_t(p[2]) << 8 | p[3];
}

struct Chunks {
  int64_t width = 0, height = 0;
  int bits = 0, color = 0, interlace = 0;
  std::vector<uint8_t> palette, packed;
};

Chunks read_chunks(const uint8_t* data, int64_t size) {
  Chunks c;
  for (int64_t pos = 8; pos + 12 <= size;) {
    int64_t n = u32(data + pos);
    if (n > size - pos - 12) damaged("PNG", "it ends too early");
    const uint8_t *type = data + pos + 4, *body = data + pos + 8;
    if (!std::memcmp(type, "IHDR", 4) && n >= 13) {
      c.width = u32(body), c.height = u32(body + 4), c.bits = body[8], c.color = body[9],
      c.interlace = body[12];
    } else if (!std::memcmp(type, "PLTE", 4)) {
      c.palette.assign(body, body + n);
    } else if (!std::memcmp(type, "IDAT", 4)) {
      c.packed.insert(c.packed.end(), body, body + n);
    } else if (!std::memcmp(type, "IEND", 4)) {
      break;
    }
    pos += n + 12;
  }
  return c;
}

uint8_t paeth(int a, int b, int c) {
  int p = a + b - c, pa = std::abs(p - a), pb = std::abs(p - b), pc = std::abs(p - c);
  return uint8_t(pa <= pb && pa <= pc ? a : pb <= pc ? b : c);
}

// Undoes the filter of a row; `above` is the row before, or zeros.
void unfilter(int filter, uint8_t* row, const uint8_t* above, int64_t n, int64_t step) {
  for (int64_t i = 0; i < n; ++i) {
    int a = i >= step ? row[i - step] : 0, b = above[i], c = i >= step ? above[i - step] : 0;
    int add = filter == 0   ? 0
              : filter == 1 ? a
              : filter == 2 ? b
              : filter == 3 ? (a + b) / 2
                            : paeth(a, b, c);
    row[i] = uint8_t(row[i] + add);
  }
}

// Samples per pixel; 0: no such combination of colour type and depth.
int64_t samples_of(const Chunks& c) {
  const bool narrow = c.bits == 1 || c.bits == 2 || c.bits == 4;
  if (c.bits != 8 && c.bits != 16 && !narrow) return 0;
  if (c.color == 0) return 1;
  if (c.color == 3) return c.bits == 16 ? 0 : 1;
  if (narrow) return 0;
  return c.color == 2 ? 3 : c.color == 4 ? 2 : c.color == 6 ? 4 : 0;
}

// Pixels that lie in the file as an image of their own: all, or one of the seven of an interlaced
// image.
struct Pass {
  int64_t x, y, step_x, step_y;  // the first pixel, and from one to the next
  int64_t width(const Chunks& c) const { return c.width > x ? (c.width - x - 1) / step_x + 1 : 0; }
  int64_t height(const Chunks& c) const {
    return c.height > y ? (c.height - y - 1) / step_y + 1 : 0;
  }
};
constexpr Pass kWhole[] = {{0, 0, 1, 1}};
constexpr Pass kInterlaced[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

// Sample i of a row; depths below eight lie packed, the first in the upper bits.
int sample(const Chunks& c, const uint8_t* row, int64_t i) {
  if (c.bits == 8) return row[i];
  if (c.bits == 16) return row[2 * i];
  const int64_t at = i * c.bits;
  return row[at / 8] >> (8 - c.bits - at % 8) & ((1 << c.bits) - 1);
}

void set_pixel(const Chunks& c, const uint8_t* row, int64_t first, uint8_t* rgb) {
  if (c.color == 3) {
    const auto index = size_t(sample(c, row, first));
    if (index * 3 + 3 > c.palette.size()) damaged("PNG", "a colour is not in its palette");
    std::memcpy(rgb, c.palette.data() + index * 3, 3);
    return;
  }
  const bool grey = c.color == 0 || c.color == 4;
  const int largest = c.bits < 8 ? (1 << c.bits) - 1 : 255;
  for (int k = 0; k < 3; ++k)
    rgb[k] = uint8_t(sample(c, row, first + (grey ? 0 : k)) * 255 / largest);
}

}  // namespace

Image decode_png(const uint8_t* data, int64_t size) {
  const Chunks c = read_chunks(data, size);
  const int64_t samples = samples_of(c);
  if (samples == 0 || c.interlace > 1)
    data_error("OT1191", cat("a PNG image of colour type ", c.color, ", ", c.bits,
                             " bits, interlace ", c.interlace, " is not supported"));
  Image p = blank("PNG", c.height, c.width);
  const int64_t bits = samples * c.bits, step = std::max<int64_t>(1, bits / 8);
  auto bytes = [&](const Pass& pass) { return (pass.width(c) * bits + 7) / 8; };
  const std::span<const Pass> passes =
      c.interlace ? std::span<const Pass>(kInterlaced) : std::span<const Pass>(kWhole);
  int64_t all = 0;
  for (const Pass& pass : passes)
    if (pass.width(c) > 0) all += (bytes(pass) + 1) * pass.height(c);
  std::vector<uint8_t> raw(static_cast<size_t>(all));
  uLongf got = uLongf(raw.size());
  if (uncompress(raw.data(), &got, c.packed.data(), uLong(c.packed.size())) != Z_OK ||
      got != raw.size())
    damaged("PNG", "its pixels do not unpack");
  uint8_t* line = raw.data();
  for (const Pass& pass : passes) {
    const int64_t row = bytes(pass), width = pass.width(c);
    const std::vector<uint8_t> zeros(size_t(row), 0);
    for (int64_t y = 0; width > 0 && y < pass.height(c); ++y, line += row + 1) {
      if (line[0] > 4) damaged("PNG", "a filter is unknown");
      unfilter(line[0], line + 1, y ? line - row : zeros.data(), row, step);
      for (int64_t x = 0; x < width; ++x)
        set_pixel(
            c, line + 1, x * samples,
            p.rgb.data() + ((pass.y + y * pass.step_y) * c.width + pass.x + x * pass.step_x) * 3);
    }
  }
  return p;
}

}  // namespace onnxtrain::image
