// Joins chains and trees of float32 element-wise nodes into one FusedElementwise node, which goes
// through memory once. Values inside have no other readers and the shape of the result; operands
// from outside may broadcast.
#include <algorithm>

#include "op/may_overflow.hpp"
#include "passes/passes.hpp"

namespace onnxtrain {

namespace {

constexpr size_t kMaxInputs = 12, kMaxSteps = 24;

class Fuser {
 public:
  Fuser(Graph& g, const PassContext& c)
      : g_(g), c_(c), readers_(g.consumers()), taken_(g.nodes.size(), 0) {
    fixed_.assign(g.values.size(), 0);
    for (ValueId v : g.outputs) fixed_[size_t(v)] = 1;
    for (ValueId v : c.keep) fixed_[size_t(v)] = 1;
    g.renumber();
  }

  void run() {
    std::vector<char> removed(g_.nodes.size(), 0);
    for (size_t k = g_.nodes.size(); k-- > 0;) {
      if (taken_[k] || !fusable(g_.nodes[k])) continue;
      std::vector<NodeId> group = grow(NodeId(k));
      if (group.size() < 2) continue;
      for (NodeId m : group) taken_[size_t(m)] = removed[size_t(m)] = 1;
      removed[k] = 0;
      g_.nodes[k] = fused(group);
    }
    std::vector<Node> kept;
    for (size_t k = 0; k < g_.nodes.size(); ++k)
      if (!removed[k]) kept.push_back(std::move(g_.nodes[k]));
    g_.nodes = std::move(kept);
  }

 private:
  const TypeInfo& type(ValueId v) const { return g_.value(v).type; }
  DType elem(ValueId v) const { return type(v).elem; }
  bool known(ValueId v) const {
    return v != kNone && type(v).concrete() &&
           (elem(v) == DType::kFloat || elem(v) == DType::kBool);
  }

  bool fusable(const Node& n) const {
    const Op* op = c_.table.find(n);
    if (!op || op->micro_op < 0 || n.outputs.size() != 1 || !known(n.outputs[0])) return false;
    if (n.inputs.empty() || n.inputs.size() > 3) return false;
    for (ValueId v : n.inputs)
      if (!known(v)) return false;
    if (n.domain.empty() && n.version < 7 && n.has("axis")) return false;  // old broadcasting
    if (n.is("Max") || n.is("Min") || n.is("Sum")) return n.inputs.size() == 2;
    // there is a step for the usual form only
    if (n.is("Swish") || n.is("SwishGrad", kOwnDomain)) return n.f("alpha", 1) == 1;
    if (n.is("Cast")) return elem(n.outputs[0]) == DType::kFloat;
    if (n.is("Where")) return elem(n.outputs[0]) == DType::kFloat;
    return true;
  }

  std::vector<ValueId> outside(const std::vector<NodeId>& group) const {
    std::vector<ValueId> in;
    for (NodeId m : group)
      for (ValueId v : g_.nodes[size_t(m)].inputs) {
        NodeId p = g_.value(v).producer;
        bool inside = std::find(group.begin(), group.end(), p) != group.end();
        if (!inside && std::find(in.begin(), in.end(), v) == in.end()) in.push_back(v);
      }
    return in;
  }

  // May the producer of v join the group?
  bool joins(ValueId v, const std::vector<NodeId>& group, const Shape& shape) const {
    NodeId p = g_.value(v).producer;
    if (p < 0 || taken_[size_t(p)] || fixed_[size_t(v)] || !fusable(g_.nodes[size_t(p)]))
      return false;
    if (type(v).concrete_shape() != shape) return false;
    for (NodeId r : readers_[size_t(v)])
      if (std::find(group.begin(), group.end(), r) == group.end()) return false;
    return true;
  }

  // The nodes that are computed together with `root`, in order.
  std::vector<NodeId> grow(NodeId root) const {
    std::vector<NodeId> group = {root};
    Shape shape = type(g_.nodes[size_t(root)].outputs[0]).concrete_shape();
    for (bool grew = true; grew && group.size() < kMaxSteps;) {
      grew = false;
      for (ValueId v : outside(group)) {
        if (!joins(v, group, shape)) continue;
        group.push_back(g_.value(v).producer);
        if (outside(group).size() > kMaxInputs) {
          group.pop_back();
          continue;
        }
        grew = true;
        break;
      }
    }
    std::sort(group.begin(), group.end());
    return group;
  }

  Node fused(const std::vector<NodeId>& group) const {
    const Node& root = g_.nodes[size_t(group.back())];
    Node n;
    n.domain = kOwnDomain;
    n.op = "FusedElementwise";
    n.version = 1;
    n.name = root.name;
    n.inputs = outside(group);
    n.outputs = root.outputs;
    std::vector<int64_t> program;
    for (size_t k = 0; k < group.size(); ++k) {
      const Node& s = g_.nodes[size_t(group[k])];
      for (const auto& [key, a] : s.attrs) n.attrs[cat(k, ".", key)] = a;  // "2.alpha"
      if (may_overflow(s)) n.attrs["may_overflow"] = int64_t(1);
      program.push_back(c_.table.find(s)->micro_op);
      program.push_back(int64_t(s.inputs.size()));
      for (ValueId v : s.inputs) {
        auto it = std::find(group.begin(), group.end(), g_.value(v).producer);
        int64_t id = it != group.end()
                         ? int64_t(n.inputs.size()) + (it - group.begin())
                         : std::find(n.inputs.begin(), n.inputs.end(), v) - n.inputs.begin();
        program.push_back(id);
      }
    }
    n.attrs["program"] = std::move(program);
    n.attrs["to"] = int64_t(elem(root.outputs[0]));
    return n;
  }

  Graph& g_;
  const PassContext& c_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<char> taken_, fixed_;
};

}  // namespace

void pass_fuse_elementwise(Graph& g, const PassContext& c) { Fuser(g, c).run(); }

}  // namespace onnxtrain
