// Finds training-mode copies by comparing the algorithm with the main graph, node by node.
#include "model/training_copies.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include <nlohmann/json.hpp>

#include "graph/same.hpp"

namespace onnxtrain {

bool is_batch_norm(const Node& n) { return n.is("BatchNormalization"); }
bool is_dropout(const Node& n) { return n.is("Dropout"); }

namespace {

using ConstantOf = std::function<const Tensor*(ValueId)>;

bool trains(const Node& n, const ConstantOf& constant) {
  if (is_batch_norm(n)) {
    if (n.version >= 14) return n.i("training_mode", 0) != 0;
    if (n.version < 7) return n.i("is_test", 0) == 0;
    for (size_t k = 1; k < n.outputs.size(); ++k)
      if (n.outputs[k] != kNone) return true;
    return false;
  }
  if (!is_dropout(n)) return false;
  if (n.version < 12) return n.version < 7 && n.i("is_test", 0) == 0;
  if (n.inputs.size() < 3 || n.inputs[2] == kNone) return false;
  const Tensor* t = constant(n.inputs[2]);
  return t && t->size() == 1 && *static_cast<const uint8_t*>(t->data()) != 0;
}

ConstantOf constants_in(const Graph& g) {
  return [&g](ValueId v) {
    const Tensor& t = g.value(v).constant;
    return t.defined() ? &t : nullptr;
  };
}

// What a value of the algorithm is in the main graph.
struct Match {
  ValueId main = kNone;
  bool copy = false;  // computed in training mode: not the same numbers
};
using Matches = std::vector<Match>;

constexpr size_t kBytes = 1024;  // constants up to this size are compared by contents

// Operands that a copy shares with its original; the others say how it trains.
size_t data_inputs(const Node& n) {
  const size_t all = n.inputs.size();
  if (is_batch_norm(n)) return std::min<size_t>(all, 3);
  if (is_dropout(n)) return std::min<size_t>(all, 1);
  size_t count = all;
  while (count > 0 && n.inputs[count - 1] == kNone) --count;
  return count;
}

// Attributes that say how the operator trains.
bool is_mode(const Node& n, std::string_view key) {
  if (is_batch_norm(n)) return key == "training_mode" || key == "momentum" || key == "is_test";
  return is_dropout(n) && (key == "ratio" || key == "seed" || key == "is_test");
}

// Compares nodes of `copy` with nodes of `main`. For the bodies of branches and loops the two are
// the bodies.
class Comparison {
 public:
  Comparison(const Graph& main, const Graph& copy)
      : main_(main), copy_(copy), matches_(copy.values.size()) {}

  Matches& matches() { return matches_; }

  std::string key_of_original(const Node& n) const {
    std::string key = head(n);
    for (size_t k = 0; k < data_inputs(n); ++k) key += main_key(n.inputs[k]) + ",";
    return key;
  }
  std::string key_of_copy(const Node& n) const {
    std::string key = head(n);
    for (size_t k = 0; k < data_inputs(n); ++k) key += copy_key(n.inputs[k]) + ",";
    return key;
  }

  // n with the key of `original`: is it that node, or its training-mode copy? Nothing: neither.
  std::optional<bool> is_copy(const Node& n, const Node& original) const {
    const bool mode = is_batch_norm(n) || is_dropout(n);
    if (!mode && n.version != original.version) return std::nullopt;
    bool copy = copied(n.inputs);
    for (const auto& [key, a] : n.attrs) {
      if (is_mode(n, key)) continue;
      const Attr* other = original.find(key);
      if (!other) return std::nullopt;
      const GraphPtr *body = std::get_if<GraphPtr>(&a), *theirs = std::get_if<GraphPtr>(other);
      if (body && theirs) {
        std::optional<bool> inside = compare_bodies(**body, **theirs);
        if (!inside) return std::nullopt;
        copy |= *inside;
      } else if (!same_attr(a, *other)) {
        return std::nullopt;
      }
    }
    for (const auto& [key, a] : original.attrs)
      if (!is_mode(n, key) && !n.has(key)) return std::nullopt;
    const bool here = trains(n, [this](ValueId v) { return constant(v); });
    const bool there = trains(original, constants_in(main_));
    if (there && !here) return std::nullopt;
    return copy || here != there;
  }

