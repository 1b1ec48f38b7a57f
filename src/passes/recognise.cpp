// Chains that exporters write for one operator become that operator, before differentiation: fewer
// passes over memory, and the operator's own gradient.
//   Gelu: x * 0.5 * (1 + erf(x / sqrt(2))), the factors in any order
//   Attention: softmax(scale * q k^T + causal mask) v over heads cut from and joined to one
//   dimension;
//     without a mask only where the scores are too many for the caches
// One slice of a transposed tensor is taken from the tensor itself where its rest keeps its order.
#include <algorithm>
#include <cmath>

#include "passes/passes.hpp"

namespace onnxtrain {

namespace {

class Recogniser {
 public:
  Recogniser(Graph& g, const std::vector<ValueId>& keep) : g_(g), readers_(g.consumers()) {
    fixed_.assign(g.values.size(), 0);
    for (ValueId v : g.outputs) fixed_[size_t(v)] = 1;
    for (ValueId v : keep) fixed_[size_t(v)] = 1;
    g.renumber();
  }

  bool run() {
    bool any = false;
    for (size_t k = 0; k < g_.nodes.size(); ++k)
      if (g_.nodes[k].is("Erf"))
        any |= gelu(NodeId(k));
      else if (g_.nodes[k].is("Softmax"))
        any |= attention(g_.nodes[k]);
      else if (g_.nodes[k].is("Gather"))
        any |= slice_of_transpose(g_.nodes[k]);
    return any;
  }

 private:
  const Node* producer(ValueId v) const {
    NodeId k = v == kNone ? -1 : g_.value(v).producer;
    return k < 0 ? nullptr : &g_.nodes[size_t(k)];
  }
  // The one reader of a value that nothing else needs.
  NodeId reader(ValueId v) const {
    const auto& r = readers_[size_t(v)];
    return !fixed_[size_t(v)] && r.size() == 1 ? r[0] : -1;
  }
  bool number(ValueId v, double& out) const {
    const ValueDef& d = g_.value(v);
    if (!d.is_constant() || d.constant.size() != 1 || !dtype_is_float(d.constant.dtype()))
      return false;
    out = d.constant.to_doubles()[0];
    return true;
  }
  static bool near(double a, double b) { return std::fabs(a - b) <= 1e-6 * std::fabs(b); }
  ValueId other(const Node& n, ValueId v) const {
    if (n.inputs.size() != 2 || n.inputs[0] == n.inputs[1]) return kNone;
    return n.inputs[0] == v ? n.inputs[1] : n.inputs[1] == v ? n.inputs[0] : kNone;
  }
  bool same_type(ValueId a, ValueId b) const {
    const TypeInfo &s = g_.value(a).type, &t = g_.value(b).type;
    return s.concrete() && t.concrete() && s.elem == t.elem &&
           s.concrete_shape() == t.concrete_shape();
  }
  // v = x * c or x / c with a number c; the factor.
  ValueId scaled(ValueId v, double& factor) const {
    const Node* n = producer(v);
    if (!n || !(n->is("Mul") || n->is("Div")) || n->inputs.size() != 2 || n->version < 7)
      return kNone;
    double c = 0;
    if (number(n->inputs[1], c) && same_type(n->inputs[0], v)) {
      factor = n->is("Mul") ? c : 1 / c;
      return n->inputs[0];
    }
    if (n->is("Mul") && number(n->inputs[0], c) && same_type(n->inputs[1], v)) {
      factor = c;
      return n->inputs[1];
    }
    return kNone;
  }

