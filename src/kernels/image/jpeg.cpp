// Baseline and progressive JPEG with the same integer arithmetic as libjpeg (accurate integer
// inverse cosine transform, triangular upsampling), so that pixels are bit-exact with it: markers,
// tables, scans and entropy decoding. jpeg_colours.cpp makes pixels of the samples.
#include <algorithm>
#include <cstring>

#include "core/error.hpp"
#include "kernels/image/decode.hpp"
#include "kernels/image/jpeg_colours.hpp"
#include "kernels/image/jpeg_transform.hpp"

namespace onnxtrain::image {

namespace {

constexpr uint8_t kZigzag[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                 12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

struct Huffman {
  int64_t least[17], most[18];  // codes by length; most < least: none
  int first[17];
  uint8_t symbols[256];
  bool known = false;
};
using Component = JpegComponent;

constexpr int kMostScans = 200;  // of one image; files have about ten

class Decoder {
 public:
  Decoder(const uint8_t* data, int64_t size) : data_(data), size_(size) {}

  Image run() {
    pos_ = 2;
    for (;;) {
      int marker = next_marker();
      if (marker == 0xd9) {
        if (scans_ == 0 || !progressive_) damaged("JPEG", "it has no pixels");
        return transformed();
      }
      if (marker >= 0xd0 && marker <= 0xd7) continue;  // has no length
      int64_t length = u16(pos_);
      if (length < 2 || length > size_ - pos_) damaged("JPEG", "it ends too early");
      int64_t end = pos_ + length;
      pos_ += 2;
      if (marker == 0xdb)
        quant_tables(end);
      else if (marker == 0xc4)
        huffman_tables(end);
      else if (marker >= 0xc0 && marker <= 0xc2)
        frame(marker == 0xc2);
      else if (marker >= 0xc3 && marker <= 0xcf && marker != 0xc8 && marker != 0xcc)
        data_error("OT1191", "lossless, hierarchical and arithmetic JPEG images are not supported");
      else if (marker == 0xdd)
        restart_ = u16(pos_);
      else if (marker == 0xee)
        adobe(end);
      else if (marker == 0xda) {
        scan(end);
        if (!progressive_ && all_scanned()) return coloured();
        continue;  // the next marker stands behind the data
      }
      pos_ = end;
    }
  }

 private:
  int64_t u8(int64_t p) const {
    if (p < 0 || p >= size_) damaged("JPEG", "it ends too early");
    return data_[p];
  }
  int64_t u16(int64_t p) const { return u8(p) << 8 | u8(p + 1); }

  int next_marker() {
    while (u8(pos_) != 0xff || u8(pos_ + 1) == 0xff || u8(pos_ + 1) == 0) ++pos_;
    pos_ += 2;
    return int(u8(pos_ - 1));
  }

  void quant_tables(int64_t end) {
    while (pos_ < end) {
      int64_t info = u8(pos_++), wide = info >> 4, id = info & 15;
      if (id > 3 || wide > 1) damaged("JPEG", "a quantisation table is wrong");
      for (int k = 0; k < 64; ++k, pos_ += 1 + wide)
        quant_[id][kZigzag[k]] = int(wide ? u16(pos_) : u8(pos_));
    }
  }

  void huffman_tables(int64_t end) {
    while (pos_ < end) {
      int64_t info = u8(pos_++);
      if ((info >> 4) > 1 || (info & 15) > 3) damaged("JPEG", "a Huffman table is wrong");
      Huffman& h = huffman_[info >> 4][info & 15];
      int64_t code = 0, count[17], total = 0;
      for (int k = 1; k <= 16; ++k) count[k] = u8(pos_++);
      for (int k = 1; k <= 16; ++k) {
        h.first[k] = int(total);
        h.least[k] = code;
        code += count[k];
        total += count[k];
        h.most[k] = code - 1;
        if (code > int64_t(1) << k || total > 256) damaged("JPEG", "a Huffman table is wrong");
        code <<= 1;
      }
      for (int64_t k = 0; k < total; ++k) h.symbols[k] = uint8_t(u8(pos_++));
      h.known = true;
    }
  }

  void adobe(int64_t end) {
    if (end - pos_ >= 12 && std::memcmp(data_ + pos_, "Adobe", 5) == 0)
      adobe_transform_ = int(u8(pos_ + 11));
  }

  void frame(bool progressive) {
    if (!parts_.empty()) damaged("JPEG", "it has two sizes");
    progressive_ = progressive;
    if (u8(pos_) != 8) data_error("OT1191", "only JPEG images with 8 bits are supported");
    image_ = blank("JPEG", u16(pos_ + 1), u16(pos_ + 3));
    int64_t n = u8(pos_ + 5);
    if (n != 1 && n != 3)
      data_error("OT1191", cat("a JPEG image of ", n, " components is not supported"));
    parts_.assign(size_t(n), {});
    for (int64_t k = 0; k < n; ++k) {
      Component& c = parts_[size_t(k)];
      int64_t p = pos_ + 6 + k * 3;
      c.id = int(u8(p)), c.h = int(u8(p + 1) >> 4), c.v = int(u8(p + 1) & 15),
      c.quant = int(u8(p + 2));
      if (c.h < 1 || c.h > 4 || c.v < 1 || c.v > 4 || c.quant > 3)
        damaged("JPEG", "a component is wrong");
      max_h_ = std::max(max_h_, c.h), max_v_ = std::max(max_v_, c.v);
    }
    if (n == 1) parts_[0].h = parts_[0].v = max_h_ = max_v_ = 1;
    across_ = (image_.width + 8 * max_h_ - 1) / (8 * max_h_);
    down_ = (image_.height + 8 * max_v_ - 1) / (8 * max_v_);
    for (Component& c : parts_) {
      c.width = (image_.width * c.h + max_h_ - 1) / max_h_,
      c.height = (image_.height * c.v + max_v_ - 1) / max_v_;
      c.stride = across_ * c.h * 8, c.rows = down_ * c.v * 8;
      if (max_h_ % c.h || max_v_ % c.v)
        data_error("OT1191", "a JPEG image with fractional sampling is not supported");
      c.samples.assign(size_t(c.stride * c.rows), 0);
      if (progressive_) c.coefficients.assign(c.samples.size(), 0);
    }
  }

  // ------------------------------------------------------------ entropy decoding
  int bit() {
    if (bits_ == 0) {
      // after the end of the data only zeros come
      if (at_marker_ || pos_ >= size_) return 0;
      byte_ = data_[pos_++];
      if (byte_ == 0xff) {
        if (pos_ < size_ && data_[pos_] == 0)
          ++pos_;
        else {
          at_marker_ = true;
          --pos_;
          return 0;
        }
      }
      bits_ = 8;
    }
    return byte_ >> --bits_ & 1;
  }
  int64_t receive(int n) {
    const int64_t v = plain_bits(n);
    return n && v < int64_t(1) << (n - 1) ? v - (int64_t(1) << n) + 1 : v;
  }
  int64_t plain_bits(int n) {
    int64_t v = 0;
    for (int k = 0; k < n; ++k) v = v << 1 | bit();
    return v;
  }
  int symbol(const Huffman& h) {
    int64_t code = 0;
    for (int k = 1; k <= 16; ++k) {
      code = code << 1 | bit();
      if (code <= h.most[k] && code >= h.least[k])
        return h.symbols[h.first[k] + int(code - h.least[k])];
    }
    damaged("JPEG", "a code is unknown");
  }

  void block(Component& c, int64_t bx, int64_t by) {
    int64_t v[64] = {};
    const int* q = quant_[c.quant];
    int n = symbol(huffman_[0][c.dc]);
    if (n > 15) damaged("JPEG", "a code is unknown");
    c.predictor += receive(n);
    if (c.predictor > 1 << 20 || c.predictor < -(1 << 20))
      damaged("JPEG", "a value is out of range");
    v[0] = c.predictor * q[0];
    for (int k = 1; k < 64; ++k) {
      int rs = symbol(huffman_[1][c.ac]), run = rs >> 4, len = rs & 15;
      if (len == 0) {
        if (run != 15) break;
        k += 15;
        continue;
      }
      k += run;
      if (k > 63) damaged("JPEG", "a block is too long");
      v[kZigzag[k]] = receive(len) * q[kZigzag[k]];
    }
    jpeg_transform(v, c.samples.data() + by * 8 * c.stride + bx * 8, c.stride);
  }

  // ------------------------------------------------------------ progressive
  int16_t* coefficients(Component& c, int64_t bx, int64_t by) {
    return c.coefficients.data() + (by * (c.stride / 8) + bx) * 64;
  }

  // The part of a block that this scan has: its mean or other coefficients, first or once more
  // with another bit.
  void part_of_block(Component& c, int64_t bx, int64_t by) {
    int16_t* v = coefficients(c, bx, by);
    if (first_ == 0 && high_ == 0) {
      const int n = symbol(huffman_[0][c.dc]);
      if (n > 15) damaged("JPEG", "a code is unknown");
      c.predictor += receive(n);
      if (c.predictor > 1 << 15 || c.predictor < -(1 << 15))
        damaged("JPEG", "a value is out of range");
      v[0] = int16_t(c.predictor * (1 << low_));
    } else if (first_ == 0) {
      if (bit()) v[0] = int16_t(v[0] | 1 << low_);
    } else if (high_ == 0) {
      first_bits(c, v);
    } else {
      next_bit(c, v);
    }
  }

  void first_bits(const Component& c, int16_t* v) {
    if (empty_blocks_ > 0) {
      --empty_blocks_;
      return;
    }
    for (int k = first_; k <= last_; ++k) {
      const int rs = symbol(huffman_[1][c.ac]), run = rs >> 4, len = rs & 15;
      if (len == 0 && run < 15) {
        empty_blocks_ = (int64_t(1) << run) - 1 + plain_bits(run);
        return;
      }
      k += run;
      if (len == 0) continue;
      if (k > last_) damaged("JPEG", "a block is too long");
      v[kZigzag[k]] = int16_t(receive(len) * (1 << low_));
    }
  }

  // One more bit for a coefficient that is not 0.
  void refine(int16_t& v) {
    const int one = 1 << low_;
    if (bit() && (v & one) == 0) v = int16_t(v >= 0 ? v + one : v - one);
  }

  void next_bit(const Component& c, int16_t* v) {
    int k = first_;
    for (; empty_blocks_ == 0 && k <= last_; ++k) {
      const int rs = symbol(huffman_[1][c.ac]), len = rs & 15;
      int run = rs >> 4;
      if (len == 0 && run < 15) {
        empty_blocks_ = (int64_t(1) << run) + plain_bits(run);
        break;
      }
      if (len > 1) damaged("JPEG", "a code is unknown");
      const int fresh = len == 0 ? 0 : bit() ? 1 << low_ : -(1 << low_);
      for (; k <= last_; ++k) {
        int16_t& here = v[kZigzag[k]];
        if (here != 0)
          refine(here);
        else if (--run < 0)
          break;
      }
      if (fresh != 0 && k <= last_) v[kZigzag[k]] = int16_t(fresh);
    }
    if (empty_blocks_ == 0) return;
    for (; k <= last_; ++k)
      if (v[kZigzag[k]] != 0) refine(v[kZigzag[k]]);
    --empty_blocks_;
  }

  Image transformed() {
    for (Component& c : parts_)
      for (int64_t by = 0; by < c.rows / 8; ++by)
        for (int64_t bx = 0; bx < c.stride / 8; ++bx) {
          const int16_t* from = coefficients(c, bx, by);
          int64_t v[64];
          for (int k = 0; k < 64; ++k) v[k] = int64_t(from[k]) * quant_[c.quant][k];
          jpeg_transform(v, c.samples.data() + by * 8 * c.stride + bx * 8, c.stride);
        }
    return coloured();
  }

  // ------------------------------------------------------------ scans

  bool all_scanned() const {
    return std::all_of(parts_.begin(), parts_.end(), [](const Component& c) { return c.scanned; });
  }

  // Which components this scan has, with their tables.
  std::vector<Component*> scanned_parts() {
    const int64_t n = u8(pos_);
    if (n < 1 || n > int64_t(parts_.size())) damaged("JPEG", "a scan is wrong");
    std::vector<Component*> here;
    for (int64_t k = 0; k < n; ++k) {
      const int64_t id = u8(pos_ + 1 + k * 2), tables = u8(pos_ + 2 + k * 2);
      const auto c = std::find_if(parts_.begin(), parts_.end(),
                                  [&](const Component& p) { return p.id == id; });
      if (c == parts_.end() || std::find(here.begin(), here.end(), &*c) != here.end())
        damaged("JPEG", "a scan is wrong");
      c->dc = int(tables >> 4), c->ac = int(tables & 15);
      c->predictor = 0;
      c->scanned = true;
      here.push_back(&*c);
    }
    return here;
  }

  void check_tables(const std::vector<Component*>& here) const {
    for (const Component* c : here) {
      const bool dc = !progressive_ || (first_ == 0 && high_ == 0);
      const bool ac = !progressive_ || first_ > 0;
      if (c->dc > 3 || c->ac > 3 || (dc && !huffman_[0][c->dc].known) ||
          (ac && !huffman_[1][c->ac].known))
        damaged("JPEG", "a table is missing");
    }
  }

  void scan(int64_t header_end) {
    if (parts_.empty()) damaged("JPEG", "pixels come before its size");
    if (++scans_ > kMostScans) damaged("JPEG", "it has too many scans");
    const std::vector<Component*> here = scanned_parts();
    const int64_t p = pos_ + 1 + 2 * int64_t(here.size());
    if (progressive_) {
      first_ = int(u8(p)), last_ = int(u8(p + 1));
      high_ = int(u8(p + 2) >> 4), low_ = int(u8(p + 2) & 15);
      const bool mean = first_ == 0 && last_ == 0;
      const bool others = first_ > 0 && first_ <= last_ && last_ < 64 && here.size() == 1;
      if ((!mean && !others) || low_ > 13 || (high_ != 0 && high_ != low_ + 1))
        damaged("JPEG", "a scan is wrong");
    }
    check_tables(here);
    pos_ = header_end;
    bits_ = 0;
    at_marker_ = false;
    empty_blocks_ = 0;
    auto one = [&](Component& c, int64_t bx, int64_t by) {
      progressive_ ? part_of_block(c, bx, by) : block(c, bx, by);
    };
    const bool alone = here.size() == 1;  // only blocks that have pixels, line by line
    Component& c0 = *here[0];
    const int64_t across = alone ? (c0.width + 7) / 8 : across_;
    const int64_t down = alone ? (c0.height + 7) / 8 : down_;
    for (int64_t mcu = 0; mcu < across * down; ++mcu) {
      if (restart_ && mcu && mcu % restart_ == 0) restart();
      const int64_t x0 = mcu % across, y0 = mcu / across;
      if (alone) {
        one(c0, x0, y0);
        continue;
      }
      for (Component* c : here)
        for (int64_t y = 0; y < c->v; ++y)
          for (int64_t x = 0; x < c->h; ++x) one(*c, x0 * c->h + x, y0 * c->v + y);
    }
  }

  void restart() {
    bits_ = 0;
    at_marker_ = false;
    empty_blocks_ = 0;
    int marker = next_marker();
    if (marker < 0xd0 || marker > 0xd7) damaged("JPEG", "a restart marker is missing");
    for (Component& c : parts_) c.predictor = 0;
  }

  Image coloured() {
    jpeg_colours(parts_, max_h_, max_v_, adobe_transform_, image_);
    return std::move(image_);
  }

  const uint8_t* data_;
  int64_t size_, pos_ = 0, restart_ = 0, across_ = 0, down_ = 0;
  int quant_[4][64] = {};
  Huffman huffman_[2][4] = {};
  std::vector<Component> parts_;
  Image image_;
  int max_h_ = 1, max_v_ = 1, adobe_transform_ = -1, bits_ = 0, byte_ = 0;
  bool at_marker_ = false, progressive_ = false;
  int scans_ = 0, first_ = 0, last_ = 63, high_ = 0, low_ = 0;
  int64_t empty_blocks_ = 0;  // that follow in this scan
};

}  // namespace

Image decode_jpeg(const uint8_t* data, int64_t size) { return Decoder(data, size).run(); }

}  // namespace onnxtrain::image
