// GraphProto -> Graph: names become numbers, subgraphs list what they capture.
#include "onnx/read/reader.hpp"

#include <algorithm>

#include "onnx/defs/schema.h"
#include "onnx/message/validity.hpp"
#include "op/foreign.hpp"
#include "op/model_refusal.hpp"

namespace onnxtrain {
namespace {

constexpr ValueId kMissing = -2;  // a name that nothing defines; kNone: a known, omitted input

}  // namespace

GraphReader::GraphReader(std::shared_ptr<ModelSource> source, const OpTable& ops)
    : source_(std::move(source)), ops_(ops) {
  const onnx::ModelProto& m = source_->proto;
  for (const auto& o : m.opset_import()) opsets_[normal_domain(o.domain())] = int(o.version());
  for (const auto& f : m.functions())
    functions_.emplace(cat(normal_domain(f.domain()), ":", f.name(), ":", f.overload()), &f);
  check_expanded_size();
}

// ------------------------------------------------------------------ names

ValueId GraphReader::define(Scope& s, const std::string& name) {
  const std::string where = cat("graph '", s.graph->name, "'");
  if (int64_t(name.size()) > source_->limits.name_bytes)
    validity::refuse(validity::long_name(name.size(), source_->limits.name_bytes), where);
  if (name.empty()) validity::refuse(validity::no_name("a value"), where);
  if (s.names.count(name) != 0) validity::refuse(validity::defined_twice(name, "a value"), where);
  std::string final_name = name;
  if (auto it = s.rename.find(name); it != s.rename.end())
    final_name = it->second;
  else if (!s.prefix.empty())
    final_name = fresh_name(s.prefix + name);
  const ValueId v = s.graph->add_value(std::move(final_name));
  s.names.emplace(name, v);
  return v;
}

ValueId GraphReader::lookup(Scope& s, const std::string& name) {
  if (auto it = s.names.find(name); it != s.names.end()) return it->second;
  if (s.parent == nullptr) return kMissing;
  const ValueId outer = lookup(*s.parent, name);
  if (outer < 0 || s.parent->graph == s.graph) return outer;
  for (const auto& c : s.graph->captures)  // two names of a function body may mean one value
    if (s.frame != nullptr && c.outer == outer) return c.inner;
  const ValueDef& from = s.parent->graph->value(outer);
  const ValueId inner = s.graph->add_value(from.name, from.type);
  s.graph->captures.push_back({outer, inner});
  s.names.emplace(name, inner);
  if (const Tensor* t = known_value(*s.parent, outer)) s.facts->known[inner] = *t;
  if (auto it = s.parent->facts->partial.find(outer); it != s.parent->facts->partial.end())
    s.facts->partial[inner] = it->second;
  return inner;
}

std::string GraphReader::fresh_name(const std::string& base) {
  if (!names_collected_) {
    collect_names(source_->proto, used_names_);
    names_collected_ = true;
  }
  if (used_names_.insert(base).second) return base;
  int& n = name_counts_[base];
  for (;;) {
    std::string candidate = cat(base, "_", ++n);
    if (used_names_.insert(candidate).second) return candidate;
  }
}

std::string GraphReader::node_name(const onnx::NodeProto& p, const Scope& s) {
  if (!p.name().empty()) {
    std::string name = s.prefix + p.name();
    if (node_names_.insert(name).second) return name;
  }
  const std::string base = s.prefix + (p.name().empty() ? p.op_type() : p.name());
  int& n = name_counts_["node " + base];
  for (;;) {
    std::string name = cat(base, "_", n++);
    if (node_names_.insert(name).second) return name;
  }
}

void GraphReader::count_node() {
  if (++nodes_ > source_->limits.nodes)
    model_error("OT1003", cat("the model has more than ", source_->limits.nodes,
                              " nodes after its functions are expanded, which is the limit"));
}

// ------------------------------------------------------------------ graphs

void GraphReader::read_graph(const onnx::GraphProto& p, Scope& s,
                             const std::vector<TypeInfo>* types) {
  if (s.depth > source_->limits.nesting)
    validity::refuse(validity::too_deep(source_->limits.nesting));
  GraphFacts own_facts;
  if (s.facts == nullptr) s.facts = &own_facts;
  s.graph->name = p.name();
  const TensorContext c{source_, s.alias};
  auto constant = [&](const std::string& name, Tensor t) {
    ValueDef& v = s.graph->value(define(s, name));
    v.type = TypeInfo::tensor(t.dtype(), t.shape());
    v.constant = std::move(t);
    v.initializer = true;
  };
  for (const auto& t : p.initializer()) constant(t.name(), read_tensor(t, c));
  for (const auto& t : p.sparse_initializer())
    constant(t.values().name(), read_sparse_as_dense(t, c));
  std::unordered_set<ValueId> seen;
  for (int i = 0; i < p.input_size(); ++i) {
    const auto& in = p.input(i);
    auto it = s.names.find(in.name());
    const bool has_default = it != s.names.end();
    if (has_default && !seen.insert(it->second).second)
      validity::refuse(validity::two_inputs(in.name()), cat("graph '", p.name(), "'"));
    const ValueId v = has_default ? it->second : define(s, in.name());
    seen.insert(v);
    TypeInfo type = read_type(in.type());
    if (types != nullptr && size_t(i) < types->size())
      type = merge_types((*types)[size_t(i)], type);
    if (!has_default) s.graph->value(v).type = std::move(type);
    // a stored value that callers may replace says nothing about shapes (IR 3 had no other way)
    else if (source_->proto.ir_version() >= 4)
      s.facts->overridable.insert(v);
    s.graph->inputs.push_back(v);
  }
  for (const auto& v : p.value_info()) s.declared.emplace(v.name(), &v.type());
  for (const auto& v : p.output()) s.declared[v.name()] = &v.type();
  read_nodes(p.node(), s);
  for (const auto& out : p.output()) {
    const ValueId v = lookup(s, out.name());
    if (v < 0)
      validity::refuse(validity::never_computed(out.name()), cat("graph '", p.name(), "'"));
    s.graph->outputs.push_back(v);
  }
  if (s.facts == &own_facts) s.facts = nullptr;
}

GraphPtr GraphReader::read_subgraph(const onnx::GraphProto& p, Scope& s,
                                    const std::vector<TypeInfo>* types) {
  auto g = std::make_shared<Graph>();
  Scope inner;
  inner.graph = g.get();
  inner.parent = &s;
  inner.opsets = s.opsets;
  inner.frame = s.frame;
  inner.alias = s.alias;
  inner.prefix = s.prefix;
  inner.depth = s.depth + 1;
  GraphFacts facts;
  inner.facts = &facts;
  read_graph(p, inner, types);
  return g;
}

void GraphReader::read_nodes(const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                             Scope& s) {
  for (const auto& p : nodes) {
    try {
      read_node(p, s);
    } catch (Error& e) {
      // one line per level of nesting, but not for every level of a deep one
      if (s.depth < 4 && (s.frame == nullptr || s.frame->depth < 4))
        e.add_place(cat("in ", validity::node_label(p)));
      throw;
    }
  }
}

// ------------------------------------------------------------------ nodes

GraphReader::OpEntry GraphReader::find_op(const std::string& domain, const std::string& op,
                                          int version) {
  auto [it, fresh] = op_cache_.try_emplace(cat(domain, ":", op, ":", version));
  if (fresh) {
    it->second.op = ops_.find(domain, op, version);
    it->second.schema = onnx::OpSchemaRegistry::Schema(op, version, domain);
  }
  return it->second;
}

NodeView GraphReader::resolve(const onnx::NodeProto& p, Scope& s) {
  NodeView v;
  v.proto = &p;
  v.domain = normal_domain(p.domain());
  if (auto it = s.opsets->find(v.domain); it != s.opsets->end())
    v.version = it->second;
  else
    v.version = 1;  // the checker reports the missing import (C2)
  for (const auto& a : p.attribute()) {
    const onnx::AttributeProto* value = &a;
    if (!a.ref_attr_name().empty()) {
      if (s.frame == nullptr)
        validity::refuse(validity::reference_outside_function(a.name(), a.ref_attr_name()));
      auto it = s.frame->attrs.find(a.ref_attr_name());
      if (it == s.frame->attrs.end()) continue;  // not given by the caller: absent here too
      value = it->second;
    }
    if (v.attr(a.name()) != nullptr) validity::refuse(validity::attribute_twice(a.name()));
    const std::string problem = attribute_problem(v.domain, p.op_type(), a.name(), *value);
    if (!problem.empty()) validity::refuse(validity::wrong_attribute(problem));
    v.attrs.emplace_back(a.name(), value);
  }
  for (const auto& name : p.input()) {
    const ValueId id = name.empty() ? kNone : lookup(s, name);
    if (id == kMissing)
      validity::refuse(validity::not_there(validity::node_label(p), name),
                       cat("graph '", s.graph->name, "'"));
    v.inputs.push_back(id);
  }
  v.schema = find_op(v.domain, p.op_type(), v.version).schema;
  return v;
}

void GraphReader::read_node(const onnx::NodeProto& p, Scope& s) {
  count_node();
  NodeView v = resolve(p, s);
  if (v.domain.empty() && p.op_type() == "Constant") return read_constant(v, s);
  if (p.op_type() == "GraphCall" && find_op(v.domain, "GraphCall", v.version).op == nullptr &&
      local_function(v) == nullptr)
    return expand_graph_call(v, s);
  if (upgrade(v, s)) return;
  if (expand(v, s)) return;
  std::map<std::string, GraphPtr> graphs;
  std::vector<TypeInfo> types = infer(v, s, graphs);
  Node n = make_node(v, s, graphs);
  if (find_op(v.domain, p.op_type(), v.version).op == nullptr) {
    if (foreign_runner() && v.domain != kTrainingDomain && v.domain != kOwnDomain)
      make_foreign(n, v, s);
    else
      note_unknown(v, n.name, reasons_[v.proto]);
  }
  add_outputs(std::move(n), v, s, std::move(types));
}

Node GraphReader::make_node(const NodeView& v, Scope& s, std::map<std::string, GraphPtr>& graphs) {
  Node n;
  n.domain = v.domain;
  n.op = v.proto->op_type();
  n.version = v.version;
  n.name = node_name(*v.proto, s);
  n.inputs = v.inputs;
  for (const auto& [name, a] : v.attrs) {
    if (attribute_type(*a) == onnx::AttributeProto::GRAPH) {
      GraphPtr& g = graphs[name];
      if (!g) g = read_subgraph(a->g(), s, nullptr);
      n.attrs.emplace(name, g);
    } else {
      n.attrs.emplace(name, read_attribute(*a, {source_, s.alias}, cat("'", name, "'")));
    }
  }
  if (n.is("Gradient", kTrainingDomain)) read_gradient_names(n, s);
  return n;
}

// xs, zs and y name values: make sure they are visible in this graph, under the names used here.
void GraphReader::read_gradient_names(Node& n, Scope& s) {
  auto resolve_name = [&](std::string& name) {
    const ValueId v = lookup(s, name);
    if (v < 0) validity::refuse(validity::gradient_of_nothing(name, "xs, zs or y"));
    name = s.graph->value_name(v);
  };
  for (auto& [key, a] : n.attrs) {
    if (key == "xs" || key == "zs") {
      if (auto* list = std::get_if<std::vector<std::string>>(&a))
        for (std::string& name : *list) resolve_name(name);
    } else if (key == "y") {
      if (auto* name = std::get_if<std::string>(&a)) resolve_name(*name);
    }
  }
}

void GraphReader::add_outputs(Node node, const NodeView& v, Scope& s, std::vector<TypeInfo> types) {
  types.resize(size_t(v.proto->output_size()));
  const NodeId id = NodeId(s.graph->nodes.size());
  for (int i = 0; i < v.proto->output_size(); ++i) {
    const std::string& name = v.proto->output(i);
    if (name.empty()) {
      node.outputs.push_back(kNone);
      continue;
    }
    const ValueId out = define(s, name);
    ValueDef& def = s.graph->value(out);
    def.producer = id;
    def.type = std::move(types[size_t(i)]);
    if (auto it = s.declared.find(name); it != s.declared.end())
      def.type = merge_types(def.type, read_type(*it->second));
    node.outputs.push_back(out);
  }
  const std::vector<ValueId> outputs = node.outputs;
  s.graph->nodes.push_back(std::move(node));
  const bool silent = v.schema == nullptr || !v.schema->has_type_and_shape_inference_function();
  if (silent && !outputs.empty() && outputs[0] != kNone &&
      s.graph->value(outputs[0]).type.kind == TypeInfo::Kind::kUnknown) {
    // our records know more than the schema; wrong shapes are reported when the graph is planned
    model_refusal([&] { infer_node(*s.graph, s.graph->nodes.back(), ops_); });
  }
  propagate(v, s, outputs);
}

void GraphReader::read_constant(const NodeView& v, Scope& s) {
  if (v.proto->output_size() != 1 || v.attrs.size() != 1)
    model_error("OT1051", cat("Constant needs one attribute and one output, but has ",
                              v.attrs.size(), " and ", v.proto->output_size()));
  const auto& [name, a] = v.attrs[0];
  const TensorContext c{source_, s.alias};
  Tensor t;
  if (name == "value" && a->has_t())
    t = read_tensor(a->t(), c);
  else if (name == "sparse_value" && a->has_sparse_tensor())
    t = read_sparse_as_dense(a->sparse_tensor(), c);
  else if (name == "value_int")
    t = Tensor::scalar<int64_t>(a->i());
  else if (name == "value_float")
    t = Tensor::scalar<float>(a->f());
  else if (name == "value_string")
    t = Tensor::scalar<std::string>(a->s());
  else if (name == "value_ints")
    t = Tensor::vector<int64_t>({a->ints().begin(), a->ints().end()});
  else if (name == "value_floats")
    t = Tensor::vector<float>({a->floats().begin(), a->floats().end()});
  else if (name == "value_strings")
    t = Tensor::vector<std::string>({a->strings().begin(), a->strings().end()});
  else
    model_error("OT1051", cat("Constant has no usable value: attribute '", name, "'"));
  const ValueId out = define(s, v.proto->output(0));
  ValueDef& def = s.graph->value(out);
  def.type = TypeInfo::tensor(t.dtype(), t.shape());
  def.constant = std::move(t);
}

}  // namespace onnxtrain
