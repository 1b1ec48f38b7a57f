// Event files. A record is: length (8 bytes, little endian), masked CRC-32C of the length, the
// bytes, masked CRC-32C of the bytes. The bytes are a protobuf Event: wall_time (1, double), step
// (2, varint), file_version (3, text) or summary (5) with values (1) of tag (1) and simple_value
// (2).
#include "run/folder/events.hpp"

#include <array>
#include <cstring>

namespace onnxtrain::run {

namespace {

void put_fixed(std::string& out, const void* v, size_t bytes) {
  out.append(static_cast<const char*>(v), bytes);  // every machine we run on is little endian
}

void put_varint(std::string& out, uint64_t v) {
  for (; v >= 128; v >>= 7) out += char(v | 128);
  out += char(v);
}

void put_bytes(std::string& out, int field, std::string_view v) {
  put_varint(out, uint64_t(field) << 3 | 2);
  put_varint(out, v.size());
  out += v;
}

std::string begin_event(double wall_time) {
  std::string e("\x09", 1);  // field 1, 8 bytes
  put_fixed(e, &wall_time, 8);
  return e;
}

uint32_t masked(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static const std::array<uint32_t, 256> table = [] {
    std::array<uint32_t, 256> t{};
    for (uint32_t k = 0; k < 256; ++k) {
      uint32_t c = k;
      for (int bit = 0; bit < 8; ++bit) c = c & 1 ? (c >> 1) ^ 0x82f63b78u : c >> 1;
      t[k] = c;
    }
    return t;
  }();
  uint32_t crc = ~0u;
  for (char b : bytes) crc = table[(crc ^ uint8_t(b)) & 255] ^ (crc >> 8);
  return ~crc;
}

std::string event_record(std::string_view event) {
  std::string out;
  uint64_t length = event.size();
  put_fixed(out, &length, 8);
  uint32_t crc = masked(crc32c(out));
  put_fixed(out, &crc, 4);
  out += event;
  crc = masked(crc32c(event));
  put_fixed(out, &crc, 4);
  return out;
}

std::string version_event(double wall_time) {
  std::string e = begin_event(wall_time);
  put_bytes(e, 3, "brain.Event:2");
  return e;
}

std::string scalars_event(double wall_time, int64_t step,
                          const std::vector<std::pair<std::string, double>>& scalars) {
  std::string summary;
  for (const auto& [tag, value] : scalars) {
    std::string v;
    put_bytes(v, 1, tag);
    put_varint(v, 2 << 3 | 5);  // field 2, 4 bytes
    float f = float(value);
    put_fixed(v, &f, 4);
    put_bytes(summary, 1, v);
  }
  std::string e = begin_event(wall_time);
  put_varint(e, 2 << 3 | 0);
  put_varint(e, uint64_t(step));
  put_bytes(e, 5, summary);
  return e;
}

}  // namespace onnxtrain::run
