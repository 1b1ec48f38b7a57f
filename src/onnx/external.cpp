// External data: files beneath the model's folder, opened and mapped once.
#include "core/file.hpp"
#include "onnx/source.hpp"

namespace onnxtrain {

ExternalFiles::Range ExternalFiles::open(const std::string& location, int64_t offset,
                                         int64_t length, const std::string& tensor) {
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
