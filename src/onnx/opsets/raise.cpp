// libonnx's version converter on the inference part.
#include "onnx/raise.hpp"

#include <onnx/defs/schema.h>
#include <onnx/version_converter/convert.h>

#include <algorithm>

#include "onnx/message/libonnx_call.hpp"
#include "onnx/message/load_converted.hpp"
#include "onnx/message/source.hpp"
#include "onnx/onnx.hpp"
#include "onnx/opsets/raise_forms.hpp"
#include "onnx/opsets/raise_old.hpp"

namespace onnxtrain {

namespace {

Tensor as_type(const Tensor& t, DType to) {
  const std::vector<double> v = t.to_doubles();
  Tensor out(to, t.shape());
  dispatch<float, double, Half, BFloat16>(to, "a bound", [&]<class T>() {
    for (size_t k = 0; k < v.size(); ++k) out.as<T>()[k] = T(compute_t<T>(v[k]));
  });
  return out;
}

// Bounds and fillings were attributes; the converter makes tensors of float of them, whatever the
// data is. Bodies are not looked into: the converter leaves them alone.
bool give_settings_their_type(Graph& g, const Model& before) {
  bool changed = false;
  for (size_t k = 0; k < g.nodes.size(); ++k) {
    const bool clip = g.nodes[k].is("Clip"), pad = g.nodes[k].is("Pad");
    ValueId was = clip || pad ? before.main.find(g.value_name(g.nodes[k].outputs[0])) : kNone;
    const DType type = was == kNone ? DType::kUndefined : before.main.value(was).type.elem;
    if (!dtype_is_differentiable(type)) continue;
    for (size_t i = clip ? 1 : 2; i < std::min<size_t>(g.nodes[k].inputs.size(), 3); ++i) {
      const ValueId v = g.nodes[k].inputs[i];
      if (v == kNone || !g.value(v).constant.defined() || g.value(v).constant.dtype() == type)
        continue;
      const Tensor value = as_type(g.value(v).constant, type);
      const ValueId made = g.add_constant(value, g.unique_name(g.value_name(v)));
      g.value(made).type = TypeInfo::tensor(type, value.shape());
      g.nodes[k].inputs[i] = made;
      changed = true;
    }
  }
  return changed;
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

// Is every operator the same at `target`? Then its nodes become those of that opset.
bool moved(Graph& g, int target) {
  for (Node& n : g.nodes) {
    for (auto& [key, a] : n.attrs)
      if (GraphPtr* sub = std::get_if<GraphPtr>(&a)) {
        *sub = std::make_shared<Graph>((*sub)->clone());
        if (!moved(**sub, target)) return false;
      }
    if (!n.domain.empty()) continue;
    const onnx::OpSchema* here = onnx::OpSchemaRegistry::Schema(n.op, n.version);
    const onnx::OpSchema* there = onnx::OpSchemaRegistry::Schema(n.op, target);
    if (!here || !there || here->since_version() != there->since_version()) return false;
    n.version = target;
  }
  return true;
}

}  // namespace

std::optional<Model> at_opset(const Model& m, int target, const OpTable& ops) {
  auto it = m.opsets.find("");
  if (it == m.opsets.end() || it->second == target) return m;
  Model same = m;
  same.unshare_main();
  if (same.edit_main_if([&](Graph& g) { return moved(g, target); })) {
    same.opsets[""] = target;
    return same;
  }
  return raise_opset(m, target, ops);
}

std::optional<Model> raise_opset(const Model& m, int target, const OpTable& ops) {
  auto it = m.opsets.find("");
  if (it == m.opsets.end() || it->second >= target) return std::nullopt;
  SaveOptions inference;
  inference.inference_only = true;
  Model written = m;
  // functions are expanded here, in the file they are not
  if (m.source && m.source->proto.functions_size() > 0) written.edit_main();
  onnx::ModelProto old;
  if (!old.ParseFromString(serialize_model(written, ops, inference))) return std::nullopt;
  if (written.main_generated()) old.clear_functions();
  // before IR 4 every initializer is an input too; the converter insists on it
  old.set_ir_version(std::max<int64_t>(old.ir_version(), 4));
  if (it->second < 7) {
    if (!spell_as_opset_7(*old.mutable_graph(), m.main, it->second)) return std::nullopt;
    for (onnx::OperatorSetIdProto& o : *old.mutable_opset_import())
      if (o.domain().empty() || o.domain() == "ai.onnx") o.set_version(7);
  }
  if (it->second < 9) hide_scans(*old.mutable_graph());
  onnx::ModelProto raised;
  if (!libonnx_accepts([&] { raised = onnx::version_conversion::ConvertVersion(old, target); }))
    return std::nullopt;
  say_anew(*raised.mutable_graph(), it->second);
  raised.set_ir_version(std::max<int64_t>(old.ir_version(), 8));
  std::optional<Model> out = load_converted(raised, ops);
  if (!out || !keeps_names(m, *out)) return std::nullopt;
  out->edit_main_if([&](Graph& g) { return give_settings_their_type(g, m); });
  out->producer_name = m.producer_name;
  out->producer_version = m.producer_version;
  out->domain = m.domain;
  out->doc = m.doc;
  out->model_version = m.model_version;
  out->metadata = m.metadata;
  return out;
}

}  // namespace onnxtrain
