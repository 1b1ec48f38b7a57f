// safetensors: 8 bytes length of the header, the header, the data. Untrusted: offsets must cover
// the data exactly, without holes and overlaps.
#include "data/arrays/safetensors.hpp"

#include <algorithm>
#include <cstring>

#include <nlohmann/json.hpp>

namespace onnxtrain {
namespace {

using nlohmann::json;

constexpr uint64_t kMostHeader = 100'000'000;

uint64_t header_size(std::string_view head) {
  uint64_t n = 0;
  for (int i = 7; i >= 0; --i) n = n << 8 | static_cast<unsigned char>(head[size_t(i)]);
  return n;
}

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  data_error("OT2142", cat("'", path, "' is not a sound safetensors file: ", what),
             "copy or write it again");
}

DType dtype_of(const std::string& name, const std::string& path) {
  static const std::map<std::string, DType> kTypes = {
      {"F64", DType::kDouble},    {"F32", DType::kFloat},  {"F16", DType::kFloat16},
      {"BF16", DType::kBFloat16}, {"I64", DType::kInt64},  {"I32", DType::kInt32},
      {"I16", DType::kInt16},     {"I8", DType::kInt8},    {"U64", DType::kUint64},
      {"U32", DType::kUint32},    {"U16", DType::kUint16}, {"U8", DType::kUint8},
      {"BOOL", DType::kBool}};
  auto it = kTypes.find(name);
  if (it == kTypes.end()) damaged(path, cat("element type '", name, "' is not known"));
  return it->second;
}

struct Entry {
  std::string name;
  DType dtype = DType::kFloat;
  Shape shape;
  uint64_t begin = 0, end = 0;
};

Entry read_entry(const std::string& name, const json& j, const std::string& path) {
  Entry e;
  e.name = name;
  if (!j.is_object() || !j.contains("dtype") || !j["dtype"].is_string() || !j.contains("shape") ||
      !j["shape"].is_array() || !j.contains("data_offsets") || !j["data_offsets"].is_array() ||
      j["data_offsets"].size() != 2)
    damaged(path, cat("the entry of '", name, "' lacks dtype, shape or data_offsets"));
  e.dtype = dtype_of(j["dtype"].get<std::string>(), path);
  const auto number = [&](const json& x) {
    if (!x.is_number_unsigned() || x.get<uint64_t>() > uint64_t(INT64_MAX))
      damaged(path, cat("'", name, "' has a size or offset that is no number"));
    return x.get<uint64_t>();
  };
  if (j["shape"].size() > 64) damaged(path, cat("'", name, "' has rank ", j["shape"].size()));
  unsigned __int128 bytes = dtype_size(e.dtype);
  for (const json& d : j["shape"]) {
    e.shape.push_back(int64_t(number(d)));
    bytes *= static_cast<unsigned __int128>(e.shape.back());
    if (bytes > INT64_MAX) damaged(path, cat("'", name, "' is too large"));
  }
  e.begin = number(j["data_offsets"][0]);
  e.end = number(j["data_offsets"][1]);
  if (e.end < e.begin || e.end - e.begin != uint64_t(bytes))
    damaged(path, cat("'", name, "' of shape ", to_string(e.shape),
                      " does not have the bytes it claims"));
  return e;
}

json read_header(const InputFile& file, uint64_t n) {
  std::string text(size_t(n), '\0');
  file.read_at(8, text.data(), text.size());
  int depth = 0;
  for (char c : text) {  // before a parser goes down with it
    depth += (c == '{' || c == '[') - (c == '}' || c == ']');
    if (depth > 32) damaged(file.path(), "its header is nested too deeply");
  }
  json j = json::parse(text, nullptr, false);
  if (!j.is_object()) damaged(file.path(), "its header is no JSON object");
  return j;
}

}  // namespace

bool looks_like_safetensors(std::string_view head, uint64_t file_size) {
  if (head.size() < 10 || head[8] != '{') return false;
  const uint64_t n = header_size(head);
  return n >= 2 && n <= kMostHeader && n <= file_size - 8;
}

Dataset open_safetensors(const std::string& path, DataPart part) {
  const auto file = std::make_shared<const InputFile>(path, ErrorKind::kData);
  std::string head(8, '\0');
  if (file->size() < 10) damaged(path, "it is too short");
  file->read_at(0, head.data(), head.size());
  const uint64_t n = header_size(head);
  if (n > kMostHeader || n > file->size() - 8) damaged(path, "its header is longer than the file");
  std::map<std::string, Entry> entries;
  std::vector<const Entry*> order;
  std::vector<std::string> names;
  const json header = read_header(*file, n);
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") continue;
    order.push_back(&(entries[name] = read_entry(name, value, path)));
    if (!order.back()->shape.empty()) names.push_back(name);
  }
  std::sort(order.begin(), order.end(), [](const Entry* a, const Entry* b) {
    return std::pair(a->begin, a->end) < std::pair(b->begin, b->end);
  });
  uint64_t at = 0;
  for (const Entry* e : order) {
    if (e->begin != at) damaged(path, cat("there is a hole or an overlap before '", e->name, "'"));
    at = e->end;
  }
  if (at != file->size() - 8 - n) damaged(path, "its arrays do not fill it");
  Dataset out(path, "safetensors");
  for (const auto& [column, name] : select_part(names, part, path)) {
    out.set_of_part(column != name);
    const Entry& e = entries.at(name);
    const Shape row(e.shape.begin() + 1, e.shape.end());
    const uint64_t offset = 8 + n + e.begin;
    out.add_array(column, e.end - e.begin <= eager_limit()
                              ? memory_column(read_tensor(*file, offset, e.dtype, e.shape, false))
                              : file_column(file, offset, e.dtype, row, e.shape[0], false));
  }
  if (out.empty())
    data_error("OT2102", cat("'", path, "' holds no arrays"),
               "save some:  safetensors.numpy.save_file({'x': x, 'y': y}, path)");
  return out;
}

}  // namespace onnxtrain
