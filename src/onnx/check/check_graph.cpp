// Validity of a graph: names, single assignment, order, tensors, operators and their attributes.
#include <algorithm>

#include "core/closest.hpp"
#include "core/text.hpp"
#include "onnx/check/checker.hpp"
#include "onnx/defs/schema.h"
#include "onnx/functions/contrib.hpp"
#include "onnx/message/libonnx_call.hpp"
#include "onnx/message/tensors.hpp"
#include "onnx/read/reader.hpp"
#include "op/foreign.hpp"

namespace onnxtrain {
namespace {

std::string operator_label(const std::string& domain, const std::string& op, int version) {
  return cat(domain.empty() ? "ai.onnx" : domain, ".", op, " (opset ", version, ")");
}

template <class Strings>
bool contains(const Strings& list, const std::string& s) {
  return std::find(list.begin(), list.end(), s) != list.end();
}

}  // namespace

// Which node of a list makes a name, to tell "too late" from "nowhere" and order from cycle.
struct GraphCheck::Order {
  std::unordered_map<std::string, int> maker;
  std::unordered_set<int> in_cycle;

  template <class Nodes>
  explicit Order(const Nodes& nodes) {
    for (int i = 0; i < nodes.size(); ++i)
      for (const auto& o : nodes.Get(i).output())
        if (!o.empty()) maker.emplace(o, i);
    find_cycles(nodes);
  }

