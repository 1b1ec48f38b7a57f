// Writing the file: in one piece, or with large tensors beside it as external data.
#include <filesystem>
#include <optional>

#include "core/file.hpp"
#include "onnx/message/tensors.hpp"
#include "onnx/write/writer.hpp"

namespace onnxtrain {
namespace {

constexpr int64_t kSmallTensor = 1024;  // bytes; smaller ones stay in the message

void add_entry(onnx::TensorProto& p, const char* key, std::string value) {
  auto* kv = p.add_external_data();
  kv->set_key(key);
  kv->set_value(std::move(value));
}

// A data file that the model now at `path` does not use: the new model and its data become valid
// together, by the rename of the model file.
std::string free_data_path(const std::string& path) {
  namespace fs = std::filesystem;
  std::string first = path + ".data", second = path + ".2.data";
  std::error_code e;
  if (!fs::exists(first, e)) return first;
  if (!fs::exists(second, e)) return second;
  return fs::last_write_time(first, e) < fs::last_write_time(second, e) ? first : second;
}

void write_external(FileParts& parts, const std::string& data_path, int64_t threshold) {
  AtomicWriter data(data_path, false);
  const std::string location = std::filesystem::path(data_path).filename().string();
  const std::string zeros(4096, '\0');
  parts.each_tensor([&](TensorOut& t) {
    if (!t.tensor.defined() && t.raw.empty()) return;
    if (!t.was_external && int64_t(t.data_bytes()) < threshold) return;
    const uint64_t align = t.data_bytes() >= (1 << 20) ? 4096 : 64;
    const uint64_t gap = (align - data.bytes() % align) % align;
    data.write(zeros.data(), size_t(gap));
    t.proto.set_data_location(onnx::TensorProto_DataLocation_EXTERNAL);
    t.proto.clear_external_data();
    add_entry(t.proto, "location", location);
    add_entry(t.proto, "offset", std::to_string(data.bytes()));
    add_entry(t.proto, "length", std::to_string(t.data_bytes()));
    if (t.tensor.defined())
      data.write(t.tensor.data(), t.tensor.bytes());
    else
      data.write(t.raw);
    t.tensor = {};
    t.raw = {};
  });
  data.commit();
}

void remove_other_data(const std::string& path, const std::string& in_use) {
  for (const char* suffix : {".data", ".2.data"}) {
    const std::string other = path + suffix;
    std::error_code e;
    if (std::filesystem::path(other).filename() != in_use) std::filesystem::remove(other, e);
  }
}

// Tensors of the source that were external keep that form, but their data is embedded here.
void embed(FileParts& parts) {
  parts.each_tensor([](TensorOut& t) {
    if (!t.tensor.defined()) return;
    t.proto.clear_data_location();
    t.proto.clear_external_data();
  });
}

}  // namespace

struct ModelBytes::Impl {
  FileParts parts;
  std::optional<Pieces> pieces;
};

ModelBytes::ModelBytes(const Model& m, const OpTable& ops, const SaveOptions& o)
    : impl_(std::make_unique<Impl>()) {
  impl_->parts = make_parts(m, ops, o);
  embed(impl_->parts);
}

ModelBytes::~ModelBytes() = default;

uint64_t ModelBytes::tensor_bytes() const {
  uint64_t sum = 0;
  impl_->parts.each_tensor([&](TensorOut& t) { sum += t.data_bytes(); });
  return sum;
}

void ModelBytes::move_tensors(const std::string& data_path) {
  OT_ASSERT(!impl_->pieces);
  write_external(impl_->parts, data_path, kSmallTensor);
}

void ModelBytes::each(const std::function<void(std::string_view)>& out) {
  if (!impl_->pieces) impl_->pieces = to_pieces(impl_->parts);
  if (impl_->pieces->size() > kMaxModelBytes)
    model_error(
        "OT1502",
        cat("the model has ", impl_->pieces->size(), " bytes; one protobuf message holds 2 GiB"),
        "save it to a file: large tensors then go beside it");
  impl_->pieces->each(out);
}

std::string serialize_model(const Model& m, const OpTable& ops, const SaveOptions& o) {
  std::string all;
  ModelBytes(m, ops, o).each([&](std::string_view v) { all.append(v); });
  return all;
}

void save_model(const Model& m, const std::string& path, const OpTable& ops, const SaveOptions& o) {
  FileParts parts = make_parts(m, ops, o);
  uint64_t total = 0, external = 0;
  parts.each_tensor([&](TensorOut& t) {
    total += t.data_bytes();
    if (t.data_bytes() > 0 && (t.was_external || int64_t(t.data_bytes()) >= o.external_threshold))
      external += t.data_bytes();
  });
  int64_t threshold = o.external_threshold;
  if (total - external > kMaxModelBytes - (64 << 20)) threshold = kSmallTensor;
  std::string data_name;
  if (external > 0 || threshold != o.external_threshold) {
    const std::string data_path = free_data_path(path);
    data_name = std::filesystem::path(data_path).filename().string();
    write_external(parts, data_path, threshold);
  }
  Pieces pieces = to_pieces(parts);
  if (pieces.size() > kMaxModelBytes)
    model_error("OT1502", cat("the model has ", pieces.size(),
                              " bytes without its initializers; one protobuf file holds 2 GiB"));
  AtomicWriter file(path);
  pieces.each([&](std::string_view v) { file.write(v); });
  file.commit();
  if (!data_name.empty()) remove_other_data(path, data_name);
}

}  // namespace onnxtrain
