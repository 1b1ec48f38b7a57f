// Choosing what to compute again. A *group* is a value with its views: they share memory, so they
// live and are dropped together. Its readers fall into an early and a late part at the longest gap
// between two of them; the late part can read copies.
#include "passes/recompute.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.hpp"
#include "passes/live_groups.hpp"
#include "passes/passes.hpp"

namespace onnxtrain {

namespace {

constexpr int kFar = 1 << 30;

// What running a node costs: bytes moved, or arithmetic counted as bytes.
struct Work {
  double cost = 0;
  bool cheap = true;  // it moves bytes; it is no GEMM or convolution
};

// What is decided about a group.
struct Candidate {
  int early_end = 0;  // last step of the early part
  bool candidate = false;
};

// Steps at which copies run, and what is alive: the consequences of dropping a set of groups.
struct Schedule {
  std::vector<int> copy_at;  // by node: the step before which its copy runs; kFar: none
  AliveBytes bytes;
};

}  // namespace

struct Recomputation::Impl {
  Impl(const Graph& graph, const std::vector<ValueId>& keep, const OpTable& table)
      : g(renumbered(graph)),
        table(table),
        live(g, table),
        groups(live.groups),
        choices(groups.size()) {
    for (const Node& n : g.nodes) {
      work.push_back(work_of(n));
      reads.push_back(g.reads(n));
    }
    find_candidates(keep);
    dropped.assign(groups.size(), 0);
    now = schedule();
  }

  Graph g;
  const OpTable& table;
  mutable ThreadPool pool{1};  // Prepare wants one; nothing runs on it
  LiveGroups live;
  const std::vector<LiveGroup>& groups;
  std::vector<Candidate> choices;
  std::vector<char> dropped;                                // by group
  std::vector<Work> work;                                   // by node
  std::vector<std::vector<ValueId>> reads;                  // by node
  double budget = std::numeric_limits<double>::infinity();  // for all copies together
  Schedule now;

  static Graph renumbered(Graph graph) {
    graph.renumber();
    return graph;
  }

  // Can this node run twice and give the same?
  bool repeatable(const Node& n) const {
    const Op* op = table.find(n);
    if (!op || !op->shape || op->impls.empty()) return false;
    if (n.has("over_blocks")) return false;  // all blocks meet there, once
    for (const auto& [key, a] : n.attrs)
      if (std::holds_alternative<GraphPtr>(a)) return false;
    for (ValueId v : n.outputs)
      if (v != kNone && !is_planned(g, v)) return false;
    for (ValueId v : g.reads(n)) {
      const ValueDef& d = g.value(v);
      if (d.producer >= 0 && !is_planned(g, v)) return false;
    }
    return true;
  }

  Work work_of(const Node& n) const {
    double bytes = 0;
    bool known = true;  // an operator's own cost is asked for with all its shapes
    std::vector<TensorType> in, out;
    auto type = [&](ValueId v) {
      if (v == kNone) return TensorType{};
      if (!g.value(v).type.concrete()) {
        known = false;
        return TensorType{};
      }
      const TypeInfo& t = g.value(v).type;
      TensorType r{t.elem, t.concrete_shape()};
      bytes += double(r.size()) * double(dtype_size(r.dtype));
      return r;
    };
    for (ValueId v : n.inputs) in.push_back(type(v));
    for (ValueId v : n.outputs) out.push_back(type(v));
    const Op& op = table.get(n);
    if (!op.cost || !known) return {bytes, true};
    Prepare p(n, in, out, std::vector<const Tensor*>(in.size(), nullptr), pool);
    constexpr double kFlopsPerByte = 8;  // a core does about that many while it moves a byte
    const double flops = op.cost(p).flops;
    return {std::max(bytes, flops / kFlopsPerByte), flops <= 2 * kFlopsPerByte * bytes};
  }

  void find_candidates(const std::vector<ValueId>& keep) {
    std::vector<char> pinned(groups.size(), 0), updates(g.values.size(), 0);
    auto pin = [&](ValueId v) {
      if (int of = live.of(v); of >= 0) pinned[size_t(of)] = 1;
    };
    for (ValueId v : g.outputs) pin(v);
    for (ValueId v : keep) {
      pin(v);
      updates[size_t(v)] = 1;
    }
    for (const Node& n : g.nodes) {
      bool writes = false, subgraphs = false;
      for (ValueId v : n.outputs) writes |= v != kNone && updates[size_t(v)];
      for (const auto& [key, a] : n.attrs) subgraphs |= std::holds_alternative<GraphPtr>(a);
      bool only_updates = writes;  // an optimizer; a BatchNormalization has other results too
      for (ValueId v : n.outputs) only_updates &= v == kNone || updates[size_t(v)];
      if (only_updates || subgraphs)
        for (ValueId v : g.reads(n)) pin(v);
    }
    for (size_t k = 0; k < groups.size(); ++k) {
      const LiveGroup& group = groups[k];
      if (pinned[k] || group.uses.empty() || !repeatable(g.nodes[size_t(group.first)])) continue;
      Candidate& c = choices[k];
      int at = group.first, gap = 0;
      for (int use : group.uses) {
        if (use - at > gap) {
          gap = use - at;
          c.early_end = at;
        }
        at = use;
      }
      c.candidate = gap > 2;
    }
  }

