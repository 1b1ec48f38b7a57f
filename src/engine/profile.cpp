// Collecting times and what a node costs.
#include "engine/profile.hpp"

#include <algorithm>
#include <cstdio>

#include "core/text.hpp"
#include "engine/session.hpp"

namespace onnxtrain {

namespace {

// Forward is what an output other than a new state depends on; what is assigned to state is the
// update; the rest is backward.
std::vector<Phase> phases_of(const Plan& plan) {
  const Graph& g = plan.graph;
  std::vector<char> needed(g.values.size(), 0), assigned(g.values.size(), 0);
  for (const Update& u : plan.updates) assigned[size_t(u.value)] = 1;
  for (ValueId v : g.outputs)
    if (!assigned[size_t(v)] || plan.updates.empty()) needed[size_t(v)] = 1;
  std::vector<Phase> phases(g.nodes.size(), Phase::kBackward);
  for (size_t k = g.nodes.size(); k-- > 0;) {
    bool forward = false, update = false;
    for (ValueId v : g.nodes[k].outputs) {
      if (v == kNone) continue;
      forward |= needed[size_t(v)] != 0;
      update |= assigned[size_t(v)] != 0;
    }
    if (!forward && update) phases[k] = Phase::kUpdate;
    if (!forward) continue;
    phases[k] = Phase::kForward;
    for (ValueId v : g.reads(g.nodes[k])) needed[size_t(v)] = 1;
  }
  return phases;
}

double bytes_of(const TensorType& t) { return double(t.size()) * double(dtype_size(t.dtype)); }

// Cost and shapes of one step, as its kernel was prepared.
void describe(const Plan& plan, const Step& s, NodeProfile& n) {
  const Node& node = plan.graph.nodes[size_t(s.node)];
  std::vector<TensorType> in, out;
  bool known = !s.dynamic;
  auto types = [&](const std::vector<ValueId>& ids, std::vector<TensorType>& to) {
    for (ValueId v : ids) {
      to.push_back(v == kNone ? TensorType{} : plan.slots[size_t(v)].type);
      known &= v == kNone || plan.slots[size_t(v)].place != Place::kDynamic;
    }
  };
  types(node.inputs, in);
  types(node.outputs, out);
  if (!known) {
    n.shapes = "dynamic";
    return;
  }
  for (const TensorType& t : in)
    if (t.present() && n.shapes.size() < 48)
      n.shapes += cat(n.shapes.empty() ? "" : " ", to_string(t.shape));
  static ThreadPool none(1);
  Prepare p(node, in, out, std::vector<const Tensor*>(in.size(), nullptr), none);
  if (s.op->cost) {
    n.cost = s.op->cost(p);
    return;
  }
  for (const auto* side : {&in, &out})
    for (const TensorType& t : *side)
      if (t.present()) n.cost.bytes += bytes_of(t);
  // element-wise: one operation each
  bool elementwise = s.op->broadcasts || s.op->micro_op >= 0;
  if (elementwise && !out.empty() && out[0].present()) n.cost.flops = double(out[0].size());
}

// Seconds of one call: the best of several runs of a graph with one node.
double time_one(int threads, const char* op, const Shape& shape) {
  auto m = std::make_shared<Model>();
  Graph& g = m->edit_main();
  ValueId a = g.add_value("a", TypeInfo::tensor(DType::kFloat, shape));
  ValueId b = g.add_value("b", TypeInfo::tensor(DType::kFloat, shape));
  g.inputs = {a, b};
  Node n;
  n.op = op;
  n.version = 17;
  n.inputs = {a, b};
  g.outputs = g.add_node(std::move(n), 1, "y");
  ProgramOptions o;
  o.threads = threads;
  Session s(m, o);
  Feeds feeds;
  for (const char* name : {"a", "b"}) {
    Tensor t(DType::kFloat, shape);
    std::fill_n(t.as<float>(), t.size(), 0.5f);
    feeds[name] = t;
  }
  Profiler profiler;
  s.run(feeds);
  s.set_observer(&profiler);
  double best = 1e9;
  for (int k = 0; k < 5; ++k) {
    profiler.clear();
    s.run(feeds);
    for (const NodeProfile& p : profiler.nodes())
      if (p.calls > 0) best = std::min(best, p.seconds / double(p.calls));
  }
  return best;
}

}  // namespace

const char* phase_name(Phase p) {
  return p == Phase::kForward ? "forward" : p == Phase::kBackward ? "backward" : "update";
}

Peak Peak::measure(int threads) {
  constexpr int64_t kSide = 1024, kLong = 8 << 20;
  Peak r;
  r.flops = 2.0 * double(kSide) * double(kSide) * double(kSide) /
            time_one(threads, "MatMul", {kSide, kSide});
  r.bytes = 3.0 * 4.0 * double(kLong) / time_one(threads, "Add", {kLong});
  return r;
}

double Peak::share(const NodeProfile& n) const {
  if (n.seconds <= 0 || flops <= 0 || bytes <= 0) return 0;
  double least = std::max(n.cost.flops / flops, n.cost.bytes / bytes);
  return least * double(n.calls) / n.seconds;
}

std::vector<NodeProfile> describe_nodes(const Plan& plan) {
  std::vector<NodeProfile> nodes(plan.graph.nodes.size());
  std::vector<Phase> phases = phases_of(plan);
  for (const Step& s : plan.steps) {
    const Node& node = plan.graph.nodes[size_t(s.node)];
    NodeProfile& n = nodes[size_t(s.node)];
    n.op = node.op;
    n.name = node.name;
    if (n.name.empty())
      for (ValueId v : node.outputs)
        if (v != kNone && n.name.empty()) n.name = plan.graph.value_name(v);
    n.impl = s.impl;
    n.refused = s.refused;
    n.phase = phases[size_t(s.node)];
    describe(plan, s, n);
  }
  return nodes;
}

std::vector<NodeProfile>& Profiler::of(const Plan& plan) {
  auto it = plans_.find(&plan);
  if (it != plans_.end() && it->second.size() == plan.graph.nodes.size()) return it->second;
  if (it == plans_.end()) {
    order_.push_back(&plan);
    add_stages(plan);
  }
  return plans_[&plan] = describe_nodes(plan);
}

void Profiler::add_stages(const Plan& plan) {
  for (const Plan::Stage& s : plan.stages) {
    auto same = [&](const Plan::Stage& o) { return o.name == s.name; };
    auto it = std::find_if(stages_.begin(), stages_.end(), same);
    if (it == stages_.end()) {
      stages_.push_back(s);
      continue;
    }
    it->seconds += s.seconds;
    it->nodes_before += s.nodes_before;
    it->nodes_after += s.nodes_after;
  }
}

void Profiler::before(const Plan& plan, const Step&) {
  of(plan);
  begun_.push_back(Clock::now());
}

void Profiler::after(const Plan& plan, const Step& step) {
  Clock::time_point end = Clock::now();
  auto seconds = [](Clock::duration d) { return std::chrono::duration<double>(d).count(); };
  double took = seconds(end - begun_.back());
  if (events_.size() < max_events_)
    events_.push_back({&plan, step.node, seconds(begun_.back() - start_), took});
  begun_.pop_back();
  NodeProfile& n = of(plan)[size_t(step.node)];
  if (step.dynamic) {  // chosen while it ran
    n.impl = step.impl;
    n.refused = step.refused;
  }
  n.seconds += took;
  ++n.calls;
}

void Profiler::clear() {
  for (auto& [plan, nodes] : plans_)
    for (NodeProfile& n : nodes) {
      n.calls = 0;
      n.seconds = 0;
    }
  events_.clear();
  start_ = Clock::now();
}

std::vector<NodeProfile> Profiler::nodes() const {
  std::vector<NodeProfile> all;
  for (const Plan* p : order_)
    for (const NodeProfile& n : plans_.at(p))
      if (n.calls > 0) all.push_back(n);
  return all;
}

std::string Profiler::chrome_trace() const {
  std::string out = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  bool first = true;
  double at = 0;  // stages lie one after the other on a row of their own
  for (const Plan::Stage& s : stages_) {
    char numbers[80];
    std::snprintf(numbers, sizeof numbers, "\"ts\":%.3f,\"dur\":%.3f", at * 1e6, s.seconds * 1e6);
    out +=
        cat(first ? "" : ",",
            "\n{\"ph\":\"X\",\"pid\":1,\"tid\":2,\"cat\":\"prepare\",\"name\":", in_quotes(s.name),
            ",", numbers, ",\"args\":{\"nodes_before\":", s.nodes_before,
            ",\"nodes_after\":", s.nodes_after, "}}");
    at += s.seconds;
    first = false;
  }
  for (const Event& e : events_) {
    const NodeProfile& n = plans_.at(e.plan)[size_t(e.node)];
    char numbers[160];
    std::snprintf(numbers, sizeof numbers,
                  "\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"gflops\":%.3f,\"gbytes_per_s\":%.3f",
                  e.begin * 1e6, e.seconds * 1e6, n.cost.flops / std::max(e.seconds, 1e-9) / 1e9,
                  n.cost.bytes / std::max(e.seconds, 1e-9) / 1e9);
    out += cat(first ? "" : ",",
               "\n{\"ph\":\"X\",\"pid\":1,\"tid\":1,\"cat\":", in_quotes(phase_name(n.phase)),
               ",\"name\":", in_quotes(n.op + " " + n.name), ",", numbers,
               ",\"impl\":", in_quotes(n.impl), ",\"shapes\":", in_quotes(n.shapes), "}}");
    first = false;
  }
  return out + "\n]}\n";
}

}  // namespace onnxtrain
