// Do the assignments of a training section belong to its optimizers, and its gradients to its loss?
#include "onnx/odd_updates.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <set>

#include "onnx/functions/rooted.hpp"
#include "op/op.hpp"

namespace onnxtrain {

namespace {

constexpr const char* kImpossible = "OT1292";

// Is `on` among the values that `v` is computed from? Near ones are found first.
bool depends(const Graph& g, ValueId v, const std::set<ValueId>& on) {
  std::deque<ValueId> open = {v};
  std::set<ValueId> seen = {v};
  while (!open.empty()) {
    const ValueId at = open.front();
    open.pop_front();
    if (on.count(at) != 0) return true;
    const NodeId p = g.value(at).producer;
    if (p < 0) continue;
    for (ValueId in : g.reads(g.nodes[size_t(p)]))
      if (in != kNone && seen.insert(in).second) open.push_back(in);
  }
  return false;
}

// The number that a value is when it is one number of the file; 0 otherwise.
double number(const Model& m, const Graph& g, ValueId v) {
  const Tensor* t = v == kNone ? nullptr : &g.value(v).constant;
  if (t && !t->defined()) t = m.initializer(g.value_name(v));
  return t && t->defined() && t->size() == 1 &&
                 (dtype_is_float(t->dtype()) || dtype_is_integer(t->dtype()))
             ? t->to_doubles()[0]
             : 0;
}

// 1: `v` grows with the gradient of the loss, -1: against it, 0: not known. Followed through what
// keeps the direction: signs, factors of the file, another type, something that is added.
int direction(const Model& m, const Graph& g, ValueId v, int depth = 0) {
  constexpr int kDeepest = 32;
  const NodeId p = v == kNone || depth > kDeepest ? -1 : g.value(v).producer;
  if (p < 0) return 0;
  const Node& n = g.nodes[size_t(p)];
  if (n.op == "Gradient" && n.domain == kTrainingDomain) {
    const ValueId y = g.find(n.s("y", ""));
    const NodeId made = y == kNone ? -1 : g.value(y).producer;
    const bool negative = made >= 0 && g.nodes[size_t(made)].is("Neg") && g.value_name(y) != "loss";
    return negative ? -1 : 1;
  }
  auto of = [&](size_t k) { return direction(m, g, n.inputs[k], depth + 1); };
  auto sign = [&](size_t k) {
    const double x = number(m, g, n.inputs[k]);
    return int(x > 0) - int(x < 0);
  };
  if (n.is("Neg")) return -of(0);
  if (n.is("Identity") || n.is("Cast") || n.is("CastLike")) return of(0);
  if (n.is("Mul")) return sign(0) != 0 ? sign(0) * of(1) : sign(1) * of(0);
  if (n.is("Div")) return sign(1) * of(0);
  if (n.is("Add") || n.is("Sub")) {
    const int a = of(0), b = n.is("Sub") ? -of(1) : of(1);
    return a == 0 ? b : b == 0 || a == b ? a : 0;
  }
  return 0;
}

class Section {
 public:
  Section(const Model& m, const TrainingStep& step, std::vector<OddUpdate>& found)
      : m_(m), step_(step), g_(step.algorithm), found_(found) {}

  void look() {
    for (const Node& n : g_.nodes) {
      const Op* op = all_ops().find(n);
      if (op && op->update) look_at(n, *op);
      if (n.op == "Gradient" && n.domain == kTrainingDomain) look_at_gradient(n);
    }
    for (const auto& [name, value] : step_.update_binding) look_at_step(name, value);
  }

 private:
  // The state variable that an input is, also in another type; "" when it is computed.
  std::string state(ValueId v) const {
    if (const NodeId p = v == kNone ? -1 : g_.value(v).producer;
        p >= 0 && g_.nodes[size_t(p)].is("Cast"))
      v = g_.nodes[size_t(p)].inputs[0];
    if (v == kNone || g_.value(v).producer >= 0) return {};
    const std::string& name = g_.value_name(v);
    return m_.initializer(name) ? name : std::string();
  }
  const std::string* bound(const std::string& name) const {
    for (const auto& [key, value] : step_.update_binding)
      if (key == name) return &value;
    return nullptr;
  }

  void look_at(const Node& n, const Op& op) {
    const UpdateForm& form = *op.update;
    const auto first = size_t(form.scalars), kinds = 2 + size_t(form.states);
    if (n.inputs.size() < first + kinds) return;
    // the standard's operators take several weights: all X, all G, all of the first state, ...
    const size_t weights = std::max<size_t>(1, (n.inputs.size() - first) / kinds);
    for (size_t j = 0; j < weights && first + weights + j < n.inputs.size(); ++j)
      if (direction(m_, g_, n.inputs[first + weights + j]) < 0)
        say_uphill(state(n.inputs[first + j]),
                   cat("the gradient comes into ", n.label(), " with its sign turned around"));
    for (size_t j = 0; j < n.outputs.size(); ++j) {
      const size_t kind = j / weights;  // 0: X; behind it the states
      const size_t in = first + (kind == 0 ? 0 : kind + 1) * weights + j % weights;
      if (in >= n.inputs.size() || n.outputs[j] == kNone) continue;
      const std::string name = state(n.inputs[in]);
      if (name.empty()) continue;
      if (kind > 0 && rooted(op).count(in) != 0) look_at_squares(n, name);
      const std::string made = g_.value_name(n.outputs[j]);
      const std::string* value = bound(name);
      const ValueId v = value ? g_.find(*value) : kNone;
      if (!value)
        say(cat("'", name, "' is updated by ", n.label(), " and the new value '", made,
                "' is never assigned to it"),
            cat("add the binding '", name, "' = '", made, "'"));
      else if (v != kNone && !depends(g_, v, {n.outputs[j]}))
        say(cat("'", name, "' is assigned '", *value,
                "', which does not come from the update that ", n.label(), " makes of it ('", made,
                "')"),
            cat("bind it to its own update: '", name, "' = '", made, "'"));
    }
    if (form.scalars >= 2) look_at_counter(n);
  }

