// Old forms that are rewritten on load: broadcasting by attributes (opset < 7). Operators that
// ONNX had as experiments and dropped are refused by name; everything else is handled by version.
#include <algorithm>

#include "onnx/read/reader.hpp"

namespace onnxtrain {
namespace {

bool in(std::string_view name, std::initializer_list<std::string_view> list) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

bool was_broadcast_op(std::string_view op) {
  return in(op,
            {"Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less"});
}

bool was_experimental(std::string_view op, int version) {
  return in(op, {"ATen", "Affine", "ImageScaler", "ParametricSoftplus", "ScaledTanh", "Crop",
                 "GivenTensorFill", "GRUUnit", "DynamicSlice", "Scale"}) ||
         (op == "ThresholdedRelu" && version < 10);
}

}  // namespace

bool GraphReader::upgrade(NodeView& v, Scope& s) {
  if (!v.domain.empty()) return false;
  const std::string& op = v.proto->op_type();
  if (local_function(v) == nullptr && find_op(v.domain, op, v.version).op == nullptr &&
      was_experimental(op, v.version)) {
    std::map<std::string, GraphPtr> graphs;
    Node n = make_node(v, s, graphs);
    note_unknown(v, n.name, "an experimental operator that ONNX removed");
    add_outputs(std::move(n), v, s, {});
    return true;
  }
  if (v.version >= 7) return false;
  // an optimisation hint of 2017 without meaning
  std::erase_if(v.attrs, [](const auto& a) { return a.first == "consumed_inputs"; });
  if (!was_broadcast_op(op) || v.inputs.size() != 2 || v.inputs[0] == kNone || v.inputs[1] == kNone)
    return false;
  const onnx::AttributeProto* broadcast = v.attr("broadcast");
  const onnx::AttributeProto* axis = v.attr("axis");
  const bool aligned = broadcast != nullptr && broadcast->i() != 0 && axis != nullptr;
  if (aligned) {
    // B's dimensions stand at A's `axis`: append ones behind them, then numpy's rule fits
    const TypeInfo a = s.graph->value(v.inputs[0]).type;
    const TypeInfo b = s.graph->value(v.inputs[1]).type;
    auto replace_b = [&](Node n, TypeInfo type) {
      n.name = fresh_name(v.proto->output_size() > 0 ? v.proto->output(0) + "_aligned" : "aligned");
      const ValueId out = s.graph->add_value(fresh_name(n.name + "_out"), std::move(type));
      s.graph->value(out).producer = NodeId(s.graph->nodes.size());
      n.outputs = {out};
      s.graph->nodes.push_back(std::move(n));
      v.inputs[1] = out;
    };
    Node n;
    if (!a.shape || !b.shape) {
      n.domain = kOwnDomain;  // ranks are known at run time only
      n.op = "AlignAxis";
      n.version = 1;
      n.inputs = {v.inputs[1], v.inputs[0]};
      n.attrs["axis"] = int64_t(axis->i());
      TypeInfo type = b;
      type.shape = std::nullopt;
      replace_b(std::move(n), std::move(type));
    } else {
      const int64_t rank = int64_t(a.shape->size());
      const int64_t at = axis->i() < 0 ? axis->i() + rank : axis->i();
      const int64_t behind = at < 0 || at > rank ? -1 : rank - at - int64_t(b.shape->size());
      if (behind < 0)
        model_error("OT1055",
                    cat("axis=", axis->i(), " does not fit ", to_string(a), " and ", to_string(b)));
      std::vector<int64_t> axes;
      TypeInfo type = b;
      for (int64_t k = 0; k < behind; ++k) {
        axes.push_back(int64_t(b.shape->size()) + k);
        type.shape->push_back({1, {}});
      }
      n.op = "Unsqueeze";
      n.version = 7;
      n.inputs = {v.inputs[1]};
      n.attrs["axes"] = axes;
      if (behind > 0) replace_b(std::move(n), std::move(type));
    }
  }
  std::erase_if(v.attrs, [](const auto& a) { return a.first == "broadcast" || a.first == "axis"; });
  v.version = 7;
  v.schema = find_op(v.domain, op, v.version).schema;
  return false;  // goes on as an ordinary node
}

}  // namespace onnxtrain
