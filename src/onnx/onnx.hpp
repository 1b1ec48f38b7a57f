// Files: ONNX protobuf <-> Model. The only folder that sees protobuf and libonnx.
#pragma once
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "model/model.hpp"
#include "op/op.hpp"

namespace onnxtrain {

struct LoadLimits {  // docs/safety.md, 5; each is named in the error it causes
  int64_t protobuf_bytes = int64_t(2) << 30;
  int nesting = 64;
  int64_t nodes = 1'000'000;
  int rank = 64;
  int64_t name_bytes = 64 << 10;
  int64_t dense_bytes = int64_t(128) << 20;  // of one sparse tensor when made dense
  // External tensors at least this large are mapped; smaller ones are read, so that what happens
  // to the file later does not matter.
  int64_t mapped_bytes = int64_t(256) << 20;
};

struct LoadOptions {
  LoadLimits limits;
  bool check = true;  // run the checker (validity and C1-C20) and throw its first error
  // Keep nodes of unknown operators instead of throwing OT1101: to look at a model, not to run it.
  bool keep_unknown = false;
  // For readers with operators of their own (onnx/graph_view.hpp): whether an operator stands as it
  // is; every other one that has a body is replaced by it. Null: those in `ops` stand.
  std::function<bool(const std::string& domain, const std::string& op)> keep;
};

// Reads a file: protobuf, external data beneath the file's folder (read or mapped), functions
// expanded unless an operator of that domain and name is in `ops`, types inferred, training steps.
Model load_model(const std::string& path, const OpTable& ops, const LoadOptions& o = {});
// The same from memory; external data is looked up beneath `base_dir` (empty: refused).
Model load_model_bytes(std::string_view bytes, const std::string& base_dir, const OpTable& ops,
                       const LoadOptions& o = {});
// ONNX's text syntax -> model (tests, samples, function bodies).
Model parse_model(std::string_view text, const OpTable& ops, const LoadOptions& o = {});

struct SaveOptions {
  int ir_cap = 0;                                 // 0: by the table
  int64_t external_threshold = int64_t(1) << 60;  // tensors at least this large go to `<file>.data`
  bool inference_only = false;                    // leave out training_info and what only it needs
};

// Lossless: what came from a file and was not changed is written as it was.
std::string serialize_model(const Model& m, const OpTable& ops, const SaveOptions& o = {});
// The same without a copy of the tensors: the model must stay as it is meanwhile.
class ModelBytes {
 public:
  ModelBytes(const Model& m, const OpTable& ops, const SaveOptions& o = {});
  ~ModelBytes();
  uint64_t tensor_bytes() const;  // of the large tensors; the rest is small
  // Tensors of 1 KiB and more go to a file of their own in the folder of the model's.
  void move_tensors(const std::string& data_path);
  // In pieces, in order.
  void each(const std::function<void(std::string_view)>& out);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};
inline constexpr uint64_t kMaxModelBytes = (uint64_t(1) << 31) - (1 << 16);  // of one message
// Atomic write (core/file.hpp); over 2 GiB large tensors go to external data by themselves.
void save_model(const Model& m, const std::string& path, const OpTable& ops,
                const SaveOptions& o = {});

struct Finding {
  enum class Level { kError, kWarning } level;
  std::string code;     // "OT1301"
  std::string rule;     // "C7" or "" for ordinary validity
  std::string message;  // names training_info index, binding or node
  std::string hint;
};
// Every violation at once; never throws for a broken model, only for an unreadable file.
std::vector<Finding> check_model_file(const std::string& path, const OpTable& ops,
                                      const LoadOptions& o = {});
std::vector<Finding> check_model_bytes(std::string_view bytes, const std::string& base_dir,
                                       const OpTable& ops, const LoadOptions& o = {});

}  // namespace onnxtrain
