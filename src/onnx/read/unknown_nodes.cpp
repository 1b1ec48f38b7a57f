// Nodes whose operator nobody here knows: all of them in one error, or left to another runtime
// (--fallback) with the gradient that the file has for them.
#include "onnx/message/validity.hpp"
#include "onnx/read/reader.hpp"
#include "op/foreign.hpp"

namespace onnxtrain {

void GraphReader::note_unknown(const NodeView& v, const std::string& node, std::string reason) {
  for (Unknown& u : unknown_)
    if (u.domain == v.domain && u.op == v.proto->op_type() && u.version == v.version) {
      u.nodes.push_back(node);
      return;
    }
  unknown_.push_back({v.domain, v.proto->op_type(), std::move(reason), v.version, {node}});
}

void GraphReader::throw_unknown() const {
  if (unknown_.empty()) return;
  std::string text = cat("the model uses ", unknown_.size(), " unknown operator",
                         unknown_.size() == 1 ? "" : "s", ":");
  for (const Unknown& u : unknown_) {
    text += cat("\n  ", u.domain.empty() ? "ai.onnx" : u.domain, ".", u.op, " (opset ", u.version,
                ") in ");
    for (size_t i = 0; i < u.nodes.size() && i < 3; ++i)
      text += cat(i ? ", '" : "'", u.nodes[i], "'");
    if (u.nodes.size() > 3) text += cat(" and ", u.nodes.size() - 3, " more");
    if (!u.reason.empty()) text += cat(": ", u.reason);
  }
  model_error("OT1101", text,
              "run them in ONNX Runtime:  --fallback onnxruntime   or check the domain and the "
              "opset_import, or add the operator to the model as a local function");
}

void GraphReader::make_foreign(Node& n, const NodeView& v, Scope& s) {
  n.version = v.version + kForeignVersion;
  auto it = functions_.find(cat(v.domain, ":", n.op, kGradientEnding, ":"));
  if (it == functions_.end()) return;
  n.version += kForeignWithGradient;
  n.attrs[kGradientBody] = read_function(v, *it->second, s);
}

// A function as a graph of its own.
GraphPtr GraphReader::read_function(const NodeView& v, const onnx::FunctionProto& f, Scope& s) {
  Frame frame;
  frame.caller = s.frame;
  frame.function = cat(f.domain(), ":", f.name(), ":");
  frame.depth = s.frame ? s.frame->depth + 1 : 1;
  for (const auto& [name, a] : v.attrs) frame.attrs.emplace(name, a);
  for (const auto& a : f.attribute_proto()) frame.attrs.emplace(a.name(), &a);
  OpsetMap imports;
  for (const auto& o : f.opset_import()) imports[normal_domain(o.domain())] = int(o.version());
  for (const auto& [domain, version] : *s.opsets) imports.emplace(domain, version);
  auto g = std::make_shared<Graph>();
  g->name = f.name();
  Scope b;
  b.graph = g.get();
  b.facts = s.facts;
  b.opsets = &imports;
  b.frame = &frame;
  b.depth = s.depth;
  for (int i = 0; i < f.input_size(); ++i) {
    TypeInfo t;
    if (size_t(i) < v.inputs.size() && v.inputs[size_t(i)] != kNone)
      t = s.graph->value(v.inputs[size_t(i)]).type;
    const ValueId id = g->add_value(f.input(i), t);
    g->inputs.push_back(id);
    b.names[f.input(i)] = id;
  }
  read_nodes(f.node(), b);
  for (const std::string& o : f.output()) {
    const ValueId id = lookup(b, o);
    if (id < 0) validity::refuse(validity::never_computed(o));
    g->outputs.push_back(id);
  }
  return g;
}

}  // namespace onnxtrain
