// Updates of small state tensors as one: an optimizer writes the same dozen element-wise operators
// for every tensor, and a runtime takes longer to start each of them than to compute it. Tensors
// whose updates are written alike are laid behind each other, updated together and cut apart again.
// Element by element nothing changes.
#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <set>

#include "convert/portable/stages.hpp"

namespace onnxtrain::portable {

namespace {

using Names = std::set<std::string, std::less<>>;

constexpr int64_t kLargest = 16384;  // elements: larger ones take longer to copy than to start

bool is_elementwise(const Node& n) {
  static const Names all = {"Add",  "Sub",     "Mul",   "Div",  "Neg",        "Abs",  "Sign",
                            "Sqrt", "Pow",     "Exp",   "Log",  "Max",        "Min",  "Where",
                            "Less", "Greater", "Equal", "Not",  "And",        "Or",   "Cast",
                            "Tanh", "Sigmoid", "Relu",  "Clip", "Reciprocal", "Floor"};
  return n.domain.empty() && n.outputs.size() == 1 && all.contains(n.op);
}

// The updates of one shape that share nodes: the weight, its moments.
struct Lane {
  std::vector<ValueId> outputs;
  std::vector<ValueId> leaves;   // what the updates are computed from, in the order they are met
  std::vector<NodeId> nodes;     // the same of nodes, operands first
  std::vector<ValueId> singles;  // single numbers among the operands: the same for all lanes
  std::string text;              // what is computed, with leaves and nodes by number
  Shape shape;
};

class UpdateReader {
 public:
  explicit UpdateReader(const Graph& g) : g_(g) {}

  // The update of `v`, added to the lane; false: it is too large, of unknown size, or no formula.
  bool add(Lane& lane, ValueId v) {
    if (!sized(v) || !inner(lane, v)) return false;
    lane.text += cat(";out ", number(lane, v));
    lane.outputs.push_back(v);
    return true;
  }

 private:
  bool sized(ValueId v) const {
    const TypeInfo& t = g_.value(v).type;
    if (!t.concrete()) return false;
    const int64_t n = num_elements(t.concrete_shape());
    return n > 1 && n <= kLargest;
  }
  bool is_single(ValueId v) const {
    const TypeInfo& t = g_.value(v).type;
    return t.concrete() && t.shape->size() <= 1 && num_elements(t.concrete_shape()) == 1;
  }
  // Computed element by element from tensors of the lane's shape and single numbers.
  bool inner(const Lane& lane, ValueId v) const {
    const NodeId k = g_.value(v).producer;
    if (k < 0 || !is_elementwise(g_.nodes[size_t(k)]) || !same_shape(lane, v)) return false;
    bool any = false;
    for (ValueId i : g_.nodes[size_t(k)].inputs) {
      if (i == kNone || is_single(i)) continue;
      if (!same_shape(lane, i)) return false;
      any = true;
    }
    return any;
  }
  bool same_shape(const Lane& lane, ValueId v) const {
    const TypeInfo& t = g_.value(v).type;
    return t.concrete() && t.concrete_shape() == lane.shape;
  }

  std::string number(Lane& lane, ValueId v) {
    if (v == kNone) return "-";
    if (is_single(v)) {
      const ValueDef& d = g_.value(v);
      if (d.constant.defined() && dtype_is_float(d.constant.dtype()))
        return cat("c", int(d.constant.dtype()), ":", d.constant.rank(), ":",
                   std::bit_cast<uint64_t>(d.constant.to_doubles()[0]));
      lane.singles.push_back(v);
      return cat("v", v);
    }
    if (!inner(lane, v)) {
      auto it = std::find(lane.leaves.begin(), lane.leaves.end(), v);
      const auto at = it - lane.leaves.begin();
      if (it == lane.leaves.end()) {
        lane.leaves.push_back(v);
        lane.text += cat(";leaf ", at, " ", int(g_.value(v).type.elem));
      }
      return cat("x", at);
    }
    const NodeId k = g_.value(v).producer;
    auto it = std::find(lane.nodes.begin(), lane.nodes.end(), k);
    if (it == lane.nodes.end()) {
      const Node& n = g_.nodes[size_t(k)];
      std::string line = cat(";", n.op);
      for (const auto& [key, a] : n.attrs) {
        const int64_t* i = std::get_if<int64_t>(&a);
        line += i ? cat(" ", key, "=", *i) : cat(" ", key, "?", v);  // others are like nobody's
      }
      for (ValueId i : n.inputs) line += " " + number(lane, i);
      lane.text += line;
      lane.nodes.push_back(k);
      it = lane.nodes.end() - 1;
    }
    return cat("n", it - lane.nodes.begin());
  }

