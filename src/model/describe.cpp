// Model -> JSON.
#include "model/describe.hpp"

#include <nlohmann/json.hpp>

#include "model/class_labels.hpp"

namespace onnxtrain {

namespace {

using nlohmann::json;

json type_json(const TypeInfo& t) {
  json j{{"type", to_string(t)}};
  if (!t.is_tensor()) return j;
  j["dtype"] = dtype_name(t.elem);
  if (!t.shape) return j;
  json dims = json::array();
  for (const Dim& d : *t.shape) {
    if (d.known())
      dims.push_back(d.value);
    else
      dims.push_back(d.symbol.empty() ? json(nullptr) : json(d.symbol));
  }
  j["shape"] = dims;
  return j;
}

json value_json(const Graph& g, ValueId v) {
  json j = type_json(g.value(v).type);
  j["name"] = g.value_name(v);
  return j;
}

// The operator that makes an output, seen through Identity; "" for an input or initializer.
std::string made_by(const Graph& g, ValueId v) {
  while (g.value(v).producer >= 0) {
    const Node& n = g.nodes[size_t(g.value(v).producer)];
    if (!n.is("Identity")) return n.domain.empty() ? n.op : n.domain + "::" + n.op;
    v = n.inputs[0];
  }
  return "";
}

json initializers_json(const Graph& g) {
  json list = json::array();
  for (const ValueDef& d : g.values) {
    if (!d.constant.defined() || !d.initializer) continue;
    json j = type_json(d.type);
    j["name"] = d.name;
    j["elements"] = d.constant.size();
    if (!d.state.empty()) j["state"] = true;
    list.push_back(j);
  }
  return list;
}

json operators_json(const Graph& g) {
  json ops = json::object();
  for (const Node& n : g.nodes) {
    std::string key = n.domain.empty() ? n.op : n.domain + "::" + n.op;
    ops[key] = ops.value(key, 0) + 1;
  }
  return ops;
}

json bindings_json(const std::vector<TrainingStep::Binding>& list) {
  json j = json::array();
  for (const auto& [key, value] : list) j.push_back({{"key", key}, {"value", value}});
  return j;
}

}  // namespace

std::string describe_json(const Model& m) {
  json j;
  j["ir_version"] = m.ir_version;
  for (const auto& [domain, version] : m.opsets)
    j["opsets"][domain.empty() ? "ai.onnx" : domain] = version;
  j["producer"] = m.producer_name;
  j["metadata"] = m.metadata;
  j["inputs"] = json::array();
  for (ValueId v : m.main.inputs)
    if (!m.main.value(v).constant.defined()) j["inputs"].push_back(value_json(m.main, v));
  j["outputs"] = json::array();
  for (ValueId v : m.main.outputs) {
    json output = value_json(m.main, v);
    output["made_by"] = made_by(m.main, v);
    j["outputs"].push_back(std::move(output));
  }
  if (const auto classes = class_labels(m.main); !classes.empty()) j["classes"] = classes;
  j["initializers"] = initializers_json(m.main);
  j["operators"] = operators_json(m.main);
  j["nodes"] = m.main.nodes.size();
  j["training"] = json::array();
  for (const TrainingStep& t : m.training) {
    json s;
    s["inputs"] = json::array();
    for (ValueId v : t.algorithm.inputs) s["inputs"].push_back(value_json(t.algorithm, v));
    s["outputs"] = json::array();
    for (ValueId v : t.algorithm.outputs) s["outputs"].push_back(value_json(t.algorithm, v));
    s["initializers"] = initializers_json(t.algorithm);
    s["operators"] = operators_json(t.algorithm);
    s["initialization_binding"] = bindings_json(t.initialization_binding);
    s["update_binding"] = bindings_json(t.update_binding);
    j["training"].push_back(s);
  }
  return j.dump(-1, ' ', false, json::error_handler_t::replace);  // names may be no UTF-8
}

}  // namespace onnxtrain
