// What is kept of the file a model came from: the protobuf message and the folder for external
// data. Tensors of the model alias its memory, so a Tensor whose pointer is still the one made at
// load was not changed and is written back as it was. Internal to onnx/.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "onnx/message/lift.hpp"
#include "onnx/onnx.hpp"
#include "onnx/onnx_pb.h"

namespace onnxtrain {

class InputFile;
class MappedFile;

// Files beside the model that hold tensor data; each is opened once. Data is read: what others do
// to the file later does not matter. Large tensors are mapped (LoadLimits::mapped_bytes).
class ExternalFiles {
 public:
  ExternalFiles(std::string base_dir, int64_t mapped_bytes)
      : base_dir_(std::move(base_dir)), mapped_bytes_(mapped_bytes) {}
  // The bytes [offset, offset+length) of a file beneath the model's folder; length < 0: to its end.
  // Throws a model error naming the tensor.
  struct Range {
    std::shared_ptr<void> owner;
    const char* data = nullptr;
    size_t size = 0;
  };
  Range open(const std::string& location, int64_t offset, int64_t length,
             const std::string& tensor) const;
  // Whether a range of that length is mapped, not read.
  bool is_mapped(size_t length) const { return int64_t(length) >= mapped_bytes_; }
  const std::string& base_dir() const { return base_dir_; }
  // Data that was lifted out of the message (onnx/message/lift.hpp), by the number in its location.
  void set_lifted(const std::vector<LiftedTensor>& tensors);
  // From now on only their readers own it; what nobody has read stays.
  void release_lifted();
  Range lifted(int64_t k, const std::string& tensor) const;

 private:
  std::string base_dir_;
  int64_t mapped_bytes_;
  struct File {
    std::shared_ptr<InputFile> file;
    std::shared_ptr<MappedFile> mapped;
    std::map<std::pair<int64_t, int64_t>, std::weak_ptr<void>> read;  // shared by its readers
  };
  File& file(const std::string& location, const std::string& tensor) const;
  mutable std::unordered_map<std::string, File> files_;
  struct Lifted {
    std::shared_ptr<void> kept;
    std::weak_ptr<void> data;
    size_t bytes;
  };
  std::vector<Lifted> lifted_;
};

class ModelSource {
 public:
  ModelSource(std::string base_dir, LoadLimits l)
      : external(std::move(base_dir), l.mapped_bytes), limits(l) {}

  onnx::ModelProto proto;
  ExternalFiles external;
  LoadLimits limits;
  // Tensors that could not alias the message (converted, mapped): kept so that their addresses
  // stay theirs and "unchanged" can be told by pointer.
  std::unordered_map<const onnx::TensorProto*, Tensor> converted;
  std::unordered_map<const onnx::SparseTensorProto*, Tensor> densified;
};

// Reads the message; checks size and nesting limits. Errors: OT1002 (not a
// model, or damaged), OT1003 (a limit).
std::shared_ptr<ModelSource> parse_source(std::string_view bytes, const std::string& base_dir,
                                          const LoadLimits& limits);
std::shared_ptr<ModelSource> read_source(const std::string& path, const LoadLimits& limits);

// The number of this tensor's data when it was lifted out of the message (it is no external data
// then); -1 when it was not.
int64_t lifted_number(const onnx::TensorProto& p);
inline bool is_lifted(const onnx::TensorProto& p) { return lifted_number(p) >= 0; }

// "" and "ai.onnx" are the same domain.
inline std::string normal_domain(const std::string& d) {
  return d == "ai.onnx" ? std::string() : d;
}

}  // namespace onnxtrain