  // n and `original` make a copy and what it is a copy of: the one operand in which the two nodes
  // differ, if there is one and the operators are the same.
  std::optional<std::pair<ValueId, ValueId>> differing_operand(const Node& n,
                                                               const Node& original) const {
    const size_t count = data_inputs(n);
    if (head(n) != head(original) || count != data_inputs(original) || !is_copy(n, original))
      return std::nullopt;
    std::optional<std::pair<ValueId, ValueId>> found;
    for (size_t k = 0; k < count; ++k) {
      if (copy_key(n.inputs[k]) == main_key(original.inputs[k])) continue;
      if (found || n.inputs[k] == kNone || original.inputs[k] == kNone) return std::nullopt;
      found = {n.inputs[k], original.inputs[k]};
    }
    return found;
  }

  void match_outputs(const Node& n, const Node& original, bool copy) {
    // of BatchNormalization only Y: its statistics have no inference form
    const size_t count = is_batch_norm(n) ? 1 : std::min(n.outputs.size(), original.outputs.size());
    for (size_t k = 0; k < count; ++k)
      if (n.outputs[k] != kNone && original.outputs[k] != kNone)
        matches_[size_t(n.outputs[k])] = {original.outputs[k], copy};
  }

 private:
  static std::string head(const Node& n) { return cat(n.domain, ":", n.op, ":"); }
  std::string main_key(ValueId v) const {
    return v == kNone ? "_" : value_key(main_.value(v), v, kBytes);
  }
  std::string copy_key(ValueId v) const {
    if (v == kNone) return "_";
    if (ValueId m = matches_[size_t(v)].main; m != kNone) return main_key(m);
    std::string key = value_key(copy_.value(v), v, kBytes);
    return key[0] == 'v' ? "own " + key : key;
  }
  const Tensor* constant(ValueId v) const {
    const Tensor& t = copy_.value(v).constant;
    if (t.defined()) return &t;
    const ValueId m = matches_[size_t(v)].main;
    return m == kNone ? nullptr : constants_in(main_)(m);
  }
  bool copied(const std::vector<ValueId>& list) const {
    for (ValueId v : list)
      if (v != kNone && matches_[size_t(v)].copy) return true;
    return false;
  }

  // Two bodies, node by node in their order.
  std::optional<bool> compare_bodies(const Graph& body, const Graph& original) const {
    if (body.inputs.size() != original.inputs.size() ||
        body.outputs.size() != original.outputs.size() ||
        body.nodes.size() != original.nodes.size())
      return std::nullopt;
    Comparison inner(original, body);
    bool copy = false;
    // values of a copy keep their numbers; what was added to it stands behind them
    for (size_t v = 0; v < std::min(body.values.size(), original.values.size()); ++v)
      if (body.values[v].is_constant() && original.values[v].is_constant() &&
          same_tensor(body.values[v].constant, original.values[v].constant))
        inner.matches_[v].main = ValueId(v);
    for (size_t k = 0; k < body.inputs.size(); ++k)
      inner.matches_[size_t(body.inputs[k])].main = original.inputs[k];
    for (const Graph::Capture& c : body.captures) {
      const Match& outside = matches_[size_t(c.outer)];
      for (const Graph::Capture& o : original.captures)
        if (o.outer == outside.main) inner.matches_[size_t(c.inner)] = {o.inner, outside.copy};
      copy |= outside.copy;
    }
    for (size_t k = 0; k < body.nodes.size(); ++k) {
      const Node &n = body.nodes[k], &o = original.nodes[k];
      if (inner.key_of_copy(n) != inner.key_of_original(o)) return std::nullopt;
      std::optional<bool> one = inner.is_copy(n, o);
      if (!one) return std::nullopt;
      inner.match_outputs(n, o, *one);
      copy |= *one;
    }
    for (size_t k = 0; k < body.outputs.size(); ++k)
      if (inner.copy_key(body.outputs[k]) != inner.main_key(original.outputs[k]))
        return std::nullopt;
    return copy;
  }

