// Finds the format by its first bytes; BMP, PNM and TIFF.
#include "kernels/image/decode.hpp"

#include <cctype>
#include <cstring>
#include <string_view>

#include "core/error.hpp"
#include "core/tensor.hpp"

namespace onnxtrain::image {

void damaged(const char* format, const char* what) {
  data_error("OT1190", cat("the ", format, " image is damaged: ", what),
             "copy the file again, or remove it");
}

Image blank(const char* format, int64_t height, int64_t width) {
  if (height < 1 || width < 1 || height > 1 << 20 || width > 1 << 20 ||
      size_t(height) * size_t(width) * 3 > memory_limit() / 4)
    data_error("OT1190", cat("a ", format, " image of ", width, "x", height, " pixels"));
  Image p;
  p.height = height, p.width = width;
  p.rgb.assign(size_t(height * width * 3), 0);
  return p;
}

namespace {

// Numbers at byte positions, checked.
struct Bytes {
  const uint8_t* data;
  int64_t size;
  const char* format;
  bool big = false;
  const uint8_t* at(int64_t pos, int64_t n) const {
    if (pos < 0 || n < 0 || pos > size || n > size - pos) damaged(format, "it ends too early");
    return data + pos;
  }
  int64_t u8(int64_t p) const { return *at(p, 1); }
  int64_t u16(int64_t p) const {
    const uint8_t* b = at(p, 2);
    return big ? b[0] << 8 | b[1] : b[1] << 8 | b[0];
  }
  int64_t u32(int64_t p) const {
    return big ? u16(p) << 16 | u16(p + 2) : u16(p + 2) << 16 | u16(p);
  }
};

}  // namespace

Image decode_bmp(const uint8_t* data, int64_t size) {
  Bytes b{data, size, "BMP"};
  int64_t start = b.u32(10), header = b.u32(14), width = int32_t(b.u32(18)),
          height = int32_t(b.u32(22));
  int64_t bits = b.u16(28), compression = b.u32(30);
  bool upside_down = height > 0;
  if (height < 0) height = -height;
  if (header < 40 || compression != 0 || (bits != 24 && bits != 32 && bits != 8))
    data_error("OT1191", cat("a BMP image with ", bits, " bits and compression ", compression,
                             " is not supported"));
  Image p = blank("BMP", height, width);
  int64_t row = (width * bits / 8 + 3) / 4 * 4,
          colors = bits == 8 ? (b.u32(46) ? b.u32(46) : 256) : 0;
  if (colors > 256) damaged("BMP", "its palette is too large");
  const uint8_t* palette = b.at(14 + header, colors * 4);
  for (int64_t y = 0; y < height; ++y) {
    const uint8_t* from = b.at(start + (upside_down ? height - 1 - y : y) * row, width * bits / 8);
    for (int64_t x = 0; x < width; ++x) {
      const uint8_t* c = from + x * (bits / 8);
      if (bits == 8) {
        if (*c >= colors) damaged("BMP", "a colour is not in its palette");
        c = palette + *c * 4;
      }
      uint8_t* to = p.rgb.data() + (y * width + x) * 3;
      to[0] = c[2], to[1] = c[1], to[2] = c[0];
    }
  }
  return p;
}

Image decode_pnm(const uint8_t* data, int64_t size) {
  Bytes b{data, size, "PNM"};
  int64_t kind = b.u8(1) - '0', pos = 2, numbers[3] = {0, 0, 0};
  if (kind != 5 && kind != 6)
    data_error("OT1191", cat("a PNM image of kind P", kind, " is not supported"));
  for (int64_t& n : numbers) {
    while (std::isspace(int(b.u8(pos))) || b.u8(pos) == '#') {
      if (b.u8(pos) == '#')
        while (b.u8(pos) != '\n') ++pos;
      ++pos;
    }
    if (!std::isdigit(int(b.u8(pos)))) damaged("PNM", "its header has no number");
    while (std::isdigit(int(b.u8(pos))) && n < 1 << 21) n = n * 10 + b.u8(pos++) - '0';
  }
  ++pos;
  if (numbers[2] != 255)
    data_error("OT1191", cat("a PNM image with values to ", numbers[2], " is not supported"));
  Image p = blank("PNM", numbers[1], numbers[0]);
  int64_t pixels = p.height * p.width;
  const uint8_t* from = b.at(pos, kind == 6 ? pixels * 3 : pixels);
  for (int64_t i = 0; i < pixels * 3; ++i) p.rgb[size_t(i)] = kind == 6 ? from[i] : from[i / 3];
  return p;
}

Image decode_tiff(const uint8_t* data, int64_t size) {
  Bytes b{data, size, "TIFF"};
  b.big = b.u8(0) == 'M';
  int64_t dir = b.u32(4), entries = b.u16(dir);
  int64_t width = 0, height = 0, compression = 1, photometric = 2, samples = 1, rows = 1 << 30,
          planar = 1, bits = 8;
  int64_t strip_pos = 0, strips = 0, strip_type = 4;
  for (int64_t e = 0; e < entries; ++e) {
    int64_t p = dir + 2 + e * 12, tag = b.u16(p), type = b.u16(p + 2), count = b.u32(p + 4);
    int64_t value = type == 3 ? b.u16(p + 8) : b.u32(p + 8);
    int64_t bytes = count * (type == 3 ? 2 : 4), where = bytes <= 4 ? p + 8 : b.u32(p + 8);
    switch (tag) {
      case 256:
        width = value;
        break;
      case 257:
        height = value;
        break;
      case 258:
        bits = b.u16(where);
        break;
      case 259:
        compression = value;
        break;
      case 262:
        photometric = value;
        break;
      case 273:
        strip_pos = where, strips = count, strip_type = type;
        break;
      case 277:
        samples = value;
        break;
      case 278:
        rows = value;
        break;
      case 284:
        planar = value;
        break;
      default:
        break;
    }
  }
  bool rgb = photometric == 2 && samples >= 3 && samples <= 4,
       gray = photometric == 1 && samples == 1;
  if (compression != 1 || planar != 1 || bits != 8 || (!rgb && !gray) || rows < 1)
    data_error("OT1191", cat("a TIFF image with compression ", compression, " and ", samples,
                             " samples of ", bits, " bits is not supported"));
  Image p = blank("TIFF", height, width);
  for (int64_t y = 0; y < height; ++y) {
    int64_t strip = y / rows;
    if (strip >= strips) damaged("TIFF", "strips are missing");
    int64_t begin = strip_type == 3 ? b.u16(strip_pos + strip * 2) : b.u32(strip_pos + strip * 4);
    const uint8_t* from = b.at(begin + (y % rows) * width * samples, width * samples);
    for (int64_t x = 0; x < width; ++x)
      for (int64_t c = 0; c < 3; ++c)
        p.rgb[size_t((y * width + x) * 3 + c)] = from[x * samples + (gray ? 0 : c)];
  }
  return p;
}

Image decode(const uint8_t* data, int64_t size) {
  using namespace std::string_view_literals;
  auto begins = [&](std::string_view magic) {
    return size >= int64_t(magic.size()) && std::memcmp(data, magic.data(), magic.size()) == 0;
  };
  if (begins("\xff\xd8\xff"sv)) return decode_jpeg(data, size);
  if (begins("\x89PNG\r\n\x1a\n"sv)) return decode_png(data, size);
  if (begins("BM"sv)) return decode_bmp(data, size);
  if (begins("II*\0"sv) || begins("MM\0*"sv)) return decode_tiff(data, size);
  if (size > 2 && data[0] == 'P' && data[1] >= '1' && data[1] <= '6') return decode_pnm(data, size);
  if (begins("RIFF"sv)) return decode_webp(data, size);
  if (begins("\0\0\0\x0cjP"sv) || begins("\xff\x4f\xff\x51"sv)) return decode_jpeg2000(data, size);
  data_error("OT1191", "the format of the image is unknown",
             "png, jpg, bmp, webp and others are read: convert the file, or remove it");
}

}  // namespace onnxtrain::image
