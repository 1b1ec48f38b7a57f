// Learning-rate schedules with PyTorch's values. Each formula is written once, over a number type:
// with double it gives the learning rate of a step, with Formula it makes the nodes that compute it
// in the file, in double precision, so both agree at every step.
#include "convert/step/schedules.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "convert/step/names.hpp"

namespace onnxtrain {

namespace {

// A double-precision scalar of the graph.
struct Formula {
  StepBuilder* s;
  ValueId v;
};
Formula typed(const Formula& like, ValueId v) {
  like.s->set_type(v, TypeInfo::tensor(DType::kDouble, {}));
  return {like.s, v};
}
Formula node(const char* op, const Formula& a, const Formula& b) {
  return typed(a, a.s->nodes().call(op, {a.v, b.v}));
}
Formula literal(const Formula& like, double v) {
  return {like.s, like.s->nodes().tensor(Tensor::scalar<double>(v))};
}
Formula operator+(Formula a, Formula b) { return node("Add", a, b); }
Formula operator-(Formula a, Formula b) { return node("Sub", a, b); }
Formula operator*(Formula a, Formula b) { return node("Mul", a, b); }
Formula operator/(Formula a, Formula b) { return node("Div", a, b); }
Formula power(Formula a, Formula b) { return node("Pow", a, b); }
Formula least(Formula a, Formula b) { return node("Min", a, b); }
Formula cosine(Formula a) { return typed(a, a.s->nodes().call("Cos", {a.v})); }
Formula down(Formula a) { return typed(a, a.s->nodes().call("Floor", {a.v})); }
Formula if_less(Formula a, Formula b, Formula yes, Formula no) {
  return typed(a, a.s->nodes().call("Where", {a.s->nodes().call("Less", {a.v, b.v}), yes.v, no.v}));
}

double literal(double, double v) { return v; }
double power(double a, double b) { return std::pow(a, b); }
double least(double a, double b) { return std::min(a, b); }
double cosine(double a) { return std::cos(a); }
double down(double a) { return std::floor(a); }
double if_less(double a, double b, double yes, double no) { return a < b ? yes : no; }

struct Numbers {
  const ScheduleSpec& s;
  double get(const char* key, double def) const {
    auto it = s.numbers.find(key);
    return it == s.numbers.end() ? def : it->second;
  }
  double need(const char* key) const {
    auto it = s.numbers.find(key);
    if (it == s.numbers.end())
      usage_error("OT1246", cat("the schedule ", s.kind, " needs '", key, "'"),
                  cat("give it:  --schedule-arg ", key, "=1000   (in Python: {\"kind\": \"", s.kind,
                      "\", \"", key, "\": 1000})"));
    if (!(it->second > 0))
      usage_error("OT1233", cat(key, " is ", it->second, ", it must be positive"),
                  cat("--schedule-arg ", key, "=1000"));
    return it->second;
  }
};

// From `a` (pct = 0) to `b` (pct = 1).
template <class N>
N anneal(bool linear, double a, double b, N pct) {
  if (linear) return literal(pct, b - a) * pct + literal(pct, a);
  N wave = cosine(literal(pct, std::numbers::pi) * pct) + literal(pct, 1);
  return literal(pct, b) + literal(pct, (a - b) / 2) * wave;
}

template <class N>
N one_cycle(const Numbers& n, double lr, double total, N k) {
  double top = n.get("max_lr", lr), start = top / n.get("div_factor", 25),
         low = start / n.get("final_div_factor", 1e4);
  double pct = n.get("pct_start", 0.3);
  bool linear = n.get("anneal_linear", 0) != 0, three = n.get("three_phase", 0) != 0;
  N at = least(k, literal(k, total - 1));
  double end1 = pct * total - 1, end2 = three ? 2 * pct * total - 2 : total - 1;
  auto phase = [&](double from, double to, double a, double b) {
    if (!(to > from)) return literal(k, b);  // a phase of no steps
    return anneal(linear, a, b, (at - literal(k, from)) / literal(k, to - from));
  };
  N up = phase(0, end1, start, top), fall = phase(end1, end2, top, three ? start : low);
  N rest = three ? phase(end2, total - 1, start, low) : fall;
  // a step exactly at the end of a phase belongs to it
  return if_less(literal(k, end1), at, if_less(literal(k, end2), at, rest, fall), up);
}

// The learning rate k steps after warm-up.
template <class N>
N main_lr(const Recipe& r, double lr, double warmup, N k) {
  Numbers n{r.schedule};
  const std::string& kind = r.schedule.kind;
  auto c = [&](double v) { return literal(k, v); };
  if (kind == "constant") return c(lr);
  double gamma = n.get("gamma", kind == "exponential" ? 0.95 : 0.1);
  if (kind == "step") return c(lr) * power(c(gamma), down(k / c(n.need("step_size"))));
  if (kind == "multistep") {
    if (r.schedule.milestones.empty())
      usage_error("OT1246", "the schedule multistep needs 'milestones'",
                  "give the steps:  --schedule-arg milestones=1000,2000   (in Python: {\"kind\": "
                  "\"multistep\", \"milestones\": [1000, 2000]})");
    N passed = c(0);
    for (int64_t m : r.schedule.milestones) passed = passed + if_less(k, c(double(m)), c(0), c(1));
    return c(lr) * power(c(gamma), passed);
  }
  if (kind == "exponential") return c(lr) * power(c(gamma), k);
  double total = n.need("total_steps") - warmup, low = n.get("min_lr", 0);
  if (total <= 0)
    usage_error("OT1233",
                cat("warmup_steps=", warmup, " leaves nothing of ", total + warmup, " steps"),
                cat("fewer:  --schedule-arg warmup_steps=", std::floor((total + warmup) / 10),
                    "   or more epochs"));
  if (kind == "cosine")
    return c(low) + c(lr - low) * (c(1) + cosine(c(std::numbers::pi) * k / c(total))) / c(2);
  if (kind == "onecycle") return one_cycle(n, lr, total, k);
  N part = least(k, c(total)) / c(total);
  if (kind == "linear") {
    double start = n.get("start_factor", 1), end = n.get("end_factor", low / lr);
    return c(lr) * (c(start) + c(end - start) * part);
  }
  OT_ASSERT(kind == "polynomial");
  return c(low) + c(lr - low) * power(c(1) - part, c(n.get("power", 1)));
}

template <class N>
N lr_at(const Recipe& r, N k) {
  double lr = default_lr(r.optimizer);
  double warmup = Numbers{r.schedule}.get("warmup_steps", 0);
  if (warmup <= 0) return main_lr(r, lr, 0, k);
  // (k+1)/(warmup+1) by default: never 0, 1 right after the last step of warm-up
  double start = Numbers{r.schedule}.get("warmup_start", 1 / (warmup + 1));
  N main = main_lr(r, lr, warmup, k - literal(k, warmup));
  double first = main_lr(r, lr, warmup, 0.0);
  N rising =
      literal(k, first) * (literal(k, start) + literal(k, 1 - start) * k / literal(k, warmup));
  return if_less(k, literal(k, warmup), rising, main);
}

bool changes(const Recipe& r) {
  auto it = r.schedule.numbers.find("warmup_steps");
  return r.schedule.kind != "constant" || (it != r.schedule.numbers.end() && it->second > 0);
}

}  // namespace

double scheduled_lr(const Recipe& r, int64_t step) { return lr_at(r, double(step)); }

ValueId add_lr(StepBuilder& s, const Recipe& r, DType type) {
  return s.add_state("learning_rate", scalar_tensor(scheduled_lr(r, 0), type));
}

namespace {

// The learning rate of the next step, from the counter's next value.
ValueId next_lr(StepBuilder& s, const Recipe& r, ValueId counter, ValueId lr) {
  Formula done = {&s, s.cast(counter, DType::kDouble)};
  s.set_type(done.v, TypeInfo::tensor(DType::kDouble, {}));
  if (const int64_t t0 = first_step(r.optimizer); t0 != 0) done = done - literal(done, double(t0));
  const TypeInfo type = s.graph().value(lr).type;
  const ValueId v = s.cast(lr_at(r, done).v, type.elem);
  s.set_type(v, type);
  return v;
}

[[noreturn]] void not_ours(const char* why) {
  model_error("OT1246", cat("the training in the file ", why, ": it cannot be given a schedule"),
              "prepare the model again with the schedule");
}

std::string* bound_to(TrainingStep& step, const std::string& key) {
  for (auto& [name, value] : step.update_binding)
    if (name == key) return &value;
  return nullptr;
}

// The counter of updates: the state variable that `prepare` called T, or T_1 when that was taken.
const std::string& counter_binding(const TrainingStep& step) {
  for (const auto& [name, value] : step.update_binding) {
    const bool named =
        name == "T" ||
        (name.starts_with("T_") && name.find_first_not_of("0123456789", 2) == std::string::npos);
    const ValueId v = step.algorithm.find(name);
    if (named && v != kNone && step.algorithm.value(v).type.elem == DType::kInt64) return value;
  }
  not_ours("has no counter of updates");
}

// Takes an output away, and with it the nodes and constants that only it needs; their names are
// free again.
void drop_output(Graph& g, ValueId output) {
  std::erase(g.outputs, output);
  g.remove_dead();
  std::vector<char> used(g.values.size(), 0);
  for (const Node& n : g.nodes) {
    for (ValueId v : g.reads(n)) used[size_t(v)] = 1;
    for (ValueId v : n.outputs)
      if (v != kNone) used[size_t(v)] = 1;
  }
  for (ValueId v : g.inputs) used[size_t(v)] = 1;
  for (ValueId v : g.outputs) used[size_t(v)] = 1;
  for (const auto& c : g.captures) used[size_t(c.inner)] = 1;
  for (size_t k = 0; k < g.values.size(); ++k)
    if (!used[k] && g.values[k].state.empty()) g.values[k].name.clear();
}

}  // namespace

void add_lr_update(StepBuilder& s, const Recipe& r, const Counter& counter, ValueId lr) {
  if (!changes(r)) return;
  const ValueId next =
      next_lr(s, r, counter.next, lr);  // adds values: names are asked for after it
  s.bind(s.graph().value_name(lr), next);
}

bool spans_the_run(const ScheduleSpec& s) {
  if (s.numbers.count("total_steps") != 0) return false;
  return s.kind == "cosine" || s.kind == "linear" || s.kind == "onecycle" || s.kind == "polynomial";
}

void set_schedule(Model& m, const Recipe& r, int64_t done, const OpTable& ops) {
  check_recipe(r);
  TrainingStep& step = m.training.front();
  const std::string name =
      m.metadata.count("onnxtrain.rate") ? m.metadata.at("onnxtrain.rate") : "";
  if (step.algorithm.find(name) == kNone || !m.initializer(name))
    not_ours("names no learning rate");
  m.set_initializer(name, scalar_tensor(scheduled_lr(r, done), m.initializer(name)->dtype()));
  std::string* bound = bound_to(step, name);
  if (!bound && !changes(r)) return;
  if (bound) drop_output(step.edit_algorithm(), step.algorithm.find(*bound));
  StepBuilder s(m, ops, step);
  Graph& g = s.graph();
  const ValueId lr = g.find(name);
  if (changes(r)) {
    ValueId next = g.find(counter_binding(step)), updates = kNone;
    // between updates (accumulation) the counter keeps its value, and so does the learning rate
    if (const NodeId k = g.producer_of(next); k >= 0 && g.nodes[size_t(k)].is("Where")) {
      updates = g.nodes[size_t(k)].inputs[0];
      next = g.nodes[size_t(k)].inputs[1];
    }
    ValueId v = next_lr(s, r, next, lr);
    if (updates != kNone) {
      v = s.nodes().call("Where", {updates, v, lr});
      s.set_type(v, g.value(lr).type);
    }
    if (bound)
      g.value(v).name = *bound;
    else
      s.rename(v, name + "_new");
    if (!bound) step.update_binding.emplace_back(name, g.value_name(v));
    g.outputs.push_back(v);
  } else if (bound) {
    std::erase_if(step.update_binding, [&](const auto& b) { return b.first == name; });
  }
  s.finish_again(step);
  m.mark_state();
}

}  // namespace onnxtrain
