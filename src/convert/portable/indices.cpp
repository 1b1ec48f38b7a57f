// Whole numbers as int32: labels, indices and counters. What the standard wants as int64 (shapes,
// axes, pads) stays.
#include <algorithm>
#include <map>
#include <set>

#include "convert/portable/stages.hpp"

namespace onnxtrain::portable {

namespace {

// Operators whose results have the type of these operands; -1: of all.
const std::map<std::string, int, std::less<>>& carriers() {
  static const std::map<std::string, int, std::less<>> all = {
      {"Add", -1},      {"Sub", -1},      {"Mul", -1},           {"Div", -1},      {"Max", -1},
      {"Min", -1},      {"Neg", -1},      {"Abs", -1},           {"Sign", -1},     {"Equal", -1},
      {"Less", -1},     {"Where", -1},    {"Concat", -1},        {"Identity", 0},  {"Gather", 0},
      {"Reshape", 0},   {"Unsqueeze", 0}, {"Squeeze", 0},        {"Transpose", 0}, {"Slice", 0},
      {"Expand", 0},    {"Tile", 0},      {"GatherElements", 0}, {"Pad", 0},       {"ReduceSum", 0},
      {"ReduceMax", 0}, {"ReduceMin", 0}};
  return all;
}

// Input 1 says which elements are taken.
bool gathers(const Node& n) { return n.is("Gather") || n.is("GatherElements") || n.is("GatherND"); }

class Narrowed {
 public:
  Narrowed(Graph& g, const Context& c) : g_(g), opset_(c.opset) {
    for (ValueId v : g.inputs)
      if (g.value(v).type.elem == DType::kInt64) narrow(v);
  }
  void run() {
    std::vector<Node> old = std::move(g_.nodes);
    g_.nodes.clear();
    for (Node& n : old) take(n);
    g_.renumber();
  }

 private:
  bool is64(ValueId v) const {
    return v != kNone && g_.value(v).type.is_tensor() && g_.value(v).type.elem == DType::kInt64;
  }
  void narrow(ValueId v) {
    g_.value(v).type.elem = DType::kInt32;
    small_.insert(v);
  }
  ValueId cast(ValueId v, DType to) {
    const auto key = std::pair(v, to);
    if (const auto it = casts_.find(key); it != casts_.end()) return it->second;
    if (const Tensor& t = g_.value(v).constant; t.defined()) {
      Tensor s(DType::kInt32, t.shape());
      const std::vector<int64_t> all = t.to_ints();
      for (size_t k = 0; k < all.size(); ++k)
        s.as<int32_t>()[k] = int32_t(std::clamp<int64_t>(all[k], INT32_MIN, INT32_MAX));
      const ValueId c = g_.add_constant(s);
      g_.value(c).type = TypeInfo::tensor(DType::kInt32, t.shape());
      return casts_[key] = c;
    }
    Node n;
    n.op = "Cast";
    n.version = opset_;
    n.attrs["to"] = int64_t(to);
    n.inputs = {v};
    const TypeInfo type = g_.value(v).type;
    const ValueId out = g_.add_node(std::move(n), 1, g_.value_name(v))[0];
    g_.value(out).type = type;
    g_.value(out).type.elem = to;
    return casts_[key] = out;
  }
  bool small(ValueId v) const { return v != kNone && small_.contains(v); }

  void take(Node& n) {
    for (ValueId& v : n.inputs)
      if (const auto it = to_.find(v); it != to_.end()) v = it->second;
    const auto it = n.domain.empty() ? carriers().find(n.op) : carriers().end();
    const bool carries = it != carriers().end();
    const size_t typed = !carries ? 0 : it->second < 0 ? n.inputs.size() : 1;
    const bool any = std::any_of(n.inputs.begin(), n.inputs.begin() + int64_t(typed),
                                 [&](ValueId v) { return small(v); });
    for (size_t k = 0; k < n.inputs.size(); ++k) {
      ValueId& v = n.inputs[k];
      if (k < typed) {
        if (any && is64(v)) v = cast(v, DType::kInt32);
      } else if (small(v) && !(gathers(n) && k == 1) && !n.is("Cast")) {
        v = cast(v, DType::kInt64);  // a shape, axes or pads
      }
    }
    const bool to64 = n.is("Cast") && n.i("to", 0) == int64_t(DType::kInt64);
    if (to64) n.attrs["to"] = int64_t(DType::kInt32);
    const Node copy = n;
    g_.nodes.push_back(std::move(n));
    for (ValueId v : copy.outputs)
      if (is64(v) && (any || to64)) narrow(v);
    if (!copy.is("ArgMax")) return;
    // int64 by the standard
    const ValueId y = copy.outputs[0];
    to_[y] = cast(y, DType::kInt32);
    small_.insert(to_[y]);
  }

  Graph& g_;
  int opset_;
  std::set<ValueId> small_;
  std::map<ValueId, ValueId> to_;
  std::map<std::pair<ValueId, DType>, ValueId> casts_;
};

}  // namespace

void int32_indices(Graph& g, const Context& c) {
  Narrowed(g, c).run();
  g.verify("int32 indices");
}

}  // namespace onnxtrain::portable
