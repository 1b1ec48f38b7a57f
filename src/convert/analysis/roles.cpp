// Roles of initializers: the rule for constants, how far the gradient of the loss comes, and what
// the recipe leaves alone.
#include "convert/analysis/roles.hpp"

#include <algorithm>

#include "convert/analysis/attribute_weights.hpp"
#include "convert/analysis/constants.hpp"
#include "convert/step/names.hpp"
#include "core/shell.hpp"
#include "onnx/kinds.hpp"
#include "op/quantised.hpp"

namespace onnxtrain {

namespace {

// Statistics that are computed are arithmetic like any other.
bool is_stored_statistic(const Graph& g, const Node& n, size_t input) {
  return n.is("BatchNormalization") && input >= 3 && g.value(n.inputs[input]).constant.defined();
}

bool carries(const Graph& g, ValueId v) { return v != kNone && carries_gradient(g, v); }

// What the gradients of `from` reach, going backwards; `any_way`: what they are computed from.
std::vector<char> reached(const Graph& g, const OpTable& ops, const std::vector<ValueId>& from,
                          bool any_way) {
  std::vector<char> marked(g.values.size(), 0);
  for (ValueId v : from) marked[size_t(v)] = 1;
  for (size_t k = g.nodes.size(); k-- > 0;) {
    const Node& n = g.nodes[k];
    if (any_way) {
      const bool any = std::any_of(n.outputs.begin(), n.outputs.end(),
                                   [&](ValueId v) { return v != kNone && marked[size_t(v)]; });
      if (any)
        for (ValueId v : g.reads(n)) marked[size_t(v)] = 1;
      continue;
    }
    const bool any = std::any_of(n.outputs.begin(), n.outputs.end(),
                                 [&](ValueId v) { return carries(g, v) && marked[size_t(v)]; });
    if (!any) continue;
    for (size_t i = 0; i < n.inputs.size(); ++i)
      if (carries(g, n.inputs[i]) && stops_at(g, n, i, ops).empty())
        marked[size_t(n.inputs[i])] = 1;
    const Op* op = ops.find(n);
    if (op && !op->grad && op->no_grad) continue;
    for (const auto& [key, a] : n.attrs)
      if (const GraphPtr* sub = std::get_if<GraphPtr>(&a))
        for (const auto& c : (*sub)->captures)
          if (carries_gradient(g.value(c.outer).type)) marked[size_t(c.outer)] = 1;
  }
  return marked;
}

// Follows a weight forward to the first node that the gradient of the loss does not pass.
class Stops {
 public:
  Stops(const Graph& g, const OpTable& ops, const std::vector<char>& grad,
        const std::vector<char>& any)
      : g_(g), ops_(ops), grad_(grad), any_(any), users_(g.consumers()) {}

  // The node and the reason; {-1, ""} when there is none on the way.
  std::pair<NodeId, std::string> find(ValueId v) const {
    std::vector<ValueId> todo = {v};
    std::vector<char> seen(g_.values.size(), 0);
    seen[size_t(v)] = 1;
    for (size_t at = 0; at < todo.size(); ++at)
      for (NodeId k : users_[size_t(todo[at])]) {
        const Node& n = g_.nodes[size_t(k)];
        const bool leads = std::any_of(n.outputs.begin(), n.outputs.end(),
                                       [&](ValueId o) { return o != kNone && any_[size_t(o)]; });
        if (!leads) continue;
        const bool arrives = std::any_of(n.outputs.begin(), n.outputs.end(), [&](ValueId o) {
          return o != kNone && grad_[size_t(o)] && carries(g_, o);
        });
        std::string why = reason(n, todo[at]);
        // what lies before another stop is told by the last one
        if (arrives || !why.empty()) return {k, why.empty() ? "it has no gradient" : why};
        for (ValueId o : n.outputs)
          if (o != kNone && any_[size_t(o)] && !seen[size_t(o)]) {
            seen[size_t(o)] = 1;
            todo.push_back(o);
          }
      }
    return {-1, ""};
  }

 private:
  std::string reason(const Node& n, ValueId v) const {
    for (size_t i = 0; i < n.inputs.size(); ++i)
      if (n.inputs[i] == v)
        if (std::string why = stops_at(g_, n, i, ops_); !why.empty()) return why;
    for (ValueId o : n.outputs)
      if (o != kNone && any_[size_t(o)] && !carries(g_, o))
        return cat("its result is ", to_string(g_.value(o).type));
    return {};
  }

