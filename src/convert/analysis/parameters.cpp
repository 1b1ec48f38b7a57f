// Which initializers a recipe trains.
#include <algorithm>

#include "convert/analysis.hpp"
#include "convert/analysis/bad_values.hpp"
#include "convert/analysis/roles.hpp"
#include "convert/step/names.hpp"
#include "convert/step/training_mode.hpp"

namespace onnxtrain {

namespace {

// Operators of trees, encoders and the like before the loss, in words, for the case that nothing
// can be trained.
std::string blockers(const Graph& g, const OpTable& ops, const std::vector<TermSource>& terms) {
  std::vector<char> needed(g.values.size(), 0);
  for (const TermSource& t : terms) needed[size_t(t.input)] = 1;
  for (size_t k = g.nodes.size(); k-- > 0;) {
    const Node& n = g.nodes[k];
    bool any = false;
    for (ValueId v : n.outputs) any |= v != kNone && needed[size_t(v)];
    if (!any) continue;
    for (ValueId v : g.reads(n)) needed[size_t(v)] = 1;
    if (n.domain != kMlDomain) continue;
    const Op* op = ops.find(n);
    if (op && !op->grad && op->no_grad)
      return cat(": the gradient of the loss stops at ", n.label(), ", because ", op->no_grad);
    return cat("; the numbers of ", n.label(), " are attributes that do not train");
  }
  return {};
}

bool has_weights(const Graph& g) {
  for (const ValueDef& d : g.values)
    if (d.constant.defined() && d.constant.size() > 1 &&
        dtype_is_differentiable(d.constant.dtype()))
      return true;
  return false;
}

// Floating-point tensors in the bodies of If, Loop and Scan.
bool has_weights_in_bodies(const Graph& g) {
  for (const Node& n : g.nodes)
    for (const auto& [key, a] : n.attrs)
      if (const GraphPtr* sub = std::get_if<GraphPtr>(&a))
        if (has_weights(**sub) || has_weights_in_bodies(**sub)) return true;
  return false;
}

[[noreturn]] void nothing_trains(const Model& m, const Recipe& r,
                                 const std::vector<TermSource>& terms, const OpTable& ops,
                                 const std::vector<LeftOut>& left, const std::string& constants) {
  const Graph& g = m.main;
  const std::string what = cat("the loss on output '", g.value_name(terms.at(0).output),
                               "' depends on no trainable parameter");
  if (!left.empty()) {  // weights are there
    std::string text;
    for (const LeftOut& l : left) text += "\n  " + l.text;
    model_error("OT1203", what + text, left[0].hint.substr(0, left[0].hint.find(';')));
  }
  if (std::string why = blockers(g, ops, terms); !why.empty())
    model_error("OT1203", what + why,
                "docs/sklearn.md lists the models of scikit-learn whose attributes train");
  if (has_weights_in_bodies(g))
    model_error("OT1203",
                what + ": its weights are nodes Constant in the bodies of If, Loop or Scan",
                "make them initializers of the body or of the main graph: those train");
  if (!constants.empty())
    model_error("OT1203", cat(what, "; initializers such as ", constants, " are constants"),
                r.only.empty() ? "to train a constant all the same, name it:  --only NAME"
                               : "no gradient reaches what --only names: the names of weights are "
                                 "in  onnxtrain info MODEL --weights");
  model_error("OT1203", what + ": the model has no weights, it computes with its inputs alone",
              "a model that trains has floating-point initializers in its main graph");
}

// Names of constants of a graph and of the bodies in it.
void add_constant_names(const Graph& g, std::vector<std::string>& names) {
  for (size_t k = 0; k < g.values.size(); ++k)
    if (g.values[k].constant.defined()) names.push_back(g.value_name(ValueId(k)));
  for (const Node& n : g.nodes)
    for (const auto& [key, a] : n.attrs)
      if (const GraphPtr* sub = std::get_if<GraphPtr>(&a)) add_constant_names(**sub, names);
}

// What a pattern that matches nothing may mean: several names with commas, or the layer's name
// alone.
std::string other_pattern(const std::string& key, const std::string& glob,
                          const std::vector<std::string>& names) {
  auto matches = [&](const std::string& pattern) {
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return glob_match(pattern, name); });
  };
  if (glob.find(',') != std::string::npos) {
    std::string all;
    bool sound = true;
    for (size_t at = 0; at <= glob.size();) {
      const size_t end = std::min(glob.find(',', at), glob.size());
      const std::string part = glob.substr(at, end - at);
      sound = sound && matches(part);
      all += cat(" ", part);
      at = end + 1;
    }
    if (sound) return cat("several are given with blanks between them:  --", key, all);
  }
  for (const char* end : {".*", "/*", "_*", "*"})
    if (matches(glob + end)) return cat("all of the layer:  --", key, " '", glob, end, "'");
  return suggestion(glob, names);
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
                    cat(other_pattern(key, glob, names), "; with shapes:  onnxtrain info MODEL"));
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
                                      const std::vector<TermSource>& terms, const OpTable& ops,
                                      std::vector<LeftOut>* left_out) {
  const Graph& g = m.main;
  check_globs(g, r);
  const std::vector<InitializerRole> roles = initializer_roles(m, r, terms, ops);
  const std::vector<LeftOut> left = onnxtrain::left_out(m, roles);
  std::vector<ValueId> list;
  bool any_frozen = false;
  std::string constants;
  for (const InitializerRole& x : roles) {
    if (x.role == Role::kTrained) list.push_back(x.value);
    any_frozen |= x.role == Role::kFrozen;
    if (x.role == Role::kConstant && constants.empty())
      constants = cat("'", g.value_name(x.value), "' (", x.because, ")");
  }
  if (r.strict && !left.empty()) {
    std::string text = left[0].text;
    for (size_t k = 1; k < left.size(); ++k) text += "\n  " + left[k].text;
    model_error("OT1285", text, left[0].hint);
  }
  if (left_out) *left_out = left;
  if (!list.empty()) {
    check_values(m, r, roles, left_out);
    return list;
  }
  if (any_frozen)
    usage_error("OT1240", "freeze and only leave no parameter to train",
                "look at the names:  onnxtrain info MODEL");
  nothing_trains(m, r, terms, ops, left, constants);
}

std::vector<std::string> trainable_parameters(const Model& source, const Recipe& r) {
  const OpTable& ops = all_ops();
  Model m = source;
  restore_parameters(m);
  std::vector<TermSource> terms;
  for (const LossTerm& t : terms_of(m, r)) terms.push_back(resolve_term(m, t, ops));
  std::vector<std::string> names;
  for (ValueId v : parameter_values(m, r, terms, ops)) names.push_back(m.main.value_name(v));
  return names;
}

}  // namespace onnxtrain
