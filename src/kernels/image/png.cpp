// PNG: 8-bit grey, RGB, palette, with or without alpha (which is dropped), not interlaced.
#include <zlib.h>

#include <cstdlib>
#include <cstring>

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

}  // namespace

Image decode_png(const uint8_t* data, int64_t size) {
  Chunks c = read_chunks(data, size);
  int64_t samples = c.color == 0 || c.color == 3 ? 1
                    : c.color == 2               ? 3
                    : c.color == 4               ? 2
                    : c.color == 6               ? 4
                                                 : 0;
  if (samples == 0 || c.bits != 8 || c.interlace != 0)
    data_error("OT1191", cat("a PNG image of colour type ", c.color, ", ", c.bits,
                             " bits, interlace ", c.interlace, " is not supported"));
  Image p = blank("PNG", c.height, c.width);
  int64_t row = c.width * samples;
  std::vector<uint8_t> raw(size_t((row + 1) * c.height)), zeros(size_t(row), 0);
  uLongf got = uLongf(raw.size());
  if (uncompress(raw.data(), &got, c.packed.data(), uLong(c.packed.size())) != Z_OK ||
      got != raw.size())
    damaged("PNG", "its pixels do not unpack");
  for (int64_t y = 0; y < c.height; ++y) {
    uint8_t* line = raw.data() + y * (row + 1);
    if (line[0] > 4) damaged("PNG", "a filter is unknown");
    unfilter(line[0], line + 1, y ? line - row : zeros.data(), row, samples);
    for (int64_t x = 0; x < c.width; ++x) {
      const uint8_t* from = line + 1 + x * samples;
      uint8_t* to = p.rgb.data() + (y * c.width + x) * 3;
      if (c.color == 3) {
        if (size_t(*from) * 3 + 3 > c.palette.size())
          damaged("PNG", "a colour is not in its palette");
        from = c.palette.data() + *from * 3;
      }
      bool grey = c.color == 0 || c.color == 4;
      for (int k = 0; k < 3; ++k) to[k] = from[grey ? 0 : k];
    }
  }
  return p;
}

}  // namespace onnxtrain::image
