// Streaming inflate over zlib.
#include "data/arrays/inflate.hpp"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>

namespace onnxtrain {

struct InflateStream::Impl {
  const InputFile& file;
  uint64_t position, left;  // compressed bytes not yet read from the file
  Format format;
  z_stream z = {};
  bool ended = false;
  std::vector<unsigned char> buffer = std::vector<unsigned char>(1 << 16);

  Impl(const InputFile& f, uint64_t offset, uint64_t compressed, Format fmt)
      : file(f), position(offset), left(compressed), format(fmt) {
    const int window = format == Format::kGzip ? 15 + 16 : -15;
    if (inflateInit2(&z, window) != Z_OK) data_error("OT2140", "zlib cannot start");
  }
  ~Impl() { inflateEnd(&z); }

  void refill() {
    if (z.avail_in > 0 || left == 0) return;
    const size_t n = size_t(std::min<uint64_t>(left, buffer.size()));
    file.read_at(position, buffer.data(), n);
    position += n;
    left -= n;
    z.next_in = buffer.data();
    z.avail_in = uInt(n);
  }

  // A gzip file may consist of several streams one after the other.
  void next_member() {
    refill();
    if (format != Format::kGzip || z.avail_in == 0) {
      ended = true;
      return;
    }
    if (inflateReset(&z) != Z_OK) damaged("cannot go on");
  }

  [[noreturn]] void damaged(const char* why) const {
    data_error("OT2140", cat("'", file.path(), "' is damaged: compressed data ", why),
               "copy or download the file again");
  }

  size_t read(unsigned char* out, size_t bytes) {
    size_t done = 0;
    while (done < bytes && !ended) {
      refill();
      const size_t room = std::min<size_t>(bytes - done, std::numeric_limits<uInt>::max());
      z.next_out = out + done;
      z.avail_out = uInt(room);
      const uInt had = z.avail_in;
      const int status = inflate(&z, Z_NO_FLUSH);
      const size_t made = room - z.avail_out;
      done += made;
      if (status == Z_STREAM_END)
        next_member();
      else if (status != Z_OK && status != Z_BUF_ERROR)
        damaged(z.msg != nullptr ? z.msg : "cannot be read");
      else if (made == 0 && z.avail_in == had && left == 0)
        damaged("ends too early");
    }
    return done;
  }
};

InflateStream::InflateStream(const InputFile& file, uint64_t offset, uint64_t compressed,
                             Format format)
    : impl_(std::make_unique<Impl>(file, offset, compressed, format)) {}
InflateStream::~InflateStream() = default;

size_t InflateStream::read(void* out, size_t bytes) {
  return impl_->read(static_cast<unsigned char*>(out), bytes);
}

void InflateStream::read_exactly(void* out, size_t bytes) {
  const size_t n = read(out, bytes);
  if (n < bytes)
    data_error("OT2140",
               cat("'", impl_->file.path(), "' is damaged: ", bytes - n,
                   " bytes are missing after decompression"),
               "copy or download the file again");
}

bool InflateStream::at_end() {
  unsigned char byte;
  return read(&byte, 1) == 0;
}

Tensor gunzip(const InputFile& file, uint64_t limit) {
  InflateStream stream(file, 0, file.size(), InflateStream::Format::kGzip);
  const uint64_t most = std::min(limit, file.size() * kMaxDeflateRatio);
  uint64_t room = std::min<uint64_t>(most, std::max<uint64_t>(4096, file.size() * 4));
  Tensor out(DType::kUint8, {int64_t(room)});
  uint64_t have = 0;
  for (;;) {
    have += stream.read(out.as<uint8_t>() + have, size_t(room - have));
    if (have < room) break;
    if (room == most) {
      if (stream.at_end()) break;
      data_error("OT2141",
                 cat("'", file.path(), "' (", uint64_t(file.size()),
                     " bytes) decompresses to more than ", uint64_t(most), " bytes"),
                 "decompress it first");
    }
    room = std::min(most, room * 2);
    Tensor larger(DType::kUint8, {int64_t(room)});
    std::memcpy(larger.data(), out.data(), size_t(have));
    out = larger;
  }
  return Tensor(DType::kUint8, {int64_t(have)}, out.data(), out.owner());
}

}  // namespace onnxtrain
