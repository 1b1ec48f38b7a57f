// Weights in attributes <-> initializers. The operator itself is kept in the metadata as a model of
// one node, in hexadecimal digits: reading it again passes every check of a file.
#include "convert/analysis/attribute_weights.hpp"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "onnx/onnx.hpp"
#include "op/attribute_weights.hpp"
#include "op/identity_node.hpp"

namespace onnxtrain {

namespace {

using Json = nlohmann::json;
constexpr const char* kKept = "onnxtrain.attribute_weights";

std::string to_hex(const std::string& bytes) {
  const char* digits = "0123456789abcdef";
  std::string out;
  out.reserve(2 * bytes.size());
  for (unsigned char c : bytes) {
    out += digits[c >> 4];
    out += digits[c & 15];
  }
  return out;
}

std::string from_hex(const std::string& text) {
  auto digit = [](char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    throw std::invalid_argument("not a hexadecimal digit");
  };
  std::string out;
  for (size_t k = 0; k + 1 < text.size(); k += 2)
    out += char(digit(text[k]) * 16 + digit(text[k + 1]));
  return out;
}

// The node alone, in a model of its own.
std::string packed(const Model& m, const Node& n, const OpTable& ops) {
  Model one;
  one.opsets = m.opsets;
  one.ir_version = m.ir_version;
  Graph& g = one.edit_main();
  g.name = "operator";
  Node copy = n;
  ValueId x = g.add_value("x", m.main.value(n.inputs[0]).type);
  g.inputs = {x};
  copy.inputs = {x};
  for (size_t k = 0; k < n.outputs.size(); ++k) {
    if (n.outputs[k] == kNone) continue;
    copy.outputs[k] = g.add_value(cat("y", k), m.main.value(n.outputs[k]).type);
    g.outputs.push_back(copy.outputs[k]);
  }
  g.nodes.push_back(std::move(copy));
  g.renumber();
  return to_hex(serialize_model(one, ops));
}

int64_t features_of(const TypeInfo& t) {
  if (!t.is_tensor() || !t.shape || t.shape->empty()) return -1;
  return t.shape->back().known() ? t.shape->back().value : -1;
}

using Weights = std::vector<std::pair<std::string, Tensor>>;

Weights weights_of(const Graph& g, const Node& n) {
  const AttributeWeights* op = attribute_weights_of(n);
  if (!op || n.inputs.size() != 1 || n.inputs[0] == kNone) return {};
  return op->read(n, features_of(g.value(n.inputs[0]).type));
}

// Appends the node's form in standard operators; names of the initializers that it reads.
std::vector<std::string> take_apart(Graph& g, Node n, const Weights& weights, const OpTable& ops,
                                    int opset) {
  std::vector<std::string> names;
  for (const auto& [attribute, value] : weights) {
    const std::string wanted = (n.name.empty() ? n.op : n.name) + "." + attribute;
    std::string name = wanted;
    for (int k = 2; g.find(name) != kNone; ++k) name = cat(wanted, "_", k);
    ValueId v = g.add_constant(value.clone(), name);
    g.value(v).initializer = true;
    g.value(v).type = TypeInfo::tensor(value.dtype(), value.shape());
    n.inputs.push_back(v);
    names.push_back(name);
  }
  GradBuilder b(g, ops, n, {}, opset);
  const std::vector<ValueId> made = attribute_weights_of(n)->form(b);
  for (size_t k = 0; k < n.outputs.size(); ++k)
    if (n.outputs[k] != kNone) g.nodes.push_back(identity_node(g, made.at(k), n.outputs[k], opset));
  return names;
}

[[noreturn]] void damaged(const std::string& why) {
  model_error("OT1714", cat("the metadata '", kKept, "' is damaged: ", why),
              "prepare the model again");
}

// The operator of one entry with the numbers of today.
Node restored(const Model& m, const Json& entry, const OpTable& ops) {
  const Model one = load_model_bytes(from_hex(entry.at("operator").get<std::string>()), "", ops);
  if (one.main.nodes.size() != 1) damaged("an operator is not one node");
  Node n = one.main.nodes[0];
  const AttributeWeights* op = attribute_weights_of(n);
  if (!op || n.inputs.size() != 1) damaged(cat(n.op, " has no weights in attributes"));
  const Weights before = weights_of(one.main, n);
  std::vector<Tensor> values;
  for (const Json& name : entry.at("weights")) {
    const Tensor* t = m.initializer(name.get<std::string>());
    if (!t) damaged(cat("there is no initializer '", name.get<std::string>(), "'"));
    values.push_back(*t);
  }
  bool same = before.size() == values.size();
  for (size_t k = 0; same && k < values.size(); ++k)
    same = values[k].dtype() == DType::kFloat && values[k].shape() == before[k].second.shape();
  if (!same) damaged(cat("the weights of ", n.op, " have other shapes"));
  op->write(n, values);
  return n;
}

ValueId value_named(const Graph& g, const Json& name) {
  ValueId v = g.find(name.get<std::string>());
  if (v == kNone) damaged(cat("there is no value '", name.get<std::string>(), "'"));
  return v;
}

// Puts the operator in the place of the nodes that stood for it.
void put_back(Graph& g, const Json& entry, Node n) {
  n.name = entry.at("name").get<std::string>();
  n.inputs = {value_named(g, entry.at("input"))};
  const Json& names = entry.at("outputs");
  if (names.size() != n.outputs.size()) damaged("an operator has other outputs");
  std::vector<ValueId> gone;
  for (size_t k = 0; k < n.outputs.size(); ++k) {
    n.outputs[k] = names[k].is_null() ? kNone : value_named(g, names[k]);
    if (n.outputs[k] != kNone) gone.push_back(n.outputs[k]);
  }
  std::erase_if(g.nodes, [&](const Node& old) {
    return old.outputs.size() == 1 &&
           std::find(gone.begin(), gone.end(), old.outputs[0]) != gone.end();
  });
  g.nodes.push_back(std::move(n));
  g.renumber();
  g.sort();
}

void forget_unused(Graph& g, const Json& entries) {
  g.remove_dead();
  const std::vector<std::vector<NodeId>> uses = g.consumers();
  for (const Json& entry : entries)
    for (const Json& name : entry.at("weights")) {
      ValueId v = g.find(name.get<std::string>());
      bool output = std::find(g.outputs.begin(), g.outputs.end(), v) != g.outputs.end();
      if (v == kNone || !uses[size_t(v)].empty() || output) continue;
      g.value(v).constant = Tensor();
      g.value(v).initializer = false;
    }
}

}  // namespace

bool adopt_attribute_weights(Model& m, const OpTable& ops) {
  if (std::none_of(m.main.nodes.begin(), m.main.nodes.end(),
                   [&](const Node& n) { return !weights_of(m.main, n).empty(); }))
    return false;
  auto it = m.opsets.find("");
  const int opset = it == m.opsets.end() ? 13 : it->second;
  Json entries = Json::array();
  if (auto old = m.metadata.find(kKept); old != m.metadata.end())
    entries = Json::parse(old->second, nullptr, false);
  if (!entries.is_array()) damaged("it is no list");
  std::vector<std::string> operators;
  for (const Node& n : m.main.nodes)
    operators.push_back(weights_of(m.main, n).empty() ? "" : packed(m, n, ops));
  Graph& g = m.edit_main();
  std::vector<Node> old = std::move(g.nodes);
  g.nodes.clear();
  for (size_t k = 0; k < old.size(); ++k) {
    const Node& n = old[k];
    if (operators[k].empty()) {
      g.nodes.push_back(n);
      continue;
    }
    Json entry = {{"name", n.name}, {"operator", operators[k]}, {"outputs", Json::array()}};
    entry["input"] = g.value_name(n.inputs[0]);
    for (ValueId v : n.outputs)
      entry["outputs"].push_back(v == kNone ? Json() : Json(g.value_name(v)));
    entry["weights"] = take_apart(g, n, weights_of(g, n), ops, opset);
    entries.push_back(std::move(entry));
  }
  g.renumber();
  m.metadata[kKept] = entries.dump(-1, ' ', false, Json::error_handler_t::replace);
  // types behind these operators follow from their forms only
  m = load_model_bytes(serialize_model(m, ops), "", ops);
  return true;
}

std::vector<std::string> adopted_weights(const Model& m) {
  std::vector<std::string> names;
  auto it = m.metadata.find(kKept);
  const Json entries =
      it == m.metadata.end() ? Json::array() : Json::parse(it->second, nullptr, false);
  if (!entries.is_array()) return names;
  for (const Json& entry : entries)
    if (entry.is_object() && entry.contains("weights") && entry["weights"].is_array())
      for (const Json& name : entry["weights"])
        if (name.is_string()) names.push_back(name.get<std::string>());
  return names;
}

Model with_attribute_weights(const Model& m, const OpTable& ops) {
  auto it = m.metadata.find(kKept);
  if (it == m.metadata.end()) return m;
  Model out = m;
  out.unshare_main();
  out.training.clear();
  try {
    const Json entries = Json::parse(it->second);
    Graph& g = out.edit_main();
    for (const Json& entry : entries) {
      Node n = restored(m, entry, ops);
      int& opset = out.opsets[n.domain];
      opset = std::max(opset, n.version);
      put_back(g, entry, std::move(n));
    }
    forget_unused(g, entries);
  } catch (const Json::exception& e) {
    damaged(e.what());
  } catch (const std::invalid_argument& e) {
    damaged(e.what());
  }
  out.metadata.erase(kKept);
  return out;
}

}  // namespace onnxtrain