  bool gelu(NodeId erf) {
    const Node& e = g_.nodes[size_t(erf)];
    double factor = 0, one = 0;
    ValueId x = scaled(e.inputs[0], factor);
    if (x == kNone || !near(factor, std::sqrt(0.5)) || reader(e.inputs[0]) < 0) return false;
    NodeId k = reader(e.outputs[0]);
    if (k < 0 || !g_.nodes[size_t(k)].is("Add") || g_.nodes[size_t(k)].version < 7) return false;
    ValueId beside = other(g_.nodes[size_t(k)], e.outputs[0]);
    if (beside == kNone || !number(beside, one) || one != 1) return false;
    // multiply upwards until x and a half have been met
    ValueId at = g_.nodes[size_t(k)].outputs[0];
    double half = 1;
    bool met = false;
    for (int step = 0; step < 3 && same_type(at, x); ++step) {
      k = reader(at);
      if (k < 0 || !g_.nodes[size_t(k)].is("Mul") || g_.nodes[size_t(k)].version < 7) return false;
      ValueId by = other(g_.nodes[size_t(k)], at);
      double c = 0;
      if (by == kNone) return false;
      if (number(by, c)) {
        half *= c;
      } else if (!met && by == x) {
        met = true;
      } else if (!met && scaled(by, c) == x && reader(by) >= 0) {
        half *= c;
        met = true;
      } else {
        return false;
      }
      at = g_.nodes[size_t(k)].outputs[0];
      if (met && near(half, 0.5) && same_type(at, x)) return replace(k, "Gelu", 20, x);
    }
    return false;
  }

  // The input of a node of this kind that makes v, with a permutation if it is a Transpose.
  ValueId before(ValueId v, const char* op, const std::vector<int64_t>& perm = {}) const {
    const Node* n = producer(v);
    return n && n->is(op) && (perm.empty() || n->ints("perm") == perm) ? n->inputs[0] : kNone;
  }
  const Shape& dims(ValueId v) const { return shapes_[size_t(v)]; }
  bool floats(ValueId v) {
    const TypeInfo& t = g_.value(v).type;
    if (v == kNone || !t.concrete() || t.elem != DType::kFloat) return false;
    shapes_.resize(g_.values.size());
    shapes_[size_t(v)] = t.concrete_shape();
    return true;
  }
  // v is [batch, heads, rows, width], cut from a [batch, rows, heads * width]: the latter.
  ValueId joined(ValueId v) {
    ValueId cut = before(v, "Transpose", {0, 2, 1, 3}), x = before(cut, "Reshape");
    if (x == kNone || !floats(v) || !floats(x) || dims(v).size() != 4) return kNone;
    const Shape d = dims(v);
    return dims(x) == Shape{d[0], d[2], d[1] * d[3]} ? x : kNone;
  }
  // The same for a [batch, heads, width, rows].
  ValueId joined_turned(ValueId v) {
    ValueId cut = before(v, "Transpose", {0, 2, 3, 1});
    if (cut == kNone) return joined(before(v, "Transpose", {0, 1, 3, 2}));
    ValueId x = before(cut, "Reshape");
    if (x == kNone || !floats(v) || !floats(x) || dims(v).size() != 4) return kNone;
    const Shape d = dims(v);
    return dims(x) == Shape{d[0], d[3], d[1] * d[2]} ? x : kNone;
  }
  // 0 on and below the diagonal, above so little that nothing is left of a score's exponential.
  bool causal(ValueId v, int64_t rows) const {
    const ValueDef& m = g_.value(v);
    if (!m.is_constant() || m.constant.dtype() != DType::kFloat) return false;
    const Shape& d = m.constant.shape();
    if (m.constant.size() != rows * rows || d.size() < 2 || d.back() != rows) return false;
    const float* at = m.constant.as<float>();
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < rows; ++j, ++at)
        if (j <= i ? *at != 0 : !(*at <= -1e30f)) return false;
    return true;
  }
  ValueId unscaled(ValueId v, double& factor) const {
    double c = 1;
    for (ValueId x = scaled(v, c); x != kNone && !fixed_[size_t(v)]; x = scaled(v, c)) {
      factor *= c;
      v = x;
    }
    return v;
  }

