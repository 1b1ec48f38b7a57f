// Learning-rate schedules with PyTorch's values. Each formula is written once, over a number type:
// with double it gives the learning rate of a step, with Formula it makes the nodes that compute it in the
// file, in double precision, so both agree at every step.
#include "convert/schedules.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

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
      usage_error("OT1233", cat(key, " is ", it->second, ", it must be positive"));
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
N one_cycle(const Numbers& n, double rate, double total, N k) {
  double top = n.get("max_lr", rate), start = top / n.get("div_factor", 25),
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
N main_rate(const Recipe& r, double rate, double warmup, N k) {
  Numbers n{r.schedule};
  const std::string& kind = r.schedule.kind;
  auto c = [&](double v) { return literal(k, v); };
  if (kind == "constant") return c(rate);
  double gamma = n.get("gamma", kind == "exponential" ? 0.95 : 0.1);
  if (kind == "step") return c(rate) * power(c(gamma), down(k / c(n.need("step_size"))));
  if (kind == "multistep") {
    if (r.schedule.milestones.empty())
      usage_error("OT1246", "the schedule multistep needs 'milestones'",
                  "give the steps:  --schedule-arg milestones=1000,2000   (in Python: {\"kind\": "
                  "\"multistep\", \"milestones\": [1000, 2000]})");
    N passed = c(0);
    for (int64_t m : r.schedule.milestones) passed = passed + if_less(k, c(double(m)), c(0), c(1));
    return c(rate) * power(c(gamma), passed);
  }
  if (kind == "exponential") return c(rate) * power(c(gamma), k);
  double total = n.need("total_steps") - warmup, low = n.get("min_lr", 0);
  if (total <= 0) usage_error("OT1233", "warmup_steps leave nothing of total_steps");
  if (kind == "cosine")
    return c(low) + c(rate - low) * (c(1) + cosine(c(std::numbers::pi) * k / c(total))) / c(2);
  if (kind == "onecycle") return one_cycle(n, rate, total, k);
  N part = least(k, c(total)) / c(total);
  if (kind == "linear") {
    double start = n.get("start_factor", 1), end = n.get("end_factor", low / rate);
    return c(rate) * (c(start) + c(end - start) * part);
  }
  OT_ASSERT(kind == "polynomial");
  return c(low) + c(rate - low) * power(c(1) - part, c(n.get("power", 1)));
}

template <class N>
N rate_at(const Recipe& r, N k) {
  double rate = default_rate(r.optimizer);
  double warmup = Numbers{r.schedule}.get("warmup_steps", 0);
  if (warmup <= 0) return main_rate(r, rate, 0, k);
  // (k+1)/(warmup+1) by default: never 0, 1 right after the last step of warm-up
  double start = Numbers{r.schedule}.get("warmup_start", 1 / (warmup + 1));
  N main = main_rate(r, rate, warmup, k - literal(k, warmup));
  double first = main_rate(r, rate, warmup, 0.0);
  N rising =
      literal(k, first) * (literal(k, start) + literal(k, 1 - start) * k / literal(k, warmup));
  return if_less(k, literal(k, warmup), rising, main);
}

bool changes(const Recipe& r) {
  auto it = r.schedule.numbers.find("warmup_steps");
  return r.schedule.kind != "constant" || (it != r.schedule.numbers.end() && it->second > 0);
}

}  // namespace

double scheduled_rate(const Recipe& r, int64_t step) { return rate_at(r, double(step)); }

ValueId add_rate(StepBuilder& s, const Recipe& r, const Counter&, int64_t, DType type) {
  return s.add_state("learning_rate", scalar_tensor(scheduled_rate(r, 0), type));
}

void add_rate_update(StepBuilder& s, const Recipe& r, const Counter& counter, int64_t t0,
                     ValueId rate) {
  if (!changes(r)) return;
  Formula done = {&s, s.cast(counter.next, DType::kDouble)};
  s.set_type(done.v, TypeInfo::tensor(DType::kDouble, {}));
  if (t0 != 0) done = done - literal(done, double(t0));
  const TypeInfo type = s.graph().value(rate).type;
  Formula next = rate_at(r, done);
  ValueId v = s.cast(next.v, type.elem);
  s.set_type(v, type);
  s.bind(s.graph().value_name(rate), v);
}

}  // namespace onnxtrain
