// Operators of ONNX Runtime's domain com.microsoft that published files have, as functions of
// standard operators. Internal to onnx/.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "onnx/onnx_pb.h"

namespace onnxtrain {

// Is there a body, for some inputs at least?
bool is_contrib(const std::string& domain, const std::string& op);

// What a body may depend on.
struct ContribNode {
  std::string op;
  std::vector<std::pair<std::string, const onnx::AttributeProto*>> attrs;
  std::vector<int> ranks;    // per input; -1: not known, -2: not given
  std::vector<DType> types;  // per input, as far as they are known
  std::vector<char> used;    // per output

  bool has(size_t input) const { return input < ranks.size() && ranks[input] != -2; }
  DType type(size_t input) const { return input < types.size() ? types[input] : DType::kUndefined; }
  int rank(size_t input) const { return has(input) ? ranks[input] : -2; }
  bool wants(size_t output) const { return output < used.size() && used[output]; }
  const onnx::AttributeProto* attr(std::string_view name) const;
  double number(std::string_view name, double otherwise) const;  // of a float or int attribute
};

// Null: none for these inputs, and `why`.
std::unique_ptr<onnx::FunctionProto> contrib_body(const ContribNode& n, std::string& why);

}  // namespace onnxtrain