  bool attention(const Node& softmax) {
    constexpr int64_t kManyKeys = 512;
    ValueId p = softmax.outputs[0], in = softmax.inputs[0], mask = kNone;
    if (softmax.version < 13 || !floats(p) || dims(p).size() != 4 || reader(in) < 0) return false;
    const int64_t axis = softmax.i("axis", -1), rows = dims(p)[2], keys = dims(p)[3];
    if (axis != -1 && axis != 3) return false;
    double scale = 1;
    if (const Node* add = producer(in); add && add->is("Add")) {
      mask = causal(add->inputs[1], rows) ? add->inputs[1] : add->inputs[0];
      in = other(*add, mask);
      if (rows != keys || in == kNone || !causal(mask, rows) || reader(in) < 0) return false;
    }
    if (mask == kNone && keys < kManyKeys) return false;
    const Node* scores = producer(unscaled(in, scale));
    if (!scores || !scores->is("MatMul") || reader(scores->outputs[0]) < 0) return false;
    ValueId q = joined(unscaled(scores->inputs[0], scale)),
            k = joined_turned(unscaled(scores->inputs[1], scale));
    NodeId mix = reader(p);
    if (q == kNone || k == kNone || mix < 0) return false;
    const Node& product = g_.nodes[size_t(mix)];
    if (!product.is("MatMul") || product.inputs[0] != p || product.inputs[1] == p) return false;
    ValueId v = joined(product.inputs[1]);
    NodeId turn = reader(product.outputs[0]);
    if (v == kNone || turn < 0 ||
        before(g_.nodes[size_t(turn)].outputs[0], "Transpose", {0, 2, 1, 3}) != product.outputs[0])
      return false;
    NodeId last = reader(g_.nodes[size_t(turn)].outputs[0]);
    if (last < 0 || !g_.nodes[size_t(last)].is("Reshape")) return false;
    ValueId y = g_.nodes[size_t(last)].outputs[0];
    const int64_t batch = dims(p)[0], heads = dims(p)[1];
    if (!floats(y) || dims(q)[0] != batch || dims(k)[0] != batch || dims(v)[0] != batch ||
        dims(y) != Shape{batch, rows, dims(v)[2]} || dims(q)[2] != dims(k)[2])
      return false;
    replace(last, "Attention", 23, q);
    Node& n = g_.nodes[size_t(last)];
    n.inputs = {q, k, v};
    n.attrs["q_num_heads"] = heads;
    n.attrs["kv_num_heads"] = heads;
    n.attrs["scale"] = float(scale);
    n.attrs["is_causal"] = int64_t(mask != kNone);
    return true;
  }

  // Gather with a single index: the whole transpose would be made for one slice of it.
  bool slice_of_transpose(Node& n) const {
    const Node* t = producer(n.inputs[0]);
    if (!t || !t->is("Transpose")) return false;
    const TypeInfo &x = g_.value(t->inputs[0]).type, &index = g_.value(n.inputs[1]).type;
    if (!x.concrete() || !index.concrete() || !index.concrete_shape().empty()) return false;
    const int64_t rank = int64_t(x.concrete_shape().size());
    std::vector<int64_t> perm = t->ints("perm");
    if (perm.empty())
      for (int64_t d = rank; d-- > 0;) perm.push_back(d);
    int64_t axis = n.i("axis", 0);
    if (axis < 0) axis += rank;
    if (int64_t(perm.size()) != rank || axis < 0 || axis >= rank) return false;
    const int64_t from = perm[size_t(axis)];
    perm.erase(perm.begin() + axis);
    if (!std::is_sorted(perm.begin(), perm.end())) return false;
    n.inputs[0] = t->inputs[0];
    n.attrs["axis"] = from;
    return true;
  }

  bool replace(NodeId k, const char* op, int version, ValueId x) {
    Node n;
    n.op = op;
    n.version = version;
    n.name = g_.nodes[size_t(k)].name;
    n.inputs = {x};
    n.outputs = g_.nodes[size_t(k)].outputs;
    g_.nodes[size_t(k)] = std::move(n);
    return true;
  }

  Graph& g_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<char> fixed_;
  std::vector<Shape> shapes_;  // of values looked at
};

}  // namespace

void recognise_operators(Graph& g, const std::vector<ValueId>& keep) {
  if (Recogniser(g, keep).run()) g.remove_dead(keep);
}

}  // namespace onnxtrain