  // Nodes that remain when nodes whose inputs are all made are taken away again and again.
  template <class Nodes>
  void find_cycles(const Nodes& nodes) {
    std::vector<int> waiting(size_t(nodes.size()), 0), ready;
    std::vector<std::vector<int>> users(static_cast<size_t>(nodes.size()));
    for (int i = 0; i < nodes.size(); ++i) {
      for (const auto& in : nodes.Get(i).input())
        if (auto it = maker.find(in); it != maker.end()) {
          users[size_t(it->second)].push_back(i);
          ++waiting[size_t(i)];
        }
      if (waiting[size_t(i)] == 0) ready.push_back(i);
    }
    while (!ready.empty()) {
      const int i = ready.back();
      ready.pop_back();
      for (int u : users[size_t(i)])
        if (--waiting[size_t(u)] == 0) ready.push_back(u);
    }
    for (int i = 0; i < nodes.size(); ++i)
      if (waiting[size_t(i)] > 0) in_cycle.insert(i);
  }
};

GraphCheck::GraphCheck(const ModelSource& source, const OpTable& ops, Findings& out)
    : source_(source), ops_(ops), out_(out) {
  for (const auto& f : source.proto.functions())
    functions_.insert(cat(normal_domain(f.domain()), ":", f.name(), ":", f.overload()));
}

void GraphCheck::problem(const Place& p, const validity::Problem& x, const std::string& node) {
  out_.error(p.code.empty() ? x.code : p.code, p.rule,
             cat(p.where, ": ", node.empty() ? "" : node + ": ", x.message), x.hint);
}

void GraphCheck::define(const std::string& name, NameScope& names, const Place& p,
                        const std::string& what) {
  if (name.empty()) return problem(p, validity::no_name(what));
  if (int64_t(name.size()) > source_.limits.name_bytes)
    return problem(p, validity::long_name(name.size(), source_.limits.name_bytes));
  if (!names.names.insert(name).second)
    problem(p, validity::defined_twice(name, what));
  else if (names.parent != nullptr && names.parent->has(name) && !p.in_function)
    out_.warning("OT1043", p.rule,
                 cat(p.where, ": '", name, "' hides a value of the same name outside"));
}

void GraphCheck::graph(const onnx::GraphProto& g, NameScope& names, const Place& p) {
  if (p.depth > source_.limits.nesting)
    return problem(p, validity::too_deep(source_.limits.nesting));
  tensors(g, names, p);
  nodes(g.node(), names, p);
  for (const auto& o : g.output())
    if (!names.has(o.name())) problem(p, validity::never_computed(o.name()));
}

void GraphCheck::tensors(const onnx::GraphProto& g, NameScope& names, const Place& p) {
  NameScope stored;
  for (const auto& t : g.initializer()) {
    define(t.name(), names, p, "an initializer");
    stored.names.insert(t.name());
    out_.guard(p.rule, p.where, [&] { check_tensor(t, source_.limits); });
  }
  for (const auto& t : g.sparse_initializer()) {
    define(t.values().name(), names, p, "a sparse initializer");
    stored.names.insert(t.values().name());
    out_.guard(p.rule, p.where, [&] { check_sparse(t, source_.limits); });
  }
  std::unordered_set<std::string> inputs;
  for (const auto& i : g.input()) {
    if (!inputs.insert(i.name()).second)
      problem(p, validity::two_inputs(i.name()));
    else if (stored.names.count(i.name()) == 0)
      define(i.name(), names, p, "an input");
    if (p.depth == 0 && !i.has_type()) problem(p, validity::no_type(i.name()));
    if (i.type().has_tensor_type() &&
        i.type().tensor_type().shape().dim_size() > source_.limits.rank)
      problem(p, validity::too_many_dimensions(i.name(), source_.limits.rank));
  }
}

template <class Nodes>
void GraphCheck::nodes(const Nodes& list, NameScope& names, const Place& p) {
  const Order order(list);
  for (int i = 0; i < list.size() && !out_.full(); ++i) {
    const onnx::NodeProto& n = list.Get(i);
    inputs(n, names, p, order);
    check_operator(n, p);
    attributes(n, names, p);
    if (n.op_type() == "Gradient" && n.domain() == kTrainingDomain) gradient(n, names, p);
    outputs(n, names, p);
  }
}

void GraphCheck::inputs(const onnx::NodeProto& n, const NameScope& names, const Place& p,
                        const Order& order) {
  for (const auto& in : n.input()) {
    if (in.empty() || names.has(in)) continue;
    auto it = order.maker.find(in);
    if (it == order.maker.end()) {
      validity::Problem x = validity::undefined(validity::node_label(n), in);
      std::vector<std::string> known;
      for (const NameScope* s = &names; s != nullptr && known.size() < 10000; s = s->parent)
        known.insert(known.end(), s->names.begin(), s->names.end());
      for (const auto& [name, node] : order.maker) known.push_back(name);
      std::sort(known.begin(), known.end());
      const std::string near = closest(in, known);
      x.hint = near.empty() ? "declare it as an input of the graph, or add the node or initializer "
                              "that makes it"
                            : cat("did you mean '", near, "'?");
      problem(p, x);
    } else if (order.in_cycle.count(it->second) != 0) {
      problem(p, validity::in_cycle(validity::node_label(n), in));
    } else {
      problem(p, validity::behind_cycle(validity::node_label(n), in));
    }
  }
}

void GraphCheck::outputs(const onnx::NodeProto& n, NameScope& names, const Place& p) {
  for (const auto& o : n.output())
    if (!o.empty()) define(o, names, p, cat("an output of ", validity::node_label(n)));
}

void GraphCheck::check_operator(const onnx::NodeProto& n, const Place& p) {
  const std::string domain = normal_domain(n.domain());
  auto import = p.imports->find(domain);
  if (import == p.imports->end()) {
    out_.error("OT1302", "C2",
               cat(p.where, ": ", validity::node_label(n), " is of domain '",
                   domain.empty() ? "ai.onnx" : domain, "', which opset_import does not name"),
               cat("add an opset_import of ", domain.empty() ? "ai.onnx" : domain));
    return;
  }
  const int version = import->second;
  if (functions_.count(cat(domain, ":", n.op_type(), ":", n.overload())) != 0) return;
  const bool ours = ops_.find(domain, n.op_type(), version) != nullptr;
  const onnx::OpSchema* schema = onnx::OpSchemaRegistry::Schema(n.op_type(), version, domain);
  if (schema == nullptr) {
    if (ours || is_contrib(domain, n.op_type())) return;
    if (foreign_runner() && domain != kTrainingDomain && domain != kOwnDomain) return;
    if (n.op_type() == "GraphCall" && p.is_algorithm) return;
    if (domain == kTrainingDomain) {
      out_.error("OT1319", "C19",
                 cat(p.where, ": ", validity::node_label(n), ": the domain ", domain,
                     " has no operator ", n.op_type()),
                 "it has Gradient, Adagrad, Adam and Momentum");
      return;
    }
    auto [it, fresh] = unknown_.try_emplace(operator_label(domain, n.op_type(), version));
    if (fresh) unknown_order_.push_back(it->first);
    it->second.push_back(validity::node_label(n));
    return;
  }
  // GroupNormalization of opset 18 was withdrawn, but is in files: the standard still has its body
  const bool defined = schema->HasFunction() || schema->HasContextDependentFunction();
  if (schema->Deprecated() && defined) {
    out_.warning(
        "OT1023", p.rule,
        cat(p.where, ": ", validity::node_label(n), ": the standard withdrew this form of ",
            n.op_type(), " (opset ", schema->since_version(), "); it is still obeyed"),
        "export the model again at a newer opset");
    return;
  }
  std::string text = libonnx_complaint([&] { schema->Verify(n); });
  if (text.empty()) return;
  text = text.substr(0, std::min(text.find('\n'), size_t(300)));
  problem(p, {"OT1022", text, {}}, validity::node_label(n));
}

void GraphCheck::attributes(const onnx::NodeProto& n, NameScope& names, const Place& p) {
  std::unordered_set<std::string> seen;
  for (const auto& a : n.attribute()) {
    if (!seen.insert(a.name()).second)
      problem(p, validity::attribute_twice(a.name()), validity::node_label(n));
    if (!a.ref_attr_name().empty()) {
      if (!p.in_function)
        problem(p, validity::reference_outside_function(a.name(), a.ref_attr_name()),
                validity::node_label(n));
      continue;
    }
    const std::string wrong =
        attribute_problem(normal_domain(n.domain()), n.op_type(), a.name(), a);
    if (!wrong.empty()) problem(p, validity::wrong_attribute(wrong), validity::node_label(n));
    const std::string where = cat(p.where, ", ", validity::node_label(n));
    if (a.has_t()) out_.guard(p.rule, where, [&] { check_tensor(a.t(), source_.limits); });
    for (const auto& t : a.tensors())
      out_.guard(p.rule, where, [&] { check_tensor(t, source_.limits); });
    if (a.has_sparse_tensor())
      out_.guard(p.rule, where, [&] { check_sparse(a.sparse_tensor(), source_.limits); });
    if (!a.has_g()) continue;
    NameScope inner;
    inner.parent = &names;
    graph(a.g(), inner,
          {cat(where, " ", a.name()), p.rule, p.code, p.imports, p.in_function, p.depth + 1});
  }
}

// C13-C15.
void GraphCheck::gradient(const onnx::NodeProto& n, const NameScope& names, const Place& p) {
  const onnx::AttributeProto *xs = nullptr, *zs = nullptr, *y = nullptr;
  for (const auto& a : n.attribute()) {
    if (a.name() == "xs") xs = &a;
    if (a.name() == "zs") zs = &a;
    if (a.name() == "y") y = &a;
  }
  const std::string where = cat(p.where, ": ", validity::node_label(n));
  const int nx = xs ? xs->strings_size() : 0, nz = zs ? zs->strings_size() : 0;
  if (n.input_size() != nx + nz)
    out_.error("OT1313", "C13",
               cat(where, " has ", n.input_size(), " inputs, but xs and zs name ", nx, " + ", nz),
               "give one input for each name in xs, then one for each in zs");
  if (n.output_size() > nx)
    out_.error("OT1314", "C14",
               cat(where, " has ", n.output_size(), " outputs for ", nx, " names in xs"),
               "at most one output for each name in xs; an output may be empty");
  auto exists = [&](const std::string& name, const char* list) {
    if (names.has(name)) return;
    const validity::Problem x = validity::gradient_of_nothing(name, list);
    out_.error(x.code, "C15", cat(where, ": ", x.message), x.hint);
  };
  if (xs != nullptr)
    for (const auto& s : xs->strings()) exists(s, "xs");
  if (zs != nullptr)
    for (const auto& s : zs->strings()) exists(s, "zs");
  if (y != nullptr)
    exists(y->s(), "y");
  else
    out_.error("OT1315", "C15", cat(where, " has no y"));
}

void GraphCheck::functions() {
  std::unordered_set<std::string> seen;
  for (const auto& f : source_.proto.functions()) {
    const std::string where = cat("function ", f.domain(), ".", f.name());
    if (!seen.insert(cat(normal_domain(f.domain()), ":", f.name(), ":", f.overload())).second)
      out_.error("OT1043", "", cat(where, " is defined twice"));
    Imports imports = imports_of(f.opset_import());
    if (imports.empty()) imports = imports_of(source_.proto.opset_import());
    const Place p{where, "", "", &imports, true, 0};
    NameScope names;
    for (const auto& i : f.input()) define(i, names, p, "an input");
    nodes(f.node(), names, p);
    for (const auto& o : f.output())
      if (!names.has(o)) problem(p, validity::never_computed(o));
  }
}

void GraphCheck::report_unknown() {
  if (out_.keep_unknown) return;
  for (const std::string& op : unknown_order_) {
    const auto& nodes = unknown_[op];
    std::string text = cat("unknown operator ", op, " in ");
    for (size_t i = 0; i < nodes.size() && i < 3; ++i) text += cat(i ? ", " : "", nodes[i]);
    if (nodes.size() > 3) text += cat(" and ", nodes.size() - 3, " more");
    out_.error("OT1101", "", text,
               "run it in ONNX Runtime:  --fallback onnxruntime   or check the domain and the "
               "opset_import, or add the operator to the model as a local function");
  }
}

}  // namespace onnxtrain
