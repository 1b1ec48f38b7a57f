// Reading npy headers and arrays, in memory or on demand.
#include "data/arrays/npy.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>

#include "data/arrays/inflate.hpp"

namespace onnxtrain {
namespace {

[[noreturn]] void bad_header(const std::string& where, std::string_view why) {
  data_error("OT2145", cat("'", where, "' is not a sound npy file: ", why),
             "copy or write the file again");
}

// Text, objects and records: wrong only when an input wants them.
class NotNumbers : public Error {
 public:
  NotNumbers(std::string message, std::string hint)
      : Error(ErrorKind::kData, "OT2146", std::move(message), std::move(hint)) {}
};

// The header is a Python dict literal; only the part of Python that numpy writes is read.
class HeaderParser {
 public:
  HeaderParser(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  void parse(NpyHeader& h) {
    bool descr = false, order = false, shape = false;
    expect('{');
    while (!accept('}')) {
      const std::string_view key = quoted();
      expect(':');
      if (key == "descr" && !descr)
        descr = true, parse_descr(h);
      else if (key == "fortran_order" && !order)
        order = true, h.fortran_order = boolean();
      else if (key == "shape" && !shape)
        shape = true, h.shape = tuple();
      else
        bad_header(where_, cat("its header has an unexpected key '", key, "'"));
      if (!accept(',')) {
        expect('}');
        break;
      }
    }
    skip();
    if (at_ != text_.size()) bad_header(where_, "something follows the header");
    if (!descr || !order || !shape) bad_header(where_, "its header is incomplete");
  }

 private:
  void skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n')) ++at_;
  }
  bool accept(char c) {
    skip();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!accept(c)) bad_header(where_, cat("its header lacks a '", c, "'"));
  }
  std::string_view quoted() {
    skip();
    const char quote = at_ < text_.size() ? text_[at_] : '\0';
    if (quote != '\'' && quote != '"') bad_header(where_, "its header lacks a name");
    const size_t end = text_.find(quote, at_ + 1);
    if (end == std::string_view::npos) bad_header(where_, "a name in its header does not end");
    const std::string_view out = text_.substr(at_ + 1, end - at_ - 1);
    at_ = end + 1;
    return out;
  }
  bool boolean() {
    skip();
    for (std::string_view word : {"True", "False"}) {
      if (text_.substr(at_, word.size()) != word) continue;
      at_ += word.size();
      return word == "True";
    }
    bad_header(where_, "fortran_order is neither True nor False");
  }
  Shape tuple() {
    Shape shape;
    expect('(');
    while (!accept(')')) {
      skip();
      int64_t d = 0;
      const char* end = text_.data() + text_.size();
      const auto [stop, bad] = std::from_chars(text_.data() + at_, end, d);
      if (bad != std::errc() || d < 0) bad_header(where_, "its shape is not made of sizes");
      at_ = size_t(stop - text_.data());
      accept('L');  // Python 2 wrote long integers so
      shape.push_back(d);
      if (shape.size() > 64) bad_header(where_, "it has more than 64 dimensions");
      if (!accept(',')) {
        expect(')');
        break;
      }
    }
    return shape;
  }
  void parse_descr(NpyHeader& h) {
    skip();
    if (at_ < text_.size() && text_[at_] == '[')
      throw NotNumbers(cat("'", where_, "' holds records with several fields"),
                       "save every field as an array of its own: numpy.savez(path, a=r['a'], ...)");
    const std::string_view d = quoted();
    if (d.find('O') != std::string_view::npos)
      throw NotNumbers(cat("'", where_, "' holds Python objects (pickle), which are never loaded"),
                       "save numbers: array.astype('float32')");
    static constexpr std::pair<std::string_view, DType> kTypes[] = {
        {"f4", DType::kFloat},  {"f8", DType::kDouble}, {"f2", DType::kFloat16},
        {"u1", DType::kUint8},  {"i1", DType::kInt8},   {"u2", DType::kUint16},
        {"i2", DType::kInt16},  {"u4", DType::kUint32}, {"i4", DType::kInt32},
        {"u8", DType::kUint64}, {"i8", DType::kInt64},  {"b1", DType::kBool}};
    const bool prefixed =
        !d.empty() && std::string_view("<>|=").find(d[0]) != std::string_view::npos;
    for (const auto& [name, type] : kTypes)
      if (d.substr(prefixed ? 1 : 0) == name) h.dtype = type;
    if (h.dtype == DType::kUndefined)
      throw NotNumbers(cat("'", where_, "' has elements of type '", d, "', which is not supported"),
                       d.find_first_of("US") != std::string_view::npos
                           ? "text becomes class numbers in Python: classes, y = numpy.unique(y, "
                             "return_inverse=True)"
                           : "save numbers: array.astype('float32')");
    h.big_endian = prefixed && d[0] == '>' && dtype_size(h.dtype) > 1;
  }