  // Does a reader at this step see the copy of a dropped group?
  bool late(int of, int step) const {
    return of >= 0 && dropped[size_t(of)] && step > choices[size_t(of)].early_end;
  }

  Schedule schedule() const {
    const int steps = int(g.nodes.size());
    Schedule s{{}, AliveBytes(g.nodes.size())};
    s.copy_at.assign(g.nodes.size(), kFar);
    std::vector<int> last(groups.size());  // of the original
    std::vector<int> copy_first(groups.size(), kFar), copy_last(groups.size(), -1);
    for (size_t k = 0; k < groups.size(); ++k) last[k] = groups[k].first;
    for (ValueId v : g.outputs)
      if (int of = live.of(v); of >= 0) last[size_t(of)] = steps;
    auto read = [&](ValueId v, int step) {
      const int of = live.of(v);
      if (of < 0) return;
      if (!late(of, step)) {
        last[size_t(of)] = std::max(last[size_t(of)], step);
        return;
      }
      copy_last[size_t(of)] = std::max(copy_last[size_t(of)], step);
      int& at = s.copy_at[size_t(g.value(v).producer)];
      at = std::min(at, step);
    };
    for (int k = steps; k-- > 0;)
      for (ValueId v : reads[size_t(k)]) read(v, k);
    for (int k = steps; k-- > 0;) {  // copies read too; they are found from the end
      const int at = s.copy_at[size_t(k)];
      if (at == kFar) continue;
      for (ValueId v : reads[size_t(k)]) read(v, at);
      for (ValueId v : g.nodes[size_t(k)].outputs) {
        if (v == kNone) continue;
        const int of = live.of(v);
        if (of < 0) continue;
        copy_first[size_t(of)] = std::min(copy_first[size_t(of)], at);
        copy_last[size_t(of)] = std::max(copy_last[size_t(of)], at);
      }
    }
    for (size_t k = 0; k < groups.size(); ++k) {
      s.bytes.add(groups[k].first, last[k], groups[k].bytes);
      if (copy_first[k] < kFar) s.bytes.add(copy_first[k], copy_last[k], groups[k].bytes);
    }
    s.bytes.finish();
    return s;
  }

  const Work& work_for(size_t group) const { return work[size_t(groups[group].first)]; }

  double cost_of(const Schedule& s) const {
    double sum = 0;
    for (size_t k = 0; k < work.size(); ++k)
      if (s.copy_at[k] < kFar) sum += work[k].cost;
    return sum;
  }

  // Alive at the peak, not read there, and not tried in vain.
  std::vector<int> waiting(const std::vector<char>& tried, bool cheap_only) const {
    std::vector<int> list;
    const double left = budget - cost_of(now);
    for (size_t k = 0; k < groups.size(); ++k) {
      const Candidate& c = choices[k];
      if (!c.candidate || dropped[k] || tried[k] || (cheap_only && !work_for(k).cheap)) continue;
      if (work_for(k).cost > left) continue;
      const auto& uses = groups[k].uses;
      const int step = now.bytes.peak_step;
      if (c.early_end<step&& * std::upper_bound(uses.begin(), uses.end(), c.early_end)> step)
        list.push_back(int(k));
    }
    std::sort(list.begin(), list.end(), [&](int a, int b) {
      const size_t x = groups[size_t(a)].bytes, y = groups[size_t(b)].bytes;
      const double p = double(x) / work_for(size_t(a)).cost,
                   q = double(y) / work_for(size_t(b)).cost;
      if (p != q) return p > q;
      return x != y ? x > y : a < b;
    });
    return list;
  }

  // Drops one more group if that helps.
  bool drop_one(std::vector<char>& tried, bool cheap_only) {
    for (int k : waiting(tried, cheap_only)) {
      dropped[size_t(k)] = 1;
      Schedule next = schedule();
      const size_t at = size_t(now.bytes.peak_step);
      if (next.bytes.peak <= now.bytes.peak && next.bytes.alive[at] < now.bytes.alive[at] &&
          cost_of(next) <= budget) {
        now = std::move(next);
        return true;
      }
      dropped[size_t(k)] = 0;
      tried[size_t(k)] = 1;
    }
    return false;
  }

