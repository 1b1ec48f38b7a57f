// Split and Concat in place of sequences.
#include "autodiff/sequences.hpp"

#include <algorithm>
#include <map>
#include <optional>

namespace onnxtrain {

namespace {

class Opener {
 public:
  Opener(Graph& g, const OpTable& table) : g_(g), table_(table), users_(g.consumers()) {}

  bool run() {
    bool any = false;
    std::vector<Node> old = std::move(g_.nodes);
    g_.nodes.clear();
    find(old);
    for (Node& n : old) {
      if (items_of(n)) {
        any = true;
      } else if (!n.inputs.empty() && opened_.count(n.inputs[0]) && is_reader(n)) {
        rewrite(n);
      } else {
        g_.nodes.push_back(std::move(n));
      }
    }
    g_.renumber();
    return any;
  }

 private:
  static bool is_reader(const Node& n) {
    return n.is("SequenceAt") || n.is("SequenceLength") || n.is("ConcatFromSequence");
  }
  const Tensor* constant(ValueId v) const {
    if (v == kNone) return nullptr;
    const ValueDef& d = g_.value(v);
    bool is_input = std::find(g_.inputs.begin(), g_.inputs.end(), v) != g_.inputs.end();
    return d.is_constant() && !is_input ? &d.constant : nullptr;
  }

  // The lengths of the pieces if they are known.
  std::optional<std::vector<int64_t>> pieces(const Node& n) const {
    const TypeInfo& t = g_.value(n.inputs[0]).type;
    if (!t.is_tensor() || !t.shape) return std::nullopt;
    int64_t rank = int64_t(t.shape->size()), axis = n.i("axis", 0);
    if (axis < 0) axis += rank;
    if (axis < 0 || axis >= rank) return std::nullopt;
    int64_t dim = (*t.shape)[size_t(axis)].value;
    bool has_split = n.inputs.size() > 1 && n.inputs[1] != kNone;
    if (!has_split) {
      if (dim < 1 || dim > kMost) return std::nullopt;
      return std::vector<int64_t>(size_t(dim), 1);
    }
    const Tensor* split = constant(n.inputs[1]);
    if (!split) return std::nullopt;
    std::vector<int64_t> v = split->to_ints();
    if (split->rank() == 1) {
      int64_t sum = 0;
      for (int64_t p : v) sum += p;
      bool fits = std::all_of(v.begin(), v.end(), [](int64_t p) { return p >= 0; }) &&
                  (dim < 0 || sum == dim) && !v.empty();
      return fits ? std::optional(v) : std::nullopt;
    }
    if (split->rank() != 0 || v[0] <= 0 || dim < 1 || dim / v[0] > kMost) return std::nullopt;
    std::vector<int64_t> out;
    for (int64_t at = 0; at < dim; at += v[0]) out.push_back(std::min(v[0], dim - at));
    return out;
  }

  std::optional<int64_t> count(const Node& n) const {
    if (n.is("SequenceConstruct")) return int64_t(n.inputs.size());
    if (!n.is("SplitToSequence")) return std::nullopt;
    auto p = pieces(n);
    return p ? std::optional(int64_t(p->size())) : std::nullopt;
  }

  // Which sequences can go.
  void find(const std::vector<Node>& nodes) {
    for (const Node& n : nodes) {
      auto size = count(n);
      if (!size) continue;
      ValueId s = n.outputs[0];
      bool ok = std::find(g_.outputs.begin(), g_.outputs.end(), s) == g_.outputs.end();
      for (NodeId k : users_[size_t(s)]) {
        const Node& u = nodes[size_t(k)];
        ok &= is_reader(u) && u.inputs[0] == s;
        if (!ok) break;
        if (u.is("SequenceAt")) {
          const Tensor* at = constant(u.inputs[1]);
          ok &= at && at->size() == 1 && at->to_ints()[0] < *size && at->to_ints()[0] >= -*size;
        }
        if (u.is("ConcatFromSequence")) ok &= u.i("new_axis", 0) == 0;
      }
      if (ok) opened_[s] = {};
    }
  }

  // Makes the items if n is a sequence that goes.
  bool items_of(const Node& n) {
    if (n.outputs.empty() || !opened_.count(n.outputs[0])) return false;
    std::vector<ValueId>& items = opened_[n.outputs[0]];
    if (n.is("SequenceConstruct")) {
      items = n.inputs;
      return true;
    }
    std::vector<int64_t> sizes = *pieces(n);
    bool drop = (n.inputs.size() < 2 || n.inputs[1] == kNone) && n.i("keepdims", 1) == 0;
    items = split(n, sizes);
    if (drop)
      for (ValueId& v : items) v = squeeze(n, v);
    return true;
  }

  std::vector<ValueId> split(const Node& n, const std::vector<int64_t>& sizes) {
    Node s = made(n, "Split");
    s.attrs["axis"] = n.i("axis", 0);
    s.inputs = {n.inputs[0]};
    if (n.version >= 13)
      s.inputs.push_back(g_.add_constant(Tensor::vector<int64_t>(sizes)));
    else
      s.attrs["split"] = sizes;
    return add(std::move(s), int(sizes.size()));
  }
  ValueId squeeze(const Node& n, ValueId v) {
    Node s = made(n, "Squeeze");
    s.inputs = {v};
    if (n.version >= 13)
      s.inputs.push_back(g_.add_constant(Tensor::vector<int64_t>({n.i("axis", 0)})));
    else
      s.attrs["axes"] = std::vector<int64_t>{n.i("axis", 0)};
    return add(std::move(s), 1)[0];
  }
  static Node made(const Node& from, const char* op) {
    Node n;
    n.op = op;
    n.version = from.version;
    n.name = from.name;
    return n;
  }
  std::vector<ValueId> add(Node n, int outputs) {
    std::vector<ValueId> out = g_.add_node(std::move(n), outputs);
    infer_node(g_, Node(g_.nodes.back()), table_);
    return out;
  }

  void rewrite(Node& n) {
    const std::vector<ValueId>& items = opened_.at(n.inputs[0]);
    Node r = made(n, "Identity");
    r.outputs = {n.outputs[0]};
    if (n.is("SequenceAt")) {
      int64_t at = constant(n.inputs[1])->to_ints()[0];
      r.inputs = {items[size_t(at < 0 ? at + int64_t(items.size()) : at)]};
      g_.value(n.outputs[0]).type = g_.value(r.inputs[0]).type;
    } else if (n.is("SequenceLength")) {
      r.inputs = {g_.add_constant(Tensor::scalar<int64_t>(int64_t(items.size())))};
      g_.value(n.outputs[0]).type = TypeInfo::tensor(DType::kInt64, {});
    } else {
      r.op = "Concat";
      r.inputs = items;
      r.attrs["axis"] = n.i("axis", 0);
    }
    g_.nodes.push_back(std::move(r));
  }

  static constexpr int64_t kMost = 4096;  // pieces; longer sequences stay sequences
  Graph& g_;
  const OpTable& table_;
  std::vector<std::vector<NodeId>> users_;
  std::map<ValueId, std::vector<ValueId>> opened_;
};

}  // namespace

bool open_sequences(Graph& g, const OpTable& table) {
  auto is_sequence = [](const Node& n) {
    return n.is("SplitToSequence") || n.is("SequenceConstruct");
  };
  if (std::none_of(g.nodes.begin(), g.nodes.end(), is_sequence)) return false;
  return Opener(g, table).run();
}

}  // namespace onnxtrain
