// A model as other programs walk it: every node, attribute, tensor and training step. Converters
// to other frameworks read models through this and through nothing else.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "model/model.hpp"
#include "op/op.hpp"

namespace onnxtrain {

struct GraphView {
  std::string json;             // the structure; docs/adding-a-converter.md has its form
  std::vector<Tensor> tensors;  // what "tensor": k in it stands for; they share the model's memory
};

// keep: which operators stand as they are. Every other operator that has a body (a function of the
// file, of this library or of the standard) is replaced by it. Null: operators with a record in
// `ops` stand.
GraphView view_model(
    const Model& m, const OpTable& ops,
    const std::function<bool(const std::string& domain, const std::string& op)>& keep = nullptr);

}  // namespace onnxtrain