  bool reduce_to(size_t target) {
    for (bool cheap_only : {true, false}) {
      if (!cheap_only && std::isfinite(budget)) break;
      std::vector<char> tried(groups.size(), 0);
      while (now.bytes.peak > target) {
        if (drop_one(tried, cheap_only)) continue;
        // what did not help before may help now
        if (std::isfinite(budget)) break;
        if (std::find(tried.begin(), tried.end(), 1) == tried.end()) break;
        std::fill(tried.begin(), tried.end(), 0);
        if (!drop_one(tried, cheap_only)) break;
      }
    }
    if (now.bytes.peak > target) return false;
    take_back(target);
    return true;
  }

  // Dearest first: what is not needed for the target after all is not recomputed.
  void take_back(size_t target) {
    std::vector<int> list;
    for (size_t k = 0; k < groups.size(); ++k)
      if (dropped[k]) list.push_back(int(k));
    std::sort(list.begin(), list.end(), [&](int a, int b) {
      const double p = work_for(size_t(a)).cost, q = work_for(size_t(b)).cost;
      return p != q ? p > q : a < b;
    });
    for (int k : list) {
      dropped[size_t(k)] = 0;
      Schedule next = schedule();
      if (next.bytes.peak <= target)
        now = std::move(next);
      else
        dropped[size_t(k)] = 1;
    }
  }

  Graph rewritten() const {
    Graph out = g.clone();
    std::vector<ValueId> copy(g.values.size(), kNone);
    std::vector<std::vector<int>> before(g.nodes.size());
    for (size_t k = 0; k < g.nodes.size(); ++k)
      if (now.copy_at[k] < kFar) before[size_t(now.copy_at[k])].push_back(int(k));
    std::vector<Node> order;
    auto redirect = [&](Node& n, int step) {
      for (ValueId& v : n.inputs)
        if (v != kNone && late(live.of(v), step) && copy[size_t(v)] != kNone) v = copy[size_t(v)];
    };
    for (size_t step = 0; step < g.nodes.size(); ++step) {
      for (int k : before[step]) {
        Node n = g.nodes[size_t(k)];
        redirect(n, int(step));
        if (n.random_stream == 0) n.random_stream = hash64(n.name.data(), n.name.size(), 1);
        if (n.recomputes.empty()) n.recomputes = n.name;
        n.name += "_again";
        for (ValueId& v : n.outputs) {
          if (v == kNone) continue;
          const ValueDef& d = g.value(v);
          v = copy[size_t(v)] = out.add_value(out.unique_name(d.name), d.type);
        }
        order.push_back(std::move(n));
      }
      redirect(out.nodes[step], int(step));
      order.push_back(std::move(out.nodes[step]));
    }
    out.nodes = std::move(order);
    out.renumber();
    return out;
  }
};

Recomputation::Recomputation(const Graph& g, const std::vector<ValueId>& keep, const OpTable& table)
    : impl_(std::make_unique<Impl>(g, keep, table)) {}

Recomputation::~Recomputation() = default;

size_t Recomputation::peak() const { return impl_->now.bytes.peak; }
bool Recomputation::reduce_to(size_t target) { return impl_->reduce_to(target); }
Graph Recomputation::rewritten() const { return impl_->rewritten(); }

int Recomputation::copies() const {
  int n = 0;
  for (size_t k = 0; k < impl_->now.copy_at.size(); ++k)
    n += impl_->now.copy_at[k] < kFar && !impl_->live.is_view(k);
  return n;
}

void Recomputation::spend(double share) {
  double all = 0;
  for (const Work& w : impl_->work) all += w.cost;
  impl_->budget = share * all;
  impl_->reduce_to(0);
  impl_->budget = std::numeric_limits<double>::infinity();
}

void pass_recompute(Graph& g, const PassContext& c) {
  constexpr size_t kSmall = 32 << 20;  // not worth the search
  constexpr double kShare = 0.03;      // of what is counted; gradients of GEMMs are not yet
  g.renumber();
  size_t all = 0;
  for (const LiveGroup& group : LiveGroups(g, c.table).groups) all += group.bytes;
  if (all < kSmall) return;
  Recomputation r(g, c.keep, c.table);
  if (r.peak() < kSmall) return;
  r.spend(kShare);
  if (r.copies() > 0) g = r.rewritten();
}

}  // namespace onnxtrain