  std::string_view text_;
  const std::string& where_;
  size_t at_ = 0;
};

// Column-major to row-major; `from` and `to` do not overlap.
void from_fortran(const char* from, char* to, const Shape& shape, size_t size) {
  const int64_t n = num_elements(shape);
  std::vector<int64_t> index(shape.size(), 0);
  std::vector<int64_t> step(shape.size());  // of the column-major source
  int64_t s = 1;
  for (size_t i = 0; i < shape.size(); ++i) step[i] = s, s *= shape[i];
  int64_t at = 0;
  for (int64_t i = 0; i < n; ++i, to += size) {
    std::memcpy(to, from + size_t(at) * size, size);
    for (size_t d = shape.size(); d-- > 0;) {
      at += step[d];
      if (++index[d] < shape[d]) break;
      at -= step[d] * shape[d];
      index[d] = 0;
    }
  }
}

// Byte order, column order and truth values, once the elements are in memory.
Tensor finish(Tensor t, const NpyHeader& h) {
  if (h.big_endian) swap_bytes(t.data(), dtype_size(h.dtype), size_t(t.size()));
  if (h.dtype == DType::kBool) {  // any byte but 0 and 1 is no bool
    auto* p = static_cast<uint8_t*>(t.data());
    for (int64_t i = 0; i < t.size(); ++i) p[i] = p[i] != 0;
  }
  if (!h.fortran_order || t.rank() < 2) return t;
  Tensor out(h.dtype, h.shape);
  from_fortran(static_cast<const char*>(t.data()), static_cast<char*>(out.data()), h.shape,
               dtype_size(h.dtype));
  return out;
}

bool must_be_in_memory(const NpyHeader& h) {
  return (h.fortran_order && h.shape.size() > 1) || h.dtype == DType::kBool ||
         h.data_bytes <= eager_limit();
}

Shape row_shape(const NpyHeader& h) { return Shape(h.shape.begin() + 1, h.shape.end()); }

}  // namespace

NpyHeader parse_npy_header(std::string_view bytes, const std::string& where) {
  static_assert(std::endian::native == std::endian::little);
  if (bytes.size() < 10 || bytes.substr(0, 6) != "\x93NUMPY")
    bad_header(where, "it does not begin like one");
  const auto byte = [&](size_t i) { return size_t(static_cast<unsigned char>(bytes[i])); };
  size_t length = byte(8) | byte(9) << 8, begin = 10;
  if (byte(6) == 2 || byte(6) == 3) {
    if (bytes.size() < 12) bad_header(where, "it is cut off");
    length |= byte(10) << 16 | byte(11) << 24;
    begin = 12;
  } else if (byte(6) != 1) {
    bad_header(where, cat("its version ", byte(6), " is unknown"));
  }
  if (length > kNpyHeaderMost - 12) bad_header(where, cat("its header claims ", length, " bytes"));
  if (length > bytes.size() - begin) bad_header(where, "it is cut off");
  NpyHeader h;
  HeaderParser(bytes.substr(begin, length), where).parse(h);
  h.data_offset = begin + length;
  int64_t bytes_needed = 1;
  for (int64_t d : h.shape)
    if (__builtin_mul_overflow(bytes_needed, std::max<int64_t>(d, 1), &bytes_needed))
      bad_header(where, cat("its shape ", to_string(h.shape), " is impossibly large"));
  if (__builtin_mul_overflow(bytes_needed, int64_t(dtype_size(h.dtype)), &bytes_needed))
    bad_header(where, cat("its shape ", to_string(h.shape), " is impossibly large"));
  h.data_bytes = uint64_t(num_elements(h.shape)) * dtype_size(h.dtype);
  return h;
}

