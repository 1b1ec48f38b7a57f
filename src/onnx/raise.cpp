// libonnx's version converter on the inference part.
#include "onnx/raise.hpp"

#include <onnx/version_converter/convert.h>

#include "onnx/onnx.hpp"
#include "onnx/source.hpp"

namespace onnxtrain {

namespace {

// Operators that the converter passes on although newer opsets mean something else by them.
bool changes_meaning(const Graph& g) {
  for (const Node& n : g.nodes) {
    if (n.is("Scan") && n.version < 9) return true;
    if (n.is("Hardmax") && n.version < 13) return true;
    // one slope per channel stands before the positions now
    if (n.is("PRelu") && n.version < 7 && n.inputs.size() > 1) {
      const TypeInfo& slope = g.value(n.inputs[1]).type;
      if (!slope.concrete() || num_elements(slope.concrete_shape()) != 1) return true;
    }
    for (const auto& [key, a] : n.attrs)
      if (const GraphPtr* sub = std::get_if<GraphPtr>(&a); sub && changes_meaning(**sub))
        return true;
  }
  return false;
}

void set_string(onnx::NodeProto& n, const char* name, const char* value) {
  onnx::AttributeProto* a = n.add_attribute();
  a->set_name(name);
  a->set_type(onnx::AttributeProto::STRING);
  a->set_s(value);
}

// Upsample and Resize-10 take pixels as newer versions do only when they are told so; the converter
// does not tell them.
void say_how_to_resize(onnx::GraphProto& g) {
  for (onnx::NodeProto& n : *g.mutable_node()) {
    for (onnx::AttributeProto& a : *n.mutable_attribute())
      if (a.has_g()) say_how_to_resize(*a.mutable_g());
    if (n.op_type() != "Resize" || !n.domain().empty()) continue;
    set_string(n, "coordinate_transformation_mode", "asymmetric");
    set_string(n, "nearest_mode", "floor");
  }
}

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
    if (d.initializer && dtype_is_differentiable(d.constant.dtype()) && d.constant.rank() >= 1 &&
        after.main.find(d.name) == kNone)
      return false;
  return true;
}

}  // namespace

std::optional<Model> raise_opset(const Model& m, int target, const OpTable& ops) {
  auto it = m.opsets.find("");
  if (it == m.opsets.end() || it->second >= target || changes_meaning(m.main)) return std::nullopt;
  SaveOptions inference;
  inference.inference_only = true;
  try {
    onnx::ModelProto old;
    if (!old.ParseFromString(serialize_model(m, ops, inference)) || old.functions_size() > 0)
      return std::nullopt;
    // before IR 4 every initializer is an input too; the converter insists on it
    old.set_ir_version(std::max<int64_t>(old.ir_version(), 4));
    onnx::ModelProto raised = onnx::version_conversion::ConvertVersion(old, target);
    if (it->second < 11) say_how_to_resize(*raised.mutable_graph());
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
