// Which initializers a recipe trains.
#include <algorithm>

#include "convert/analysis.hpp"
#include "convert/names.hpp"
#include "convert/twin.hpp"
#include "onnx/kinds.hpp"
#include "op/carries.hpp"

namespace onnxtrain {

namespace {

// Inputs that are settings, not weights, although they are floating point.
bool is_setting(const Node& n, size_t input) {
  if (!n.domain.empty()) return false;
  if (n.op == "BatchNormalization") return input >= 3;
  if (n.op == "Dropout" || n.op == "Clip" || n.op == "Upsample" || n.op == "Resize" ||
      n.op == "OneHot")
    return input >= 1;
  if (n.op == "SoftmaxCrossEntropyLoss" || n.op == "NegativeLogLikelihoodLoss") return input >= 1;
  if (n.op == "Pad" || n.op == "CumSum" || n.op == "Trilu") return input >= 1;
  if (n.op == "QuantizeLinear" || n.op == "DequantizeLinear") return input >= 1;
  return false;
}

// Marks what a gradient of the marked values reaches, going backwards.
void reach(const Graph& g, const OpTable& ops, std::vector<char>& marked) {
  for (size_t k = g.nodes.size(); k-- > 0;) {
    const Node& n = g.nodes[k];
    bool any = false;
    for (ValueId v : n.outputs)
      any |= v != kNone && marked[size_t(v)] && carries_gradient(g.value(v).type);
    if (!any) continue;
    const Op* op = ops.find(n);
    if (op && !op->grad && op->no_grad) continue;  // nothing flows through it
    for (size_t i = 0; i < n.inputs.size(); ++i)
      if (n.inputs[i] != kNone && carries_gradient(g.value(n.inputs[i]).type) && !is_setting(n, i))
        marked[size_t(n.inputs[i])] = 1;
    for (const auto& [key, a] : n.attrs)
      if (const GraphPtr* sub = std::get_if<GraphPtr>(&a))
        for (const auto& c : (*sub)->captures)
          if (carries_gradient(g.value(c.outer).type)) marked[size_t(c.outer)] = 1;
  }
}

// Operators without derivative before the loss, in words, for the case that nothing can be trained.
std::string blockers(const Graph& g, const OpTable& ops, const std::vector<TermSource>& terms) {
  std::vector<char> needed(g.values.size(), 0);
  for (const TermSource& t : terms) needed[size_t(t.input)] = 1;
  std::string text;
  for (size_t k = g.nodes.size(); k-- > 0;) {
    const Node& n = g.nodes[k];
    bool any = false;
    for (ValueId v : n.outputs) any |= v != kNone && needed[size_t(v)];
    if (!any) continue;
    for (ValueId v : g.reads(n)) needed[size_t(v)] = 1;
    const Op* op = ops.find(n);
    if (op && !op->grad && op->no_grad)
      text += cat("\n  cannot train through operator '", n.op, "' (node '", n.name, "', opset ",
                  n.version, "): ", op->no_grad);
  }
  return text;
}

// Names of constants of a graph and of the bodies in it.
void add_constant_names(const Graph& g, std::vector<std::string>& names) {
  for (size_t k = 0; k < g.values.size(); ++k)
    if (g.values[k].constant.defined()) names.push_back(g.value_name(ValueId(k)));
  for (const Node& n : g.nodes)
    for (const auto& [key, a] : n.attrs)
      if (const GraphPtr* sub = std::get_if<GraphPtr>(&a)) add_constant_names(**sub, names);
}

// A mistyped name would train what was to be left alone, or not as it was to be trained.
void check_globs(const Graph& main, const Recipe& r) {
  std::vector<std::string> overrides;
  for (const ParameterOverride& x : r.optimizer.overrides) overrides.push_back(x.glob);
  if (r.freeze.empty() && r.only.empty() && overrides.empty()) return;
  std::vector<std::string> names;
  add_constant_names(main, names);
  auto check = [&](const char* key, const std::vector<std::string>& globs) {
    for (const std::string& glob : globs)
      if (std::none_of(names.begin(), names.end(),
                       [&](const std::string& name) { return glob_match(glob, name); }))
        usage_error("OT1250", cat(key, " '", glob, "' matches no initializer of the model"),
                    cat(suggestion(glob, names), "; with shapes:  onnxtrain info MODEL"));
  };
  check("freeze", r.freeze);
  check("only", r.only);
  check("overrides", overrides);
}

}  // namespace

bool is_chosen(const Recipe& r, const std::string& name) {
  if (!r.only.empty() && !any_glob_matches(r.only, name)) return false;
  return !any_glob_matches(r.freeze, name);
}

std::vector<char> running_statistics(const Graph& main) {
  std::vector<char> is(main.values.size(), 0);
  for (const Node& n : main.nodes)
    if (n.is("BatchNormalization"))
      for (size_t i = 3; i < 5 && i < n.inputs.size(); ++i)
        if (n.inputs[i] != kNone) is[size_t(n.inputs[i])] = 1;
  return is;
}

std::vector<ValueId> parameter_values(const Model& m, const Recipe& r,
                                      const std::vector<TermSource>& terms, const OpTable& ops) {
  const Graph& g = m.main;
  check_globs(g, r);
  std::vector<char> marked(g.values.size(), 0);
  for (const TermSource& t : terms) {
    marked[size_t(t.input)] = 1;
    for (ValueId v : t.file_inputs) marked[size_t(v)] = 1;
  }
  reach(g, ops, marked);
  std::vector<char> statistics = running_statistics(g);
  std::vector<ValueId> list;
  auto users = g.consumers();
  auto kinds = exported_kinds(m);
  // what the exporter says counts, then what the tensor looks like
  auto is_weight = [&](size_t k) {
    auto kind = kinds.find(g.values[k].name);
    if (kind != kinds.end()) return kind->second == "PARAMETER";
    return !is_number_of_the_program(g, ValueId(k), users[k]);
  };
  bool any_reached = false;
  for (size_t k = 0; k < g.values.size(); ++k) {
    const ValueDef& d = g.values[k];
    if (!d.initializer || !d.constant.defined() || !marked[k] || statistics[k]) continue;
    if (!dtype_is_differentiable(d.constant.dtype()) || d.constant.size() == 0) continue;
    bool asked_for = std::find(r.only.begin(), r.only.end(), d.name) != r.only.end();
    if (!asked_for && !is_weight(k)) continue;
    any_reached = true;
    if (is_chosen(r, d.name)) list.push_back(ValueId(k));
  }
  if (!list.empty()) return list;
  if (any_reached)
    usage_error("OT1240", "freeze and only leave no parameter to train",
                "look at the names:  onnxtrain info MODEL");
  std::string why = blockers(g, ops, terms);
  model_error("OT1203",
              cat("the loss on output '", g.value_name(terms.at(0).output),
                  "' depends on no trainable parameter", why),
              why.empty() ? "weights must be floating-point initializers of the main graph"
                          : "train on an earlier tensor");
}

std::vector<std::string> trainable_parameters(const Model& source, const Recipe& r) {
  const OpTable& ops = all_ops();
  Model m = source;
  restore_parameters(m);
  std::vector<TermSource> terms;
  for (const LossTerm& t : terms_of(r)) terms.push_back(resolve_term(m, t, ops));
  std::vector<std::string> names;
  for (ValueId v : parameter_values(m, r, terms, ops)) names.push_back(m.main.value_name(v));
  return names;
}

}  // namespace onnxtrain