  const Graph& g_;
  const OpTable& ops_;
  const std::vector<char>&grad_, &any_;
  std::vector<std::vector<NodeId>> users_;
};

bool is_small_type(DType t) {
  return t == DType::kInt8 || t == DType::kUint8 || t == DType::kInt4 || t == DType::kUint4 ||
         (dtype_is_float(t) && !dtype_is_differentiable(t));
}

// Weights that a file holds as small integers: what DequantizeLinear or an integer layer reads.
bool is_integer_weight(const ValueDef& d, const std::vector<Use>& uses) {
  if (d.constant.size() < 2 || !is_small_type(d.constant.dtype())) return false;
  return std::any_of(uses.begin(), uses.end(), [](const Use& u) {
    const Op* op = all_ops().find(*u.node);
    if (!op) return false;
    const std::vector<int>& operands = op->quantised_inputs;
    return std::find(operands.begin(), operands.end(), int(u.input)) != operands.end();
  });
}

// Which output depends on a value; asked only for weights that the loss does not read.
class Outputs {
 public:
  Outputs(const Graph& g, const OpTable& ops) : g_(g), ops_(ops) {}
  std::string reads(ValueId v) {
    if (by_output_.empty())
      for (ValueId o : g_.outputs) by_output_.push_back(reached(g_, ops_, {o}, true));
    for (size_t k = 0; k < by_output_.size(); ++k)
      if (by_output_[k][size_t(v)]) return g_.value_name(g_.outputs[k]);
    return {};
  }