  const std::set<size_t>& rooted(const Op& op) {
    const auto [at, fresh] = rooted_.try_emplace(&op);
    if (fresh) at->second = rooted_inputs(op);
    return at->second;
  }

  // Sums and averages of squares, whose root is taken.
  void look_at_squares(const Node& n, const std::string& name) {
    constexpr int64_t kMost = 1 << 24;
    const Tensor* t = m_.initializer(name);
    if (!dtype_is_float(t->dtype()) || t->size() > kMost) return;
    const std::vector<double> v = t->to_doubles();
    const auto low = std::find_if(v.begin(), v.end(), [](double x) { return x < 0; });
    if (low != v.end())
      refuse(cat("'", name, "', the squares of ", n.label(), ", has numbers below 0 (", *low,
                 "): their root is NaN in the first step"),
             "where two states of the optimizer were exchanged, exchange them again; or begin "
             "with zeros");
  }

  // The steps that an optimizer counts by.
  void look_at_counter(const Node& n) {
    constexpr double kLongest = 1e15;
    ValueId v = n.inputs.size() > 1 ? n.inputs[1] : kNone;
    if (const NodeId p = v == kNone ? -1 : g_.value(v).producer;
        p >= 0 && g_.nodes[size_t(p)].is("Add"))
      v = g_.nodes[size_t(p)].inputs[0];
    const std::string name = state(v);
    if (name.empty() || !counters_.insert(name).second) return;
    const double count = number(m_, g_, v);
    if (count < 0)
      refuse(cat("'", name, "', which counts the steps of ", n.label(), ", is ", int64_t(count),
                 ": it cannot be below 0"),
             cat("set '", name, "' to 0, or to the number of steps that were made"));
    else if (count > kLongest)
      say(cat("'", name, "', which counts the steps of ", n.label(), ", is ", count,
              ": no training is that long, and averages are taken for complete"),
          cat("set '", name, "' to 0, or to the number of steps that were made"));
    if (bound(name)) return;
    say(cat("'", name, "', which counts the steps of ", n.label(),
            ", is never assigned: every step "
            "is taken for the first"),
        "bind it to its value plus 1");
  }

  // A step in plain operators.
  void look_at_step(const std::string& name, const std::string& value) {
    const ValueId v = g_.find(value);
    const NodeId p = v == kNone ? -1 : g_.value(v).producer;
    if (p < 0) return;
    const Node& n = g_.nodes[size_t(p)];
    const bool adds = n.is("Add");
    if ((adds || n.is("Sub")) && state(n.inputs[0]) == name &&
        direction(m_, g_, n.inputs[1]) == (adds ? 1 : -1))
      say_uphill(name, cat(n.label(), " moves it"));
  }

  void say_uphill(const std::string& name, const std::string& how) {
    say(cat("'", name, "' is moved along its gradient, not against it (", how,
            "): training makes the loss larger"),
        "turn the sign around, unless the largest loss is wanted");
  }

  void look_at_gradient(const Node& n) {
    const ValueId y = g_.find(n.s("y", ""));
    ValueId loss = kNone;
    for (ValueId v : g_.outputs)
      if (g_.value_name(v) == "loss") loss = v;
    if (y == kNone || loss == kNone || y == loss) return;
    const std::vector<ValueId>& in = g_.inputs;
    const std::set<ValueId> targets(in.begin(), in.end());
    if (targets.empty() || !depends(g_, loss, targets) || depends(g_, y, targets)) return;
    say(cat(n.label(), " differentiates '", g_.value_name(y), "', which no target reaches: '",
            g_.value_name(in[0]), "' teaches nothing"),
        "differentiate the loss: y = 'loss'");
  }

  void say(std::string text, std::string hint) {
    constexpr size_t kMost = 3;
    if (found_.size() < kMost) found_.push_back({std::move(text), std::move(hint)});
  }
  void refuse(std::string text, std::string hint) {
    found_.insert(found_.begin(), {std::move(text), std::move(hint), true});
  }

  const Model& m_;
  const TrainingStep& step_;
  const Graph& g_;
  std::vector<OddUpdate>& found_;
  std::set<std::string> counters_;
  std::map<const Op*, std::set<size_t>> rooted_;
};

}  // namespace

std::vector<OddUpdate> odd_updates(const Model& m) {
  std::vector<OddUpdate> found;
  for (const TrainingStep& step : m.training) Section(m, step, found).look();
  return found;
}

void refuse_impossible_updates(const Model& m) {
  for (const OddUpdate& odd : odd_updates(m))
    if (odd.impossible) throw Error(ErrorKind::kModel, kImpossible, odd.text, odd.hint);
}

void add_odd_updates(const Model& m, std::vector<Finding>& found) {
  using Level = Finding::Level;
  if (std::any_of(found.begin(), found.end(),
                  [](const Finding& f) { return f.level == Level::kError; }))
    return;
  for (const OddUpdate& odd : odd_updates(m))
    found.push_back({odd.impossible ? Level::kError : Level::kWarning,
                     odd.impossible ? kImpossible : "OT3134", "", odd.text, odd.hint});
}

}  // namespace onnxtrain
