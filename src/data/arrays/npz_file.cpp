// npz = a zip of npy files; written uncompressed.
#include "data/arrays/npz_file.hpp"

#include <zlib.h>

#include <algorithm>

#include "core/file.hpp"
#include "data/arrays/inflate.hpp"
#include "data/arrays/npy.hpp"

namespace onnxtrain {

namespace {

// numpy's type string
std::string descr(DType t) {
  switch (t) {
    case DType::kFloat:
      return "<f4";
    case DType::kDouble:
      return "<f8";
    case DType::kFloat16:
      return "<f2";
    case DType::kInt64:
      return "<i8";
    case DType::kInt32:
      return "<i4";
    case DType::kInt16:
      return "<i2";
    case DType::kInt8:
    case DType::kInt4:
    case DType::kInt2:
      return "|i1";
    case DType::kUint64:
      return "<u8";
    case DType::kUint32:
      return "<u4";
    case DType::kUint16:
    case DType::kBFloat16:
      return "<u2";
    case DType::kBool:
      return "|b1";
    case DType::kComplex64:
      return "<c8";
    case DType::kComplex128:
      return "<c16";
    default:
      return "|u1";
  }
}

// An array as it lies in a file: texts become numpy's fixed-width UCS-4.
struct Stored {
  std::string type;
  Shape shape;
  Tensor data;
};

std::u32string code_points(const std::string& s) {
  std::u32string out;
  for (size_t k = 0; k < s.size();) {
    const auto c = static_cast<unsigned char>(s[k]);
    const int more = c < 0x80 ? 0 : c >> 5 == 6 ? 1 : c >> 4 == 14 ? 2 : c >> 3 == 30 ? 3 : -1;
    char32_t v = more <= 0 ? c : c & (0x3fU >> more);
    bool good = more >= 0 && k + size_t(more) < s.size();
    for (int j = 1; good && j <= more; ++j) {
      const auto next = static_cast<unsigned char>(s[k + size_t(j)]);
      good = next >> 6 == 2;
      v = v << 6 | (next & 0x3fU);
    }
    out += good ? v : U'\xFFFD';
    k += good ? size_t(more) + 1 : 1;
  }
  return out;
}

Stored stored(const Tensor& t) {
  if (t.dtype() != DType::kString) return {descr(t.dtype()), t.shape(), t};
  std::vector<std::u32string> all;
  size_t longest = 1;
  for (int64_t i = 0; i < t.size(); ++i) {
    all.push_back(code_points(t.as<std::string>()[i]));
    longest = std::max(longest, all.back().size());
  }
  Tensor data(DType::kUint32, {t.size(), int64_t(longest)});
  std::fill_n(data.as<uint32_t>(), data.size(), 0U);
  for (size_t i = 0; i < all.size(); ++i)
    std::copy(all[i].begin(), all[i].end(), data.as<uint32_t>() + i * longest);
  return {"<U" + std::to_string(longest), t.shape(), data};
}

std::string npy_header(const Stored& t) {
  std::string shape = "(";
  for (size_t k = 0; k < t.shape.size(); ++k)
    shape += std::to_string(t.shape[k]) + (k + 1 < t.shape.size() ? ", "
                                           : t.shape.size() == 1  ? ","
                                                                  : "");
  std::string dict =
      "{'descr': '" + t.type + "', 'fortran_order': False, 'shape': " + shape + "), }";
  size_t total = 10 + dict.size() + 1;
  dict.append((64 - total % 64) % 64, ' ');
  dict += '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  head += char(dict.size() & 255);
  head += char(dict.size() >> 8);
  return head + dict;
}

void put(std::string& s, uint64_t v, int bytes) {
  for (int k = 0; k < bytes; ++k) s += char((v >> (8 * k)) & 255);
}

struct Member {
  std::string name;
  uint32_t crc;
  uint64_t size, offset;
};

// Fields that local and central headers share; sizes are in the zip64 extra field.
void put_common(std::string& s, const Member& m) {
  put(s, 45, 2);          // version needed: zip64
  put(s, 0x800, 2);       // names are UTF-8
  put(s, 0, 2);           // stored
  put(s, 0x21 << 16, 4);  // 1980-01-01: files depend on their content only
  put(s, m.crc, 4);
  put(s, 0xffffffff, 4);
  put(s, 0xffffffff, 4);
  put(s, m.name.size(), 2);
}

uint32_t crc_of(const std::string& header, const Tensor& t) {
  uLong c = crc32_z(0, reinterpret_cast<const Bytef*>(header.data()), header.size());
  return uint32_t(crc32_z(c, static_cast<const Bytef*>(t.data()), t.bytes()));
}

}  // namespace

NamedTensors read_npz(const std::string& path) {
  InputFile file(path, ErrorKind::kData);
  NamedTensors out;
  for (const ZipEntry& e : zip_directory(file)) {
    if (!e.name.ends_with(".npy")) continue;
    std::string name = e.name.substr(0, e.name.size() - 4);
    std::string head = zip_peek(file, e, std::min<uint64_t>(kNpyHeaderMost, e.size));
    NpyHeader h = parse_npy_header(head, path + ":" + name);
    if (h.big_endian || (h.fortran_order && h.shape.size() > 1))
      data_error("OT2151",
                 cat("array '", name, "' of '", path, "' is in ",
                     h.big_endian ? "big-endian" : "Fortran", " order"),
                 "store it with numpy.ascontiguousarray");
    if (e.size < h.data_offset || e.size - h.data_offset != h.data_bytes)
      data_error("OT2141",
                 cat("array '", name, "' of '", path, "' has ",
                     e.size - std::min<uint64_t>(e.size, h.data_offset), " bytes, its header says ",
                     h.data_bytes),
                 "the file is damaged: write it again, np.savez(path, x=x, y=y)");
    Tensor t(h.dtype, h.shape);
    std::string prefix(h.data_offset, '\0');
    zip_read(file, e, prefix.data(), h.data_offset, t.data(), t.bytes());
    out.emplace_back(std::move(name), std::move(t));
  }
  if (out.empty())
    data_error("OT2102", cat("'", path, "' holds no arrays"),
               "save some:  np.savez(path, x=x, y=y)");
  return out;
}

void write_npy(const std::string& path, const Tensor& array) {
  AtomicWriter w(path);
  const Stored s = stored(array);
  w.write(npy_header(s));
  w.write(s.data.data(), s.data.bytes());
  w.commit();
}

void write_npz(const std::string& path, const NamedTensors& arrays) {
  AtomicWriter w(path);
  std::vector<Member> members;
  for (const auto& [name, array] : arrays) {
    const Stored as = stored(array);
    const Tensor& t = as.data;
    std::string header = npy_header(as);
    Member m{name + ".npy", crc_of(header, t), header.size() + t.bytes(), w.bytes()};
    std::string local;
    put(local, 0x04034b50, 4);
    put_common(local, m);
    put(local, 20, 2);
    local += m.name;
    put(local, 1, 2);
    put(local, 16, 2);
    put(local, m.size, 8);
    put(local, m.size, 8);
    w.write(local);
    w.write(header);
    w.write(t.data(), t.bytes());
    members.push_back(std::move(m));
  }
  uint64_t start = w.bytes();
  for (const Member& m : members) {
    std::string central;
    put(central, 0x02014b50, 4);
    put(central, 45, 2);
    put_common(central, m);
    put(central, 28, 2);  // extra field
    put(central, 0, 2);
    put(central, 0, 2);
    put(central, 0, 2);
    put(central, 0, 4);
    put(central, 0xffffffff, 4);
    central += m.name;
    put(central, 1, 2);
    put(central, 24, 2);
    put(central, m.size, 8);
    put(central, m.size, 8);
    put(central, m.offset, 8);
    w.write(central);
  }
  uint64_t size = w.bytes() - start, zip64 = w.bytes();
  std::string end;
  put(end, 0x06064b50, 4);
  put(end, 44, 8);
  put(end, 45, 2);
  put(end, 45, 2);
  put(end, 0, 4);
  put(end, 0, 4);
  put(end, members.size(), 8);
  put(end, members.size(), 8);
  put(end, size, 8);
  put(end, start, 8);
  put(end, 0x07064b50, 4);
  put(end, 0, 4);
  put(end, zip64, 8);
  put(end, 1, 4);
  put(end, 0x06054b50, 4);
  put(end, 0, 4);
  put(end, std::min<uint64_t>(0xffff, members.size()), 2);
  put(end, std::min<uint64_t>(0xffff, members.size()), 2);
  put(end, 0xffffffff, 4);
  put(end, 0xffffffff, 4);
  put(end, 0, 2);
  w.write(end);
  w.commit();
}

}  // namespace onnxtrain