  const Graph &main_, &copy_;
  Matches matches_;
};

// Follows the algorithm through the main graph. `told`: what is known of a value beforehand; asked
// only for values that the graphs do not show as copies.
Matches follow(const Graph& main, const Graph& algorithm,
               const std::function<ValueId(ValueId)>& told) {
  Comparison c(main, algorithm);
  for (const Graph::Capture& x : algorithm.captures) c.matches()[size_t(x.inner)].main = x.outer;
  std::multimap<std::string, const Node*> originals;
  for (const Node& n : main.nodes) originals.emplace(c.key_of_original(n), &n);
  for (const Node& n : algorithm.nodes) {
    auto [at, end] = originals.equal_range(c.key_of_copy(n));
    for (; at != end; ++at)
      if (std::optional<bool> copy = c.is_copy(n, *at->second)) {
        c.match_outputs(n, *at->second, *copy);
        break;
      }
    for (ValueId v : n.outputs)
      if (v != kNone && !c.matches()[size_t(v)].copy)
        if (ValueId form = told(v); form != kNone) c.matches()[size_t(v)] = {form, true};
  }
  return std::move(c.matches());
}

}  // namespace

void leave_out_mixup(Graph& g, const std::map<std::string, std::string>& metadata) {
  const auto it = metadata.find(kMixupShare);
  const ValueId share = it == metadata.end() ? kNone : g.find(it->second);
  if (share != kNone) g.replace_uses(share, g.add_constant(Tensor::scalar<float>(1)));
}

bool in_training_form(const Graph& g, const Node& n) { return trains(n, constants_in(g)); }

std::vector<TrainingCopy> find_copies(const Graph& main, const Graph& algorithm) {
  const Matches found =
      follow(main, algorithm, [&](ValueId v) { return algorithm.value(v).inference_form; });
  std::vector<TrainingCopy> copies;
  for (size_t v = 0; v < found.size(); ++v)
    if (found[v].copy) copies.emplace_back(ValueId(v), found[v].main);
  return copies;
}

std::vector<TrainingCopy> hidden_copies(const Graph& main, const Graph& algorithm) {
  std::vector<TrainingCopy> hidden;
  follow(main, algorithm, [&](ValueId v) {
    const ValueId form = algorithm.value(v).inference_form;
    if (form != kNone) hidden.emplace_back(v, form);
    return form;
  });
  return hidden;
}

namespace {

// The node that makes a value, and which of its outputs that is.
std::map<ValueId, std::pair<const Node*, size_t>> makers(const Graph& g) {
  std::map<ValueId, std::pair<const Node*, size_t>> out;
  for (const Node& n : g.nodes)
    for (size_t k = 0; k < n.outputs.size(); ++k)
      if (n.outputs[k] != kNone) out[n.outputs[k]] = {&n, k};
  return out;
}

// What a copy is computed from by the operator of its original is a copy, too: a loss that reads
// the scores before the activation has to find them when only the output is said to be one.
void mark_operands(TrainingStep& t, const Graph& main) {
  const Graph& g = t.algorithm;
  Comparison c(main, g);
  for (const Graph::Capture& x : g.captures) c.matches()[size_t(x.inner)].main = x.outer;
  std::vector<ValueId> todo;
  for (size_t v = 0; v < g.values.size(); ++v)
    if (const ValueId form = g.values[v].inference_form; form != kNone) {
      c.matches()[v] = {form, true};
      todo.push_back(ValueId(v));
    }
  if (todo.empty()) return;
  const auto makes = makers(g), originals = makers(main);
  while (!todo.empty()) {
    const ValueId v = todo.back();
    todo.pop_back();
    const auto n = makes.find(v), o = originals.find(g.value(v).inference_form);
    if (n == makes.end() || o == originals.end() || n->second.second != o->second.second) continue;
    const auto operand = c.differing_operand(*n->second.first, *o->second.first);
    if (!operand || !makes.contains(operand->first) || main.value(operand->second).is_constant())
      continue;
    if (g.value(operand->first).inference_form != kNone) continue;
    t.mark(operand->first).inference_form = operand->second;
    c.matches()[size_t(operand->first)] = {operand->second, true};
    todo.push_back(operand->first);
  }
}

}  // namespace

void mark_training_copies(Model& m) {
  std::map<std::string, std::string> said;
  if (auto it = m.metadata.find(kInferenceForm); it != m.metadata.end()) {
    const auto j = nlohmann::json::parse(it->second, nullptr, false);
    if (j.is_object())
      for (const auto& [copy, form] : j.items())
        if (form.is_string()) said[copy] = form.get<std::string>();
  }
  for (TrainingStep& t : m.training) {
    const Graph& g = t.algorithm;
    for (const Node& n : g.nodes)
      for (ValueId v : n.outputs) {
        if (v == kNone) continue;
        auto it = said.find(g.value_name(v));
        if (it != said.end()) t.mark(v).inference_form = m.main.find(it->second);
      }
    for (const auto& [copy, form] : find_copies(m.main, g)) t.mark(copy).inference_form = form;
    mark_operands(t, m.main);
  }
}

}  // namespace onnxtrain
