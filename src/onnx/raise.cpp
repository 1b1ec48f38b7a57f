// libonnx's version converter on the inference part.
#include "onnx/raise.hpp"

#include <onnx/version_converter/convert.h>

#include "onnx/onnx.hpp"
#include "onnx/source.hpp"

namespace onnxtrain {

namespace {

// What the converter must not lose.
bool keeps_names(const Model& before, const Model& after) {
  auto names = [](const Graph& g, const std::vector<ValueId>& list) {
    std::vector<std::string> out;
    for (ValueId v : list) out.push_back(g.value_name(v));
    return out;
  };
  if (names(before.main, before.main.outputs) != names(after.main, after.main.outputs) ||
      before.input_names() != after.input_names())
    return false;
  for (const ValueDef& d : before.main.values)
    if (d.initializer && dtype_is_differentiable(d.constant.dtype()) &&
        d.constant.rank() >= 1 && after.main.find(d.name) == kNone)
      return false;
  return true;
}

}  // namespace

std::optional<Model> raise_opset(const Model& m, int target, const OpTable& ops) {
  auto it = m.opsets.find("");
  if (it == m.opsets.end() || it->second >= target) return std::nullopt;
  SaveOptions inference;
  inference.inference_only = true;
  try {
    onnx::ModelProto old;
    if (!old.ParseFromString(serialize_model(m, ops, inference)) || old.functions_size() > 0)
      return std::nullopt;
    onnx::ModelProto raised = onnx::version_conversion::ConvertVersion(old, target);
    raised.set_ir_version(std::max<int64_t>(old.ir_version(), 8));
    Model out = load_model_bytes(raised.SerializeAsString(), "", ops);
    if (!keeps_names(m, out)) return std::nullopt;
    out.producer_name = m.producer_name;
    out.producer_version = m.producer_version;
    out.domain = m.domain;
    out.doc = m.doc;
    out.model_version = m.model_version;
    out.metadata = m.metadata;
    return out;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace onnxtrain
