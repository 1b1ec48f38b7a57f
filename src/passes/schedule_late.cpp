// As-late-as-possible scheduling: a node whose result waits long for its first reader is moved
// behind when its operands are smaller than its result. Weight gradients of layers with large
// weights and small activations are then computed at the end of the step. Only moves that lower the
// peak memory are kept.
#include <algorithm>
#include <iterator>

#include "passes/live_groups.hpp"
#include "passes/passes.hpp"

namespace onnxtrain {

namespace {

class ScheduleLate {
 public:
  ScheduleLate(Graph& g, const PassContext& c)
      : g_(g), live_(g, c.table), moved_(g.nodes.size(), 0), at_(g.nodes.size()) {
    find_tail(c.keep);
    outputs_.assign(live_.groups.size(), 0);
    auto pin = [&](ValueId v) {
      if (int group = live_.of(v); group >= 0) outputs_[size_t(group)] = 1;
    };
    for (ValueId v : g.outputs) pin(v);
    for (ValueId v : c.keep) pin(v);
    made_.resize(g.nodes.size());
    for (size_t k = 0; k < live_.groups.size(); ++k)
      made_[size_t(live_.groups[k].first)].push_back(int(k));
    views_.resize(live_.groups.size());
    for (size_t k = 0; k < g.nodes.size(); ++k)
      if (live_.is_view(k)) views_[size_t(live_.of(g.nodes[k].outputs[0]))].push_back(int(k));
  }

  void run() {
    AliveBytes now = measure();
    for (bool better = true; better;) {
      better = false;
      for (int node : waiting(now.peak_step)) {
        const std::vector<int> before = at_;
        const int to = first_reader(node);
        for_each_part(node, [&](size_t k) { at_[k] = std::max(at_[k], to); });
        AliveBytes next = measure();
        const size_t peak = size_t(now.peak_step);
        const bool helps = next.peak <= now.peak && next.alive[peak] < now.alive[peak];
        moved_[size_t(node)] = helps ? kMoved : kInVain;
        if (helps) {
          for_each_part(node, [&](size_t k) { moved_[k] = kMoved; });
          now = std::move(next);
          better = true;
          break;
        }
        at_ = before;
      }
    }
    reorder();
  }

 private:
  static constexpr char kMoved = 1, kInVain = 2;

  // What only updates state runs at the end: the planner wants it so too.
  void find_tail(const std::vector<ValueId>& keep) {
    std::vector<char> update(g_.values.size(), 0);
    for (ValueId v : keep) update[size_t(v)] = 1;
    for (ValueId v : g_.outputs)
      if (!update[size_t(v)]) update[size_t(v)] = 2;
    const auto readers = g_.consumers();
    tail_.assign(g_.nodes.size(), 0);
    for (size_t k = g_.nodes.size(); k-- > 0;) {
      bool tail = !g_.nodes[k].outputs.empty();
      for (ValueId v : g_.nodes[k].outputs) {
        if (v == kNone) continue;
        tail &= update[size_t(v)] == 1;
        for (NodeId r : readers[size_t(v)]) tail &= tail_[size_t(r)] != 0;
      }
      tail_[k] = tail;
      at_[k] = tail ? int(g_.nodes.size()) : int(k);
    }
  }

  // The node and the views of what it makes.
  template <class F>
  void for_each_part(int node, F&& f) {
    f(size_t(node));
    for (int group : made_[size_t(node)])
      for (int view : views_[size_t(group)]) f(size_t(view));
  }

  // The step of the first node that reads its results, views aside.
  int first_reader(int node) const {
    int first = int(g_.nodes.size());
    for (int group : made_[size_t(node)])
      for (int use : live_.groups[size_t(group)].uses)
        if (!live_.is_view(size_t(use))) first = std::min(first, at_[size_t(use)]);
    return first;
  }

  AliveBytes measure() const {
    const int end = int(g_.nodes.size());
    AliveBytes sum(g_.nodes.size());
    for (size_t k = 0; k < live_.groups.size(); ++k) {
      const LiveGroup& group = live_.groups[k];
      int last = outputs_[k] ? end : at_[size_t(group.first)];
      for (int use : group.uses) last = std::max(last, at_[size_t(use)]);
      sum.add(at_[size_t(group.first)], last, group.bytes);
    }
    sum.finish();
    return sum;
  }

  // Nodes whose results are alive at this step and are first read behind it, largest first.
  std::vector<int> waiting(int step) const {
    std::vector<int> list;
    std::vector<size_t> bytes(g_.nodes.size(), 0);
    for (size_t k = 0; k < g_.nodes.size(); ++k) {
      if (moved_[k] || tail_[k] || live_.is_view(k) || at_[k] > step) continue;
      if (first_reader(int(k)) <= step) continue;
      for (int group : made_[k]) bytes[k] += live_.groups[size_t(group)].bytes;
      if (bytes[k] > 0 && movable(g_.nodes[k])) list.push_back(int(k));
    }
    std::sort(list.begin(), list.end(), [&](int a, int b) {
      return bytes[size_t(a)] != bytes[size_t(b)] ? bytes[size_t(a)] > bytes[size_t(b)] : a < b;
    });
    return list;
  }

  // Everything it makes is planned, so that all its readers are known here.
  bool movable(const Node& n) const {
    for (const auto& [key, a] : n.attrs)
      if (std::holds_alternative<GraphPtr>(a)) return false;
    return std::all_of(n.outputs.begin(), n.outputs.end(),
                       [&](ValueId v) { return v == kNone || live_.of(v) >= 0; });
  }

  void reorder() {
    std::vector<std::vector<size_t>> before(g_.nodes.size() + 1);
    for (size_t k = 0; k < g_.nodes.size(); ++k)
      if (moved_[k] == kMoved) before[size_t(at_[k])].push_back(k);
    std::vector<Node> order, tail;
    auto put = [&](size_t k) { (tail_[k] ? tail : order).push_back(std::move(g_.nodes[k])); };
    for (size_t k = 0; k <= g_.nodes.size(); ++k) {
      for (size_t m : before[k]) put(m);
      if (k < g_.nodes.size() && moved_[k] != kMoved) put(k);
    }
    std::move(tail.begin(), tail.end(), std::back_inserter(order));
    g_.nodes = std::move(order);
  }

  Graph& g_;
  LiveGroups live_;
  std::vector<char> moved_, tail_, outputs_;
  std::vector<int> at_;                  // by node: the step it runs at
  std::vector<std::vector<int>> made_;   // by node: the groups it makes
  std::vector<std::vector<int>> views_;  // by group: the nodes that make its views
};

}  // namespace

void pass_schedule_late(Graph& g, const PassContext& c) {
  g.renumber();
  ScheduleLate(g, c).run();
}

}  // namespace onnxtrain
