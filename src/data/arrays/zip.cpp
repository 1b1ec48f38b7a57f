// The directory and the members of a zip archive.
#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <set>

#include "data/arrays/inflate.hpp"

namespace onnxtrain {
namespace {

constexpr size_t kMaxEntries = 65536;

uint64_t little(const unsigned char* p, int bytes) {
  uint64_t v = 0;
  for (int i = 0; i < bytes; ++i) v |= uint64_t(p[i]) << (8 * i);
  return v;
}

[[noreturn]] void damaged(const InputFile& file, const std::string& why) {
  data_error("OT2142", cat("'", file.path(), "' is not a sound zip archive: ", why),
             "copy or write the file again");
}

struct Directory {
  uint64_t offset, size, entries;
};

// [offset, offset+bytes) lies inside the file
bool inside(const InputFile& file, uint64_t offset, uint64_t bytes) {
  return offset <= file.size() && bytes <= file.size() - offset;
}

void read_zip64(const InputFile& file, uint64_t locator_at, Directory& d) {
  unsigned char locator[20], record[56];
  file.read_at(locator_at, locator, sizeof locator);
  if (little(locator, 4) != 0x07064B50) damaged(file, "the zip64 locator is missing");
  const uint64_t at = little(locator + 8, 8);
  if (!inside(file, at, sizeof record)) damaged(file, "the zip64 record lies outside the file");
  file.read_at(at, record, sizeof record);
  if (little(record, 4) != 0x06064B50) damaged(file, "the zip64 record is missing");
  d.entries = little(record + 32, 8);
  d.size = little(record + 40, 8);
  d.offset = little(record + 48, 8);
}

Directory find_directory(const InputFile& file) {
  constexpr size_t kEnd = 22;
  if (file.size() < kEnd) damaged(file, "it is too short");
  const size_t tail = size_t(std::min<uint64_t>(file.size(), kEnd + 65535));
  std::vector<unsigned char> bytes(tail);
  const uint64_t base = file.size() - tail;
  file.read_at(base, bytes.data(), tail);
  for (size_t i = tail - kEnd + 1; i-- > 0;) {
    const unsigned char* p = bytes.data() + i;
    if (little(p, 4) != 0x06054B50 || i + kEnd + little(p + 20, 2) > tail) continue;
    Directory d{little(p + 16, 4), little(p + 12, 4), little(p + 10, 2)};
    if (d.offset == 0xFFFFFFFF || d.size == 0xFFFFFFFF || d.entries == 0xFFFF) {
      if (base + i < 20) damaged(file, "the zip64 locator is missing");
      read_zip64(file, base + i - 20, d);
    }
    return d;
  }
  damaged(file, "its end is missing, the file may be cut off");
}

// Sizes that do not fit 32 bits stand in an extra field of id 1, only those, in this order.
void apply_zip64(const InputFile& file, const unsigned char* extra, size_t bytes, ZipEntry& e) {
  while (bytes >= 4) {
    const size_t id = size_t(little(extra, 2)), size = size_t(little(extra + 2, 2));
    if (size > bytes - 4) damaged(file, cat("member '", e.name, "' has a broken extra field"));
    if (id == 1) {
      const unsigned char* p = extra + 4;
      const unsigned char* end = p + size;
      for (uint64_t* field : {&e.size, &e.compressed, &e.offset}) {
        if (*field != 0xFFFFFFFF) continue;
        if (end - p < 8) damaged(file, cat("member '", e.name, "' has a short zip64 field"));
        *field = little(p, 8);
        p += 8;
      }
      return;
    }
    extra += 4 + size;
    bytes -= 4 + size;
  }
}

// The data begins after the local header, whose lengths may differ from the directory's.
void locate_data(const InputFile& file, ZipEntry& e) {
  unsigned char local[30];
  if (!inside(file, e.offset, sizeof local))
    damaged(file, cat("member '", e.name, "' lies outside"));
  file.read_at(e.offset, local, sizeof local);
  if (little(local, 4) != 0x04034B50) damaged(file, cat("member '", e.name, "' has no header"));
  e.offset += sizeof local + little(local + 26, 2) + little(local + 28, 2);
  if (!inside(file, e.offset, e.compressed))
    damaged(file, cat("member '", e.name, "' ends outside the file, which may be cut off"));
}

void check_entry(const InputFile& file, const ZipEntry& e, uint64_t flags, uint64_t method) {
  if (flags & 1)
    data_error("OT2143", cat("member '", e.name, "' of '", file.path(), "' is encrypted"),
               "write it without a password:  np.savez(path, x=x, y=y)");
  if (method != 0 && method != 8)
    data_error("OT2143",
               cat("member '", e.name, "' of '", file.path(), "' uses compression method ", method,
                   "; only stored and deflated are supported"),
               "write it with numpy:  np.savez(path, x=x, y=y)");
  if (!e.deflated && e.size != e.compressed)
    damaged(file, cat("member '", e.name, "' has two different sizes"));
  if (e.deflated && e.size / kMaxDeflateRatio > e.compressed + 16)
    damaged(file, cat("member '", e.name, "' claims ", e.size, " bytes from ", e.compressed));
}

}  // namespace

std::vector<ZipEntry> zip_directory(const InputFile& file) {
  const Directory d = find_directory(file);
  if (d.entries > kMaxEntries) damaged(file, cat("it claims ", d.entries, " members"));
  if (!inside(file, d.offset, d.size) || d.size > (uint64_t(1) << 28))
    damaged(file, "its directory lies outside the file");
  std::vector<unsigned char> bytes(size_t(d.size), 0);
  file.read_at(d.offset, bytes.data(), bytes.size());
  std::vector<ZipEntry> entries;
  std::set<std::string> names;
  uint64_t total = 0;
  for (size_t at = 0; entries.size() < d.entries;) {
    const unsigned char* p = bytes.data() + at;
    if (bytes.size() - at < 46 || little(p, 4) != 0x02014B50)
      damaged(file, "its directory is broken");
    const size_t name = size_t(little(p + 28, 2)), extra = size_t(little(p + 30, 2)),
                 comment = size_t(little(p + 32, 2));
    if (bytes.size() - at - 46 < name + extra + comment) damaged(file, "its directory is broken");
    ZipEntry e;
    e.name.assign(reinterpret_cast<const char*>(p) + 46, name);
    e.crc = uint32_t(little(p + 16, 4));
    e.compressed = little(p + 20, 4);
    e.size = little(p + 24, 4);
    e.offset = little(p + 42, 4);
    e.deflated = little(p + 10, 2) == 8;
    apply_zip64(file, p + 46 + name, extra, e);
    check_entry(file, e, little(p + 8, 2), little(p + 10, 2));
    locate_data(file, e);
    // members that share bytes are how a small archive claims to be a huge one
    if (__builtin_add_overflow(total, e.compressed, &total) || total > file.size())
      damaged(file, "its members overlap");
    if (!names.insert(e.name).second) damaged(file, cat("two members are named '", e.name, "'"));
    entries.push_back(std::move(e));
    at += 46 + name + extra + comment;
  }
  return entries;
}

namespace {

uint32_t crc_update(uint32_t crc, const void* data, size_t bytes) {
  return uint32_t(crc32_z(crc, static_cast<const Bytef*>(data), bytes));
}

void check_crc(const InputFile& file, const ZipEntry& e, uint32_t crc) {
  if (crc != e.crc)
    data_error(
        "OT2144",
        cat("member '", e.name, "' of '", file.path(), "' is damaged: its checksum does not match"),
        "copy or write the file again");
}

}  // namespace

void zip_read(const InputFile& file, const ZipEntry& e, void* prefix, size_t skip, void* out,
              size_t bytes) {
  OT_ASSERT(skip + bytes == e.size);
  if (e.deflated) {
    InflateStream stream(file, e.offset, e.compressed, InflateStream::Format::kRaw);
    stream.read_exactly(prefix, skip);
    stream.read_exactly(out, bytes);
    if (!stream.at_end())
      damaged(file, cat("member '", e.name, "' is longer than its declared ", e.size, " bytes"));
  } else {
    file.read_at(e.offset, prefix, skip);
    file.read_at(e.offset + skip, out, bytes);
  }
  check_crc(file, e, crc_update(crc_update(0, prefix, skip), out, bytes));
}

std::string zip_peek(const InputFile& file, const ZipEntry& e, size_t bytes) {
  std::string out(size_t(std::min<uint64_t>(bytes, e.size)), '\0');
  if (e.deflated) {
    InflateStream stream(file, e.offset, e.compressed, InflateStream::Format::kRaw);
    stream.read_exactly(out.data(), out.size());
  } else {
    file.read_at(e.offset, out.data(), out.size());
  }
  return out;
}

void zip_verify_stored(const InputFile& file, const ZipEntry& e) {
  std::vector<char> buffer(1 << 20);
  uint32_t crc = 0;
  for (uint64_t at = 0; at < e.size; at += buffer.size()) {
    const size_t n = size_t(std::min<uint64_t>(buffer.size(), e.size - at));
    file.read_at(e.offset + at, buffer.data(), n);
    crc = crc_update(crc, buffer.data(), n);
  }
  check_crc(file, e, crc);
}

}  // namespace onnxtrain