 private:
  const Graph& g_;
  const OpTable& ops_;
  std::vector<std::vector<char>> by_output_;
};

// "--freeze 'a' 'b'", as short as it can be without naming anything else.
std::string freeze_words(const Graph& g, const std::vector<std::string>& names) {
  constexpr size_t kNamed = 8;
  if (names.size() > kNamed) {
    std::string prefix = names[0];
    for (const std::string& n : names)
      while (!n.starts_with(prefix)) prefix.pop_back();
    const std::string glob = prefix + "*";
    size_t hits = 0;
    for (const ValueDef& d : g.values) hits += d.initializer && glob_match(glob, d.name);
    if (!prefix.empty() && hits == names.size()) return "--freeze " + shell_word(glob);
  }
  std::string text = "--freeze";
  for (const std::string& n : names) text += " " + shell_word(n);
  return text;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kShown = 6;
  std::string text;
  for (size_t k = 0; k < names.size() && k < kShown; ++k)
    text += cat(text.empty() ? "" : ", ", "'", names[k], "'");
  if (names.size() > kShown) text += cat(" and ", names.size() - kShown, " more");
  return text;
}

}  // namespace

const char* role_name(Role r) {
  switch (r) {
    case Role::kTrained:
      return "trained";
    case Role::kFrozen:
      return "frozen";
    case Role::kConstant:
      return "constant";
    case Role::kStatistic:
      return "statistics";
    case Role::kStopped:
      return "no gradient";
    case Role::kElsewhere:
      return "other output";
    case Role::kUnused:
      return "unused";
    case Role::kIntegers:
      return "integers";
  }
  return "";
}

// Operators that have a rule which gives nothing.
const char* flat_input(const Node& n, size_t input) {
  for (const char* op : {"Round", "Floor", "Ceil", "Sign", "Hardmax"})
    if (n.is(op)) return "it is piecewise constant, its derivative is zero";
  if (n.is("Detach", kOwnDomain)) return "it stops the gradient, as the model says";
  if (n.is("GridSample") && input == 1 && n.s("mode", "linear") == "nearest")
    return "it takes the nearest pixel: where the grid points has no derivative";
  return nullptr;
}

std::string stops_at(const Graph& g, const Node& n, size_t input, const OpTable& ops) {
  const Op* op = ops.find(n);
  if (op && !op->grad && op->no_grad) return op->no_grad;
  if (const char* why = flat_input(n, input)) return why;
  // integers pass a gradient from QuantizeLinear to DequantizeLinear only
  if (is_quantised(g, n.inputs[input]) && !n.is("DequantizeLinear"))
    return "it computes with quantised integers";
  if (n.is("BatchNormalization") && input >= 3)
    return is_stored_statistic(g, n, input) ? "they are running statistics" : "";
  return is_setting(n, input) ? "it is a setting" : "";
}

std::vector<InitializerRole> initializer_roles(const Model& m, const Recipe& r,
                                               const std::vector<TermSource>& terms,
                                               const OpTable& ops) {
  const Graph& g = m.main;
  std::vector<ValueId> from;
  for (const TermSource& t : terms) {
    from.push_back(t.input);
    from.insert(from.end(), t.file_inputs.begin(), t.file_inputs.end());
  }
  const std::vector<char> grad = reached(g, ops, from, false), any = reached(g, ops, from, true);
  const std::vector<char> statistics = running_statistics(g);
  const ConstantRules rules(m);
  const auto kinds = exported_kinds(m);
  const Stops stops(g, ops, grad, any);
  Outputs outputs(g, ops);
  const std::vector<std::string> adopted = adopted_weights(m);  // weights, by their operators
  std::vector<InitializerRole> list;
  for (size_t k = 0; k < g.values.size(); ++k) {
    const ValueDef& d = g.values[k];
    if (!d.initializer || !d.constant.defined() || d.constant.size() == 0) continue;
    InitializerRole x;
    x.value = ValueId(k);
    const bool floats = dtype_is_differentiable(d.constant.dtype());
    if (!floats && !is_integer_weight(d, rules.uses(x.value))) continue;
    const bool asked_for = std::find(r.only.begin(), r.only.end(), d.name) != r.only.end();
    auto kind = kinds.find(d.name);
    auto set = [&](Role role, std::string because) {
      x.role = role;
      x.because = std::move(because);
    };
    // what the exporter says counts, then what the rule says
    std::string constant;
    if (std::find(adopted.begin(), adopted.end(), d.name) != adopted.end())
      constant.clear();
    else if (kind == kinds.end())
      constant = floats ? rules.reason(x.value) : "";
    else if (kind->second != "PARAMETER")
      constant = cat("the exporter calls it ", kind->second);
    if (!floats)
      set(Role::kIntegers, cat("stored as ", dtype_name(d.constant.dtype())));
    else if (statistics[k])
      set(Role::kStatistic, "running statistics of a BatchNormalization");
    else if (!constant.empty() && !(asked_for && grad[k]))
      set(Role::kConstant, constant);
    else if (!is_chosen(r, d.name))
      set(Role::kFrozen,
          any_glob_matches(r.freeze, d.name) ? "freeze names it" : "only does not name it");
    else if (grad[k])
      set(Role::kTrained, asked_for && !constant.empty() ? "only names it" : "");
    else if (any[k]) {
      auto [node, why] = stops.find(x.value);
      x.stop = node;
      set(Role::kStopped, why);
    } else if (std::string o = outputs.reads(x.value); !o.empty())
      set(Role::kElsewhere, cat("only output '", o, "' depends on it"));
    else
      set(Role::kUnused, "no output depends on it");
    list.push_back(std::move(x));
  }
  return list;
}

std::vector<LeftOut> left_out(const Model& m, const std::vector<InitializerRole>& roles) {
  const Graph& g = m.main;
  struct Group {
    const InitializerRole* first;
    std::vector<std::string> names;
  };
  std::vector<Group> groups;
  for (const InitializerRole& x : roles) {
    if (x.role != Role::kStopped && x.role != Role::kElsewhere && x.role != Role::kIntegers)
      continue;
    auto same = [&](const Group& q) {
      return q.first->role == x.role && q.first->stop == x.stop && q.first->because == x.because;
    };
    auto it = std::find_if(groups.begin(), groups.end(), same);
    if (it == groups.end()) it = groups.insert(it, {&x, {}});
    it->names.push_back(g.value_name(x.value));
  }
  std::vector<LeftOut> out;
  for (const Group& q : groups) {
    const InitializerRole& x = *q.first;
    const bool one = q.names.size() == 1;
    LeftOut l;
    l.names = q.names;
    l.text = one ? cat("weight ", listed(q.names), " does not train: ")
                 : cat(q.names.size(), " weights do not train: ");
    if (x.role == Role::kStopped) {
      l.node = x.stop >= 0 ? g.nodes[size_t(x.stop)].label() : "";
      l.text += cat("the gradient of the loss stops at ", l.node, ", because ", x.because);
      l.hint = "to train them, take a loss on a tensor before that node (--loss-input); ";
    } else if (x.role == Role::kElsewhere) {
      l.text +=
          cat("the loss does not read what ", one ? "it makes" : "they make", "; ", x.because);
      l.hint =
          "to train them, take the loss of that output (--loss-input) or a list of losses "
          "(docs/recipe.md); ";
    } else {
      l.text += x.because;
      l.hint = "to train them, take the model before it was quantised; ";
    }
    if (!one) l.text += cat(": ", listed(q.names));
    l.hint += cat("to leave them as they are:  ", freeze_words(g, q.names));
    out.push_back(std::move(l));
  }
  return out;
}

}  // namespace onnxtrain
