// Sequences whose elements are known one by one: what reads an element reads the tensor instead.
#include <algorithm>
#include <map>
#include <numeric>
#include <optional>

#include "passes/passes.hpp"

namespace onnxtrain {

namespace {

// Parts of a tensor along an axis.
struct Parts {
  ValueId of = kNone;
  int64_t axis = 0;
  std::vector<int64_t> sizes = {};  // empty: there are as many of `each` as the tensor has
  int64_t each = 1;
  bool squeeze = false;
};

struct Sequence {
  std::vector<ValueId> items;
  std::optional<Parts> parts;
};

class Resolver {
 public:
  explicit Resolver(Graph& g) : g_(g) {}

  bool run() {
    std::vector<Node> old = std::move(g_.nodes);
    g_.nodes.clear();
    for (Node& n : old) {
      if (n.domain.empty() && visit(n)) {
        changed_ = true;
        continue;
      }
      g_.nodes.push_back(std::move(n));
    }
    g_.renumber();
    return changed_;
  }

 private:
  // A node of the standard operators in the place of `n`; out: kNone for a value of its own.
  ValueId add(const Node& n, const char* op, std::vector<ValueId> inputs, Attributes attrs,
              ValueId out) {
    Node made;
    made.op = op;
    made.version = 18;
    made.name = n.name;
    made.inputs = std::move(inputs);
    made.attrs = std::move(attrs);
    if (out == kNone) return g_.add_node(std::move(made), 1, n.name)[0];
    made.outputs = {out};
    g_.nodes.push_back(std::move(made));
    return out;
  }
  ValueId ints(const std::vector<int64_t>& v) { return g_.add_constant(Tensor::vector(v)); }

  bool numbers(const Node& n, size_t i, std::vector<int64_t>& found) const {
    if (i >= n.inputs.size() || n.inputs[i] == kNone) return false;
    const ValueDef& d = g_.value(n.inputs[i]);
    const bool fed = std::find(g_.inputs.begin(), g_.inputs.end(), n.inputs[i]) != g_.inputs.end();
    if (!d.is_constant() || fed) return false;
    found = d.constant.to_ints();
    return true;
  }

  int64_t length(ValueId v, int64_t axis) const {
    const auto& shape = g_.value(v).type.shape;
    if (!shape) return -1;
    if (axis < 0) axis += int64_t(shape->size());
    return axis >= 0 && axis < int64_t(shape->size()) ? (*shape)[size_t(axis)].value : -1;
  }

  bool split(const Node& n, Sequence& s) const {
    Parts p{n.inputs[0], n.i("axis", 0)};
    const bool given = n.inputs.size() > 1 && n.inputs[1] != kNone;
    std::vector<int64_t> said;
    if (given && !numbers(n, 1, said)) return false;
    if (given && g_.value(n.inputs[1]).constant.rank() == 1) {
      p.sizes = said;
    } else {
      if (given) p.each = said.at(0);
      p.squeeze = !given && n.i("keepdims", 1) == 0;
      const int64_t whole = length(p.of, p.axis);
      if (p.each < 1) return false;
      for (int64_t from = 0; from < whole; from += p.each)
        p.sizes.push_back(std::min(p.each, whole - from));
    }
    s.parts = std::move(p);
    return true;
  }

  // Element k as a tensor; false: not known.
  bool element(const Node& n, const Sequence& s, int64_t k, ValueId out, ValueId& found) {
    if (!s.parts) {
      if (k < 0) k += int64_t(s.items.size());
      if (k < 0 || k >= int64_t(s.items.size())) return false;
      found = out == kNone ? s.items[size_t(k)] : add(n, "Identity", {s.items[size_t(k)]}, {}, out);
      return true;
    }
    const Parts& p = *s.parts;
    int64_t from = k * p.each, to = from + p.each;
    if (!p.sizes.empty()) {
      if (k < 0) k += int64_t(p.sizes.size());
      if (k < 0 || k >= int64_t(p.sizes.size())) return false;
      from = std::accumulate(p.sizes.begin(), p.sizes.begin() + k, int64_t(0));
      to = from + p.sizes[size_t(k)];
    } else if (k < 0) {
      return false;
    }
    const ValueId slice = add(n, "Slice", {p.of, ints({from}), ints({to}), ints({p.axis})}, {},
                              p.squeeze ? kNone : out);
    found = p.squeeze ? add(n, "Squeeze", {slice, ints({p.axis})}, {}, out) : slice;
    return true;
  }

  bool items(const Node& n, const Sequence& s, std::vector<ValueId>& all) {
    all = s.items;
    if (!s.parts) return true;
    for (size_t k = 0; k < s.parts->sizes.size(); ++k)
      if (!element(n, s, int64_t(k), kNone, all.emplace_back())) return false;
    return !all.empty();
  }

  bool join(const Node& n, const Sequence& s) {
    std::vector<ValueId> all;
    if (!items(n, s, all) || all.empty()) return false;
    const int64_t axis = n.i("axis", 0);
    if (n.i("new_axis", 0) != 0)
      for (ValueId& v : all) v = add(n, "Unsqueeze", {v, ints({axis})}, {}, kNone);
    add(n, "Concat", all, {{"axis", axis}}, n.outputs[0]);
    return true;
  }

  // true: the node is not needed any more.
  bool visit(const Node& n) {
    if (n.op == "SequenceConstruct") {
      known_[n.outputs[0]] = {n.inputs, {}};
    } else if (n.op == "SequenceEmpty") {
      known_[n.outputs[0]] = {};
    } else if (n.op == "SplitToSequence") {
      if (Sequence s; split(n, s)) known_[n.outputs[0]] = std::move(s);
    }
    const auto it = n.inputs.empty() ? known_.end() : known_.find(n.inputs[0]);
    if (it == known_.end()) return false;
    const Sequence& s = it->second;
    std::vector<int64_t> at;
    if (n.op == "Identity") {
      known_[n.outputs[0]] = Sequence(s);
    } else if (n.op == "SequenceInsert") {
      insert(n, s);
    } else if (n.op == "SequenceAt" && numbers(n, 1, at)) {
      ValueId found = kNone;
      return element(n, s, at.at(0), n.outputs[0], found);
    } else if (n.op == "ConcatFromSequence") {
      return join(n, s);
    }
    return false;
  }

  void insert(const Node& n, const Sequence& s) {
    Sequence longer;
    std::vector<int64_t> at = {int64_t(s.items.size())};
    const bool placed = n.inputs.size() > 2 && n.inputs[2] != kNone;
    if (s.parts || (placed && !numbers(n, 2, at))) return;
    const int64_t k = at.at(0) < 0 ? at[0] + int64_t(s.items.size()) : at[0];
    if (k < 0 || k > int64_t(s.items.size())) return;
    for (int64_t i = 0; i <= int64_t(s.items.size()); ++i)
      longer.items.push_back(i == k ? n.inputs[1] : s.items[size_t(i - (i > k))]);
    known_[n.outputs[0]] = std::move(longer);
  }

  Graph& g_;
  std::map<ValueId, Sequence> known_;
  bool changed_ = false;
};

}  // namespace

bool resolve_sequences(Graph& g) { return Resolver(g).run(); }

}  // namespace onnxtrain
