// Function expansion in place: functions of the model, and operators that ONNX defines as
// functions and that have no kernel of their own.
#include <algorithm>

#include "onnx/defs/schema.h"
#include "onnx/functions/bodies.hpp"
#include "onnx/functions/contrib.hpp"
#include "onnx/message/libonnx_call.hpp"
#include "onnx/message/validity.hpp"
#include "onnx/read/reader.hpp"

namespace onnxtrain {
namespace {

std::string function_id(const std::string& domain, const std::string& name,
                        const std::string& overload) {
  return cat(domain, ":", name, ":", overload);
}

// Counts nodes after expansion without expanding, so that a small file that unfolds into billions
// of nodes is refused at once; finds recursion on the way.
class ExpandedSize {
 public:
  ExpandedSize(const std::unordered_map<std::string, const onnx::FunctionProto*>& functions,
               const LoadLimits& limits)
      : functions_(functions), limits_(limits) {}

  template <class Nodes>
  int64_t count(const Nodes& nodes, int depth) {
    if (depth > limits_.nesting)
      model_error("OT1003", cat("functions and subgraphs are nested deeper than ", limits_.nesting,
                                " levels"));
    int64_t total = 0;
    for (const onnx::NodeProto& n : nodes) {
      total += 1;
      for (const auto& a : n.attribute())
        if (a.has_g()) total += count(a.g().node(), depth + 1);
      auto it = functions_.find(function_id(normal_domain(n.domain()), n.op_type(), n.overload()));
      if (it != functions_.end()) total += function(it->first, *it->second, depth + 1);
      if (total > limits_.nodes)
        model_error("OT1003", cat("the model has more than ", limits_.nodes,
                                  " nodes after its functions are expanded, which is the limit"));
    }
    return total;
  }

 private:
  struct Memo {
    int64_t size = -1;  // -1: being counted
    int depth = 0;
  };
  int64_t function(const std::string& id, const onnx::FunctionProto& f, int depth) {
    if (auto it = memo_.find(id); it != memo_.end()) {
      if (it->second.size < 0)
        model_error("OT1042", cat("the function ", f.domain(), ".", f.name(), " calls itself"),
                    "functions of an ONNX model must not be recursive");
      return it->second.size;
    }
    memo_[id] = {};
    const int64_t n = count(f.node(), depth);
    memo_[id].size = n;
    return n;
  }