namespace {

void check_size(const NpyHeader& h, uint64_t have, const std::string& where) {
  if (have == h.data_bytes) return;
  data_error("OT2147",
             cat("'", where, "' is ", have < h.data_bytes ? "cut off" : "too long", ": shape ",
                 to_string(h.shape), " ", type_text(h.dtype), " needs ", h.data_bytes,
                 " bytes of data, the file has ", have),
             "copy or write the file again");
}

}  // namespace

ColumnPtr open_npy(const std::string& path) {
  auto file = std::make_shared<InputFile>(path, ErrorKind::kData);
  std::string head(size_t(std::min<uint64_t>(file->size(), kNpyHeaderMost)), '\0');
  file->read_at(0, head.data(), head.size());
  const NpyHeader h = parse_npy_header(head, path);
  if (h.shape.empty())
    data_error("OT2107", cat("'", path, "' holds a single number, not rows"),
               "save an array with a row for every example");
  check_size(h, file->size() - h.data_offset, path);
  if (!must_be_in_memory(h))
    return file_column(file, h.data_offset, h.dtype, row_shape(h), h.shape[0], h.big_endian);
  return memory_column(finish(read_tensor(*file, h.data_offset, h.dtype, h.shape, false), h));
}

namespace {

// nullptr for a single number, which has no rows
ColumnPtr open_member(const std::shared_ptr<const InputFile>& file, const ZipEntry& e,
                      const std::string& where) {
  std::string head = zip_peek(*file, e, kNpyHeaderMost);
  const NpyHeader h = parse_npy_header(head, where);
  check_size(h, e.size - h.data_offset, where);
  if (h.shape.empty()) return nullptr;
  if (!e.deflated && !must_be_in_memory(h)) {
    zip_verify_stored(*file, e);
    return file_column(file, e.offset + h.data_offset, h.dtype, row_shape(h), h.shape[0],
                       h.big_endian);
  }
  Tensor t(h.dtype, h.shape);
  zip_read(*file, e, head.data(), h.data_offset, t.data(), t.bytes());
  return memory_column(finish(std::move(t), h));
}

}  // namespace

Dataset open_npz(const std::string& path, DataPart part) {
  const auto file = std::make_shared<const InputFile>(path, ErrorKind::kData);
  std::map<std::string, ZipEntry> members;
  std::vector<std::string> names;
  for (ZipEntry& e : zip_directory(*file)) {
    if (!e.name.ends_with(".npy")) continue;
    names.push_back(e.name.substr(0, e.name.size() - 4));
    members[names.back()] = std::move(e);
  }
  Dataset dataset(path, "npz");
  for (const auto& [column, member] : select_part(names, part, path)) {
    dataset.set_of_part(column != member);
    try {
      ColumnPtr c = open_member(file, members.at(member), path + ":" + member);
      if (c != nullptr) dataset.add_array(column, std::move(c));
    } catch (const NotNumbers& e) {
      dataset.add_unreadable(column, e);
    }
  }
  if (dataset.empty())
    data_error("OT2102", cat("'", path, "' holds no arrays"),
               "save some:  np.savez(path, x=x, y=y)");
  return dataset;
}

}  // namespace onnxtrain