  const Graph& g_;
};

bool meet(const Lane& a, const Lane& b) {
  return std::any_of(a.nodes.begin(), a.nodes.end(), [&](NodeId n) {
    return std::find(b.nodes.begin(), b.nodes.end(), n) != b.nodes.end();
  });
}

// Updates that share nodes belong together, in the order of the outputs.
std::vector<Lane> lanes_of(const Graph& g, const std::vector<ValueId>& updates) {
  UpdateReader read(g);
  std::vector<std::vector<ValueId>> groups;
  std::vector<Lane> seen;
  for (ValueId v : updates) {
    Lane one;
    if (!g.value(v).type.concrete()) continue;
    one.shape = g.value(v).type.concrete_shape();
    if (!read.add(one, v)) continue;
    size_t at = 0;
    while (at < seen.size() && !(seen[at].shape == one.shape && meet(seen[at], one))) ++at;
    if (at == seen.size()) {
      seen.emplace_back();
      seen.back().shape = one.shape;
      groups.emplace_back();
    }
    seen[at].nodes.insert(seen[at].nodes.end(), one.nodes.begin(), one.nodes.end());
    groups[at].push_back(v);
  }
  std::vector<Lane> lanes;
  for (size_t k = 0; k < groups.size(); ++k) {
    Lane lane;
    lane.shape = seen[k].shape;
    for (ValueId v : groups[k]) read.add(lane, v);
    lanes.push_back(std::move(lane));
  }
  return lanes;
}

class Joined {
 public:
  Joined(Graph& g, const Context& c, std::vector<const Lane*> lanes)
      : g_(g), b_(g, c.ops, Node{}, {}, c.opset), lanes_(std::move(lanes)) {}

  void write() {
    const Lane& first = *lanes_[0];
    std::map<ValueId, ValueId> to;
    for (size_t k = 0; k < first.leaves.size(); ++k) to[first.leaves[k]] = together(k);
    for (NodeId k : first.nodes) {
      const Node n = g_.nodes[size_t(k)];
      std::vector<ValueId> in = n.inputs;
      for (ValueId& v : in)
        if (const auto it = to.find(v); it != to.end()) v = it->second;
      GradBuilder::Attrs attrs = n.attrs;
      to[n.outputs[0]] = b_.call(n.op, in, attrs);
    }
    for (size_t k = 0; k < first.outputs.size(); ++k) cut(k, to.at(first.outputs[k]));
  }

 private:
  ValueId flat(ValueId v) {
    const TypeInfo& t = g_.value(v).type;
    if (t.shape->size() == 1) return v;
    // what was flat before, or of another shape, is made flat at once
    const NodeId p = g_.value(v).producer;
    if (p >= 0 && g_.nodes[size_t(p)].is("Reshape")) v = g_.nodes[size_t(p)].inputs[0];
    return b_.call("Reshape", {v, b_.constant_ints({-1})});
  }
  ValueId together(size_t leaf) {
    std::vector<ValueId> parts;
    for (const Lane* lane : lanes_) parts.push_back(flat(lane->leaves[leaf]));
    return b_.call("Concat", parts, {{"axis", int64_t(0)}});
  }
  void cut(size_t output, ValueId all) {
    std::vector<int64_t> sizes;
    for (const Lane* lane : lanes_) sizes.push_back(num_elements(lane->shape));
    const std::vector<ValueId> parts = b_.call_n("Split", {all, b_.constant_ints(sizes)},
                                                 int(sizes.size()), {{"axis", int64_t(0)}});
    for (size_t k = 0; k < parts.size(); ++k) {
      const ValueId old = lanes_[k]->outputs[output];
      const TypeInfo type = g_.value(old).type;
      g_.value(parts[k]).type = TypeInfo::tensor(type.elem, {sizes[k]});
      ValueId v = parts[k];
      if (lanes_[k]->shape.size() != 1)
        v = b_.call("Reshape", {v, b_.constant_ints(lanes_[k]->shape)});
      g_.value(v).type = type;
      g_.replace_uses(old, v);
      std::swap(g_.value(old).name, g_.value(v).name);
    }
  }

  Graph& g_;
  GradBuilder b_;
  std::vector<const Lane*> lanes_;
};

}  // namespace

namespace {

// What is computed from the result of an update.
std::vector<char> after_updates(const Graph& g, const std::vector<Lane>& lanes) {
  std::vector<char> after(g.values.size(), 0);
  for (const Lane& lane : lanes)
    for (ValueId v : lane.outputs) after[size_t(v)] = 1;
  for (const Node& n : g.nodes) {
    const std::vector<ValueId> reads = g.reads(n);
    if (std::none_of(reads.begin(), reads.end(), [&](ValueId v) { return after[size_t(v)]; }))
      continue;
    for (ValueId v : n.outputs)
      if (v != kNone) after[size_t(v)] = 1;
  }
  return after;
}

bool independent(const Lane& lane, const std::vector<char>& after) {
  auto free = [&](const std::vector<ValueId>& all) {
    return std::none_of(all.begin(), all.end(), [&](ValueId v) { return after[size_t(v)]; });
  };
  return free(lane.leaves) && free(lane.singles);
}

}  // namespace

void join_updates(Graph& g, const std::vector<std::string>& updates, const Context& c) {
  g.renumber();
  std::vector<ValueId> values;
  for (const std::string& name : updates)
    if (const ValueId v = g.find(name); v != kNone) values.push_back(v);
  const std::vector<Lane> lanes = lanes_of(g, values);
  std::map<std::string, std::vector<const Lane*>> alike;
  const std::vector<char> after = after_updates(g, lanes);
  for (const Lane& lane : lanes)  // those that use the result of another one stay as they are
    if (independent(lane, after)) alike[lane.text].push_back(&lane);
  for (auto& [text, group] : alike)
    if (group.size() > 1) Joined(g, c, group).write();
  g.sort();
  g.remove_dead();
  g.renumber();
  g.verify("joined updates");
}

}  // namespace onnxtrain::portable
