// Roots are followed back through what keeps a sign.
#include "onnx/functions/rooted.hpp"

#include <onnx/defs/parser.h>

#include <map>
#include <string>
#include <vector>

namespace onnxtrain {

namespace {

class Roots {
 public:
  explicit Roots(const onnx::FunctionProto& f) : f_(f) {
    for (int k = 0; k < f.input_size(); ++k) inputs_[f.input(k)] = size_t(k);
    for (const onnx::NodeProto& n : f.node())
      for (const std::string& out : n.output()) made_[out] = &n;
  }

  std::set<size_t> found() {
    for (const onnx::NodeProto& n : f_.node())
      if (n.op_type() == "Sqrt") follow(n.input(0));
    return std::move(reached_);
  }

 private:
  void follow(const std::string& value) {
    if (const auto in = inputs_.find(value); in != inputs_.end()) reached_.insert(in->second);
    const auto at = made_.find(value);
    if (at == made_.end()) return;
    const onnx::NodeProto& n = *at->second;
    const std::string& op = n.op_type();
    if (op == "Identity" || op == "Cast" || op == "CastLike" || op == "Sub" || op == "Div") {
      follow(n.input(0));
    } else if (op == "Add" || op == "Max" || (op == "Mul" && n.input(0) != n.input(1))) {
      for (const std::string& in : n.input()) follow(in);
    }
  }

  const onnx::FunctionProto& f_;
  std::map<std::string, size_t> inputs_;
  std::map<std::string, const onnx::NodeProto*> made_;
  std::set<size_t> reached_;
};

}  // namespace

std::set<size_t> rooted_inputs(const Op& op) {
  onnx::FunctionProto f;
  if (op.function == nullptr || !onnx::OnnxParser::Parse(f, op.function).IsOK()) return {};
  return Roots(f).found();
}

}  // namespace onnxtrain