  const std::unordered_map<std::string, const onnx::FunctionProto*>& functions_;
  const LoadLimits& limits_;
  std::unordered_map<std::string, Memo> memo_;
};

}  // namespace

void GraphReader::check_expanded_size() {
  ExpandedSize sizes(functions_, source_->limits);
  sizes.count(source_->proto.graph().node(), 0);
  for (const auto& t : source_->proto.training_info()) {
    sizes.count(t.initialization().node(), 0);
    sizes.count(t.algorithm().node(), 0);
  }
}

const onnx::FunctionProto* GraphReader::local_function(const NodeView& v) const {
  if (functions_.empty()) return nullptr;
  auto it = functions_.find(function_id(v.domain, v.proto->op_type(), v.proto->overload()));
  return it == functions_.end() ? nullptr : it->second;
}

bool GraphReader::expand(const NodeView& v, Scope& s) {
  const OpEntry entry = find_op(v.domain, v.proto->op_type(), v.version);
  const onnx::FunctionProto* local = local_function(v);
  const bool stands = keep ? keep(v.domain, v.proto->op_type()) : entry.op != nullptr;
  // A function of the file means what the file says, even under the name of a standard operator;
  // in our own domain the kernel is the same thing, faster.
  if (local != nullptr && (!stands || v.domain != kOwnDomain)) {
    expand_body(v, *local, s, true);
    return true;
  }
  if (entry.op == nullptr && is_contrib(v.domain, v.proto->op_type())) return expand_contrib(v, s);
  if (stands || entry.schema == nullptr) return false;
  const onnx::OpSchema& schema = *entry.schema;
  if (const onnx::FunctionProto* body = corrected_body(v.domain, v.proto->op_type())) {
    expand_body(v, *body, s, false);
    return true;
  }
  if (schema.HasFunction()) {
    // without validation: the body runs at the opset it was written for, not at the caller's
    const onnx::FunctionProto* f = schema.GetFunction(v.version, false);
    // a body that was written later than the operator means the same
    if (f == nullptr) f = schema.GetFunction(schema.function_opset_versions().front(), false);
    if (f == nullptr) return false;
    expand_body(v, *f, s, false);
    return true;
  }
  if (!schema.HasContextDependentFunction()) return false;
  onnx::NodeProto node = *v.proto;
  node.clear_attribute();
  for (const auto& [name, a] : v.attrs) {
    auto* copy = node.add_attribute();
    *copy = *a;
    copy->set_name(name);
  }
  std::vector<onnx::TypeProto> types;
  for (size_t i = 0; i < v.inputs.size(); ++i) {
    types.emplace_back();
    if (v.inputs[i] == kNone) {
      node.set_input(int(i), "");
      continue;
    }
    write_type(s.graph->value(v.inputs[i]).type, types.back());
    if (types.back().value_case() == onnx::TypeProto::VALUE_NOT_SET) return false;
  }
  auto body = std::make_unique<onnx::FunctionProto>();
  const std::vector<int> versions = schema.context_dependent_function_opset_versions();
  int version = versions.front();
  for (int k : versions)
    if (k <= v.version) version = std::max(version, k);
  bool built = false;
  libonnx_accepts([&] {
    if (!schema.Deprecated()) schema.Verify(node);
    built = schema.BuildContextDependentFunction(onnx::FunctionBodyBuildContextImpl(node, types),
                                                 *body, version);
  });
  if (!built) return false;  // reported as unknown: no kernel and no body for these inputs
  built_.push_back(std::move(body));
  expand_body(v, *built_.back(), s, false);
  return true;
}

bool GraphReader::expand_contrib(const NodeView& v, Scope& s) {
  ContribNode n;
  n.op = v.proto->op_type();
  n.attrs = v.attrs;
  for (const ValueId i : v.inputs) {
    const TypeInfo t = i == kNone ? TypeInfo() : s.graph->value(i).type;
    n.types.push_back(t.elem);
    n.ranks.push_back(i == kNone ? -2 : t.is_tensor() && t.shape ? int(t.shape->size()) : -1);
  }
  for (const std::string& o : v.proto->output()) n.used.push_back(!o.empty());
  std::string why;
  std::unique_ptr<onnx::FunctionProto> body = contrib_body(n, why);
  if (!body) {
    reasons_[v.proto] = why;
    return false;
  }
  built_.push_back(std::move(body));
  expand_body(v, *built_.back(), s, false);
  return true;
}

void GraphReader::expand_body(const NodeView& v, const onnx::FunctionProto& f, Scope& s,
                              bool in_source) {
  Frame frame;
  frame.caller = s.frame;
  frame.function = function_id(normal_domain(f.domain()), f.name(), f.overload());
  frame.depth = s.frame ? s.frame->depth + 1 : 1;
  for (const Frame* c = s.frame; c != nullptr; c = c->caller)
    if (c->function == frame.function)
      model_error("OT1042", cat("the function ", f.domain(), ".", f.name(), " calls itself"),
                  "functions of an ONNX model must not be recursive");
  if (frame.depth > source_->limits.nesting)
    model_error("OT1003",
                cat("functions are nested deeper than ", source_->limits.nesting, " levels"));
  for (const auto& [name, a] : v.attrs) frame.attrs.emplace(name, a);
  for (const auto& a : f.attribute_proto()) frame.attrs.emplace(a.name(), &a);
  if (!in_source && v.schema != nullptr)
    for (const auto& [name, a] : v.schema->attributes())
      if (a.default_value.type() != onnx::AttributeProto::UNDEFINED)
        frame.attrs.emplace(name, &a.default_value);

  OpsetMap imports;
  for (const auto& o : f.opset_import()) imports[normal_domain(o.domain())] = int(o.version());
  for (const auto& [domain, version] : *s.opsets) imports.emplace(domain, version);
  Scope b;
  b.graph = s.graph;
  b.facts = s.facts;
  b.opsets = &imports;
  b.frame = &frame;
  b.alias = in_source && s.alias;
  b.prefix = node_name(*v.proto, s) + "/";
  b.depth = s.depth;
  // a graph given as attribute belongs to the caller and sees the caller's names
  for (const auto& [name, a] : v.attrs)
    if (a->has_g()) b.parent = &s;
  if (int(v.inputs.size()) > f.input_size())
    model_error("OT1053", cat("function ", f.domain(), ".", f.name(), " takes ", f.input_size(),
                              " inputs, but ", v.inputs.size(), " are given"));
  for (int i = 0; i < f.input_size(); ++i)
    b.names[f.input(i)] = size_t(i) < v.inputs.size() ? v.inputs[size_t(i)] : kNone;
  expand_into(v, {f.output().begin(), f.output().end()}, f.node(), s, b);
}

// Reads `nodes` in scope `b` and gives the values called `results` there the names that the
// node's outputs have in scope `s`.
void GraphReader::expand_into(const NodeView& v, const std::vector<std::string>& results,
                              const google::protobuf::RepeatedPtrField<onnx::NodeProto>& nodes,
                              Scope& s, Scope& b) {
  const int wanted = v.proto->output_size();
  if (size_t(wanted) > results.size())
    model_error("OT1053", cat(v.proto->op_type(), " has ", results.size(), " outputs, but ", wanted,
                              " are used"));
  std::vector<std::string> final_names(static_cast<size_t>(wanted));
  for (int i = 0; i < wanted; ++i) {
    const std::string& actual = v.proto->output(i);
    if (actual.empty()) continue;
    if (s.names.count(actual) != 0)
      validity::refuse(validity::defined_twice(actual, cat("in graph '", s.graph->name, "'")));
    auto it = s.rename.find(actual);
    final_names[size_t(i)] = it != s.rename.end() ? it->second
                             : s.prefix.empty()   ? actual
                                                  : fresh_name(s.prefix + actual);
    // a result that is an input of the function gets its name through Identity below
    if (b.names.count(results[size_t(i)]) == 0)
      b.rename.emplace(results[size_t(i)], final_names[size_t(i)]);
  }
  read_nodes(nodes, b);
  for (int i = 0; i < wanted; ++i) {
    const std::string& actual = v.proto->output(i);
    if (actual.empty()) continue;
    auto found = b.names.find(results[size_t(i)]);
    if (found == b.names.end() || found->second == kNone)
      validity::refuse(validity::never_computed(results[size_t(i)]), v.proto->op_type());
    ValueId id = found->second;
    if (s.graph->value_name(id) != final_names[size_t(i)]) {
      Node n;
      n.op = "Identity";
      auto import = b.opsets->find("");
      n.version = import == b.opsets->end() ? 13 : import->second;
      n.name = fresh_name(b.prefix + "Identity");
      n.inputs = {id};
      const ValueId copy = s.graph->add_value(final_names[size_t(i)], s.graph->value(id).type);
      n.outputs = {copy};
      s.graph->value(copy).producer = NodeId(s.graph->nodes.size());
      s.graph->nodes.push_back(std::move(n));
      id = copy;
    }
    if (!s.names.emplace(actual, id).second)
      validity::refuse(validity::defined_twice(actual, cat("in graph '", s.graph->name, "'")));
    if (auto it = s.declared.find(actual); it != s.declared.end()) {
      ValueDef& def = s.graph->value(id);
      def.type = merge_types(def.type, read_type(*it->second));
    }
  }
}

// ONNX 1.7 called the main graph from an algorithm by a node: its nodes are read again here, its
// inputs and outputs bound by position, its initializers shared.
void GraphReader::expand_graph_call(const NodeView& v, Scope& s) {
  const onnx::AttributeProto* name = v.attr("graph_name");
  if (main_proto == nullptr || (name != nullptr && name->s() != main_proto->name()))
    model_error("OT1054", cat("GraphCall of '", name ? name->s() : "",
                              "': only an algorithm may call, and only the main graph"));
  if (s.frame != nullptr && s.frame->function == "GraphCall")
    model_error("OT1054", "the main graph must not call itself");
  Frame frame;
  frame.caller = s.frame;
  frame.function = "GraphCall";
  Scope b;
  b.graph = s.graph;
  b.facts = s.facts;
  b.parent = &s;  // initializers are found through the algorithm's scope in the main graph
  b.opsets = s.opsets;
  b.frame = &frame;
  b.prefix = node_name(*v.proto, s) + "/";
  b.depth = s.depth + 1;
  if (int(v.inputs.size()) > main_proto->input_size())
    model_error("OT1053", cat("GraphCall gives ", v.inputs.size(), " inputs to a graph with ",
                              main_proto->input_size()));
  std::unordered_set<std::string> stored;
  for (const auto& t : main_proto->initializer()) stored.insert(t.name());
  for (const auto& t : main_proto->sparse_initializer()) stored.insert(t.values().name());
  for (int i = 0; i < main_proto->input_size(); ++i) {
    const std::string& formal = main_proto->input(i).name();
    if (size_t(i) < v.inputs.size() && v.inputs[size_t(i)] != kNone)
      b.names[formal] = v.inputs[size_t(i)];
    else if (stored.count(formal) == 0)
      model_error("OT1053", cat("GraphCall does not give the input '", formal, "'"));
  }
  std::vector<std::string> results;
  for (const auto& o : main_proto->output()) results.push_back(o.name());
  expand_into(v, results, main_proto->node(), s, b);
}

}  // namespace onnxtrain
