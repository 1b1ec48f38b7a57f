// Gradients of slices that together cover a tensor: instead of one zero-filled tensor per slice and
// their sum, the pieces are put side by side (Concat).
#include <algorithm>

#include "passes/passes.hpp"

namespace onnxtrain {

namespace {

struct Piece {
  ValueId value;
  size_t axis;
  int64_t start, length;
};

class Joiner {
 public:
  Joiner(Graph& g, const PassContext& c) : g_(g), readers_(g.consumers()) {
    fixed_.assign(g.values.size(), 0);
    for (ValueId v : g.outputs) fixed_[size_t(v)] = 1;
    for (ValueId v : c.keep) fixed_[size_t(v)] = 1;
    g.renumber();
  }

  bool run() {
    bool any = false;
    // from the end: the root of a sum comes before its parts
    for (size_t k = g_.nodes.size(); k-- > 0;) {
      if (!g_.nodes[k].is("Add") || !whole_type(g_.nodes[k])) continue;
      std::vector<Piece> pieces;
      if (!collect(g_.nodes[k].outputs[0], true, pieces) || !covers(pieces, k)) continue;
      Node n;
      n.op = "Concat";
      n.version = 13;
      n.name = g_.nodes[k].name;
      n.attrs["axis"] = int64_t(pieces[0].axis);
      for (const Piece& p : pieces) n.inputs.push_back(p.value);
      n.outputs = g_.nodes[k].outputs;
      g_.nodes[k] = std::move(n);
      any = true;
    }
    return any;
  }

 private:
  bool concrete(ValueId v) const { return v != kNone && g_.value(v).type.concrete(); }
  Shape shape(ValueId v) const { return g_.value(v).type.concrete_shape(); }
  bool whole_type(const Node& n) const {
    return n.version >= 7 && concrete(n.outputs[0]) && !shape(n.outputs[0]).empty();
  }
  const Tensor* ints(const Node& n, size_t k) const {
    if (k >= n.inputs.size() || n.inputs[k] == kNone) return nullptr;
    const ValueDef& d = g_.value(n.inputs[k]);
    return d.is_constant() ? &d.constant : nullptr;
  }

  // The leaves of a sum; false when one is no piece.
  bool collect(ValueId v, bool root, std::vector<Piece>& pieces) const {
    NodeId k = g_.value(v).producer;
    if (k < 0 || pieces.size() > 64) return false;
    if (!root && (fixed_[size_t(v)] || readers_[size_t(v)].size() != 1)) return false;
    const Node& n = g_.nodes[size_t(k)];
    if (n.is("SliceGrad", kOwnDomain) && !root) return piece(n, pieces);
    if (!n.is("Add") || !whole_type(n) || n.inputs[0] == n.inputs[1]) return false;
    for (ValueId x : n.inputs)
      if (!concrete(x) || shape(x) != shape(v) || !collect(x, false, pieces)) return false;
    return true;
  }

  bool piece(const Node& n, std::vector<Piece>& pieces) const {
    const Tensor *starts = ints(n, 2), *axes = ints(n, 4), *steps = ints(n, 5);
    bool open_axes = n.inputs.size() > 4 && n.inputs[4] != kNone && !axes;
    bool open_steps = n.inputs.size() > 5 && n.inputs[5] != kNone && !steps;
    if (!starts || open_axes || open_steps || !concrete(n.inputs[0])) return false;
    if (steps)
      for (int64_t s : steps->to_ints())
        if (s != 1) return false;
    Shape part = shape(n.inputs[0]), all = shape(n.outputs[0]);
    std::vector<int64_t> from = starts->to_ints(), axis;
    if (axes) axis = axes->to_ints();
    Piece p{n.inputs[0], all.size(), 0, 0};
    for (size_t d = 0; d < all.size(); ++d) {
      if (part[d] == all[d]) continue;
      if (p.axis != all.size()) return false;  // cut in two dimensions
      p.axis = d;
      p.length = part[d];
    }
    if (p.axis == all.size()) return false;
    for (size_t k = 0; k < from.size(); ++k) {
      int64_t d = axes ? axis[k] : int64_t(k);
      if (d < 0) d += int64_t(all.size());
      if (d != int64_t(p.axis)) continue;
      p.start = from[k] < 0 ? from[k] + all[p.axis] : from[k];
      p.start = std::clamp<int64_t>(p.start, 0, all[p.axis]);
    }
    pieces.push_back(p);
    return true;
  }

  // In order, without gaps, from the beginning to the end of one dimension; all made before node k.
  bool covers(std::vector<Piece>& pieces, size_t k) const {
    std::sort(pieces.begin(), pieces.end(),
              [](const Piece& a, const Piece& b) { return a.start < b.start; });
    int64_t at = 0;
    for (const Piece& p : pieces) {
      if (p.axis != pieces[0].axis || p.start != at) return false;
      at += p.length;
    }
    return at == shape(g_.nodes[k].outputs[0])[pieces[0].axis];
  }

  Graph& g_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<char> fixed_;
};

}  // namespace

void pass_join_slices(Graph& g, const PassContext& c) {
  if (Joiner(g, c).run()) g.remove_dead(c.keep);
}

}  // namespace onnxtrain
