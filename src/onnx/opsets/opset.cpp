// A single node in another opset, by ONNX's own schemas.
#include "onnx/opset.hpp"

#include "core/text.hpp"
#include "onnx/defs/schema.h"

namespace onnxtrain {

std::string misfit(const Node& n, int opset) {
  const onnx::OpSchema* from = onnx::OpSchemaRegistry::Schema(n.op, n.version, n.domain);
  const onnx::OpSchema* to = onnx::OpSchemaRegistry::Schema(n.op, opset, n.domain);
  if (to == nullptr) return "does not exist there";
  if (to->Deprecated()) return "is deprecated there";
  if (from == to) return "";
  // the one family whose meaning changed under an unchanged signature
  const bool softmax = n.op == "Softmax" || n.op == "LogSoftmax" || n.op == "Hardmax";
  if (softmax && (n.version < 13) != (opset < 13)) return "means something else there";
  for (const auto& [name, a] : n.attrs)
    if (to->attributes().find(name) == to->attributes().end())
      return cat("has the attribute '", name, "', which is not there");
  for (const auto& [name, a] : to->attributes())
    if (a.required && !n.has(name)) return cat("lacks the attribute '", name, "'");
  if (int(n.inputs.size()) > to->max_input())
    return cat("has ", n.inputs.size(), " inputs instead of at most ", to->max_input());
  if (int(n.inputs.size()) < to->min_input())
    return cat("has ", n.inputs.size(), " inputs instead of at least ", to->min_input());
  if (int(n.outputs.size()) > to->max_output())
    return cat("has ", n.outputs.size(), " outputs instead of at most ", to->max_output());
  return "";
}

}  // namespace onnxtrain
