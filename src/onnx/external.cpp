// External data: files beneath the model's folder, opened and mapped once.
#include "core/file.hpp"
#include "onnx/source.hpp"

namespace onnxtrain {

int64_t lifted_number(const onnx::TensorProto& p) {
  if (p.data_location() != onnx::TensorProto_DataLocation_EXTERNAL) return -1;
  for (const auto& kv : p.external_data())
    if (kv.key() == "location") return lifted_index(kv.value());
  return -1;
}

void ExternalFiles::set_lifted(std::vector<LiftedTensor> tensors) {
  for (LiftedTensor& t : tensors) lifted_.push_back({t.data, t.data, t.bytes});
}

void ExternalFiles::release_lifted() {
  for (Lifted& l : lifted_)
    if (l.kept.use_count() > 1) l.kept = nullptr;
}

namespace {
[[noreturn]] void no_data(const std::string& tensor) {
  model_error("OT1011", cat("tensor '", tensor, "' has no data"));
}
}  // namespace

ExternalFiles::Range ExternalFiles::lifted(int64_t k, const std::string& tensor) const {
  if (k < 0 || k >= int64_t(lifted_.size())) no_data(tensor);
  const Lifted& l = lifted_[size_t(k)];
  std::shared_ptr<void> data = l.data.lock();
  if (!data) no_data(tensor);
  return {data, static_cast<const char*>(data.get()), l.bytes};
}

ExternalFiles::Range ExternalFiles::open(const std::string& location, int64_t offset,
                                         int64_t length, const std::string& tensor) {
  if (const int64_t k = lifted_index(location); k >= 0) {
    Range r = lifted(k, tensor);
    if (offset != 0 || (length != 0 && size_t(length) != r.size)) no_data(tensor);
    return r;
  }
  if (base_dir_.empty())
    model_error("OT1011",
                cat("tensor '", tensor, "' lies in the external file '", location,
                    "', but the model has no folder"),
                "load the model from its file, or give the folder of its external data");
  auto it = files_.find(location);
  if (it == files_.end()) {
    std::shared_ptr<MappedFile> file;
    try {
      file = std::make_shared<MappedFile>(open_beneath(base_dir_, location));
    } catch (Error& e) {
      e.add_place(cat("for the external data of tensor '", tensor, "'"));
      throw;
    }
    it = files_.emplace(location, std::move(file)).first;
  }
  const std::shared_ptr<MappedFile>& file = it->second;
  file->check_size();
  const uint64_t size = file->size();
  if (uint64_t(offset) > size || uint64_t(length) > size - uint64_t(offset))
    model_error("OT1011",
                cat("tensor '", tensor, "' needs bytes ", offset, " to ", offset + length, " of '",
                    location, "', which has ", size),
                "the external file is cut short or belongs to another model");
  return {file, reinterpret_cast<const char*>(file->data()) + offset, size_t(length)};
}

}  // namespace onnxtrain
