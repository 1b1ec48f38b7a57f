// GEMMs take over what surrounds them: transposed operands and results become
// strides, constant factors become alpha, and a bias, a residual, an activation or an activation's
// gradient is applied while a tile of the result is still in the cache. GEMMs that gain nothing
// stay as they are.
#include <algorithm>
#include <cmath>

#include "passes/passes.hpp"

namespace onnxtrain {

namespace {

using Perm = std::vector<int64_t>;

Perm identity_perm(size_t rank) {
  Perm p;
  for (size_t d = 0; d < rank; ++d) p.push_back(int64_t(d));
  return p;
}

// A GEMM in normal form. Permutations are never empty here.
struct FusedGemm {
  ValueId a = kNone, b = kNone, bias = kNone, residual = kNone, saved = kNone;
  ValueId out = kNone, pre = kNone;
  Perm perm_a, perm_b, perm_y;
  double alpha = 1;
  std::string act, grad;
  bool gained = false;
  bool finished() const {  // nothing of the epilogue may be reordered any more
    return bias != kNone || residual != kNone || saved != kNone || !act.empty();
  }
};

class Fuser {
 public:
  Fuser(Graph& g, const PassContext& c) : g_(g), table_(c.table), readers_(g.consumers()) {
    fixed_.assign(g.values.size(), 0);
    for (ValueId v : g.outputs) fixed_[size_t(v)] = 1;
    for (ValueId v : c.keep) fixed_[size_t(v)] = 1;
    gone_.assign(g.nodes.size(), 0);
    g.renumber();
  }

  void run() {
    for (size_t k = 0; k < g_.nodes.size(); ++k) {
      FusedGemm p;
      if (gone_[k] || !read(g_.nodes[k], p)) continue;
      NodeId at = NodeId(k);
      while (absorb_operand(p, p.a, p.perm_a, at) || absorb_operand(p, p.b, p.perm_b, at)) {
      }
      while (absorb_reader(p, at)) {
      }
      if (p.gained) g_.nodes[size_t(at)] = write(p, g_.nodes[k].name);
      if (p.gained && at != NodeId(k)) gone_[k] = 1;
    }
    std::vector<Node> kept;
    for (size_t k = 0; k < g_.nodes.size(); ++k)
      if (!gone_[k]) kept.push_back(std::move(g_.nodes[k]));
    g_.nodes = std::move(kept);
  }

 private:
  bool known(ValueId v) const {
    if (v == kNone) return false;
    const TypeInfo& t = g_.value(v).type;
    return t.concrete() && t.elem == DType::kFloat && num_elements(t.concrete_shape()) > 0;
  }
  Shape shape(ValueId v) const { return g_.value(v).type.concrete_shape(); }

  static void swap_last(Perm& p) { std::swap(p[p.size() - 1], p[p.size() - 2]); }
  // The operand's contiguous dimension is one of the matrix' two.
  static bool readable(const Perm& p) {
    int64_t last = int64_t(p.size()) - 1;
    return p[p.size() - 1] == last || p[p.size() - 2] == last;
  }

  bool read(const Node& n, FusedGemm& p) const {
    bool gemm = n.is("Gemm"), fused = n.is("FusedMatMul", kOwnDomain);
    if (!(gemm || fused || n.is("MatMul")) || n.outputs.size() != 1) return false;
    if (!known(n.inputs[0]) || !known(n.inputs[1]) || !known(n.outputs[0])) return false;
    if (shape(n.inputs[0]).size() < 2 || shape(n.inputs[1]).size() < 2) return false;
    p.a = n.inputs[0];
    p.b = n.inputs[1];
    p.out = n.outputs[0];
    p.perm_a = identity_perm(shape(p.a).size());
    p.perm_b = identity_perm(shape(p.b).size());
    p.perm_y = identity_perm(shape(p.out).size());
    if ((gemm || fused) && n.i("transA", 0) != 0) swap_last(p.perm_a);
    if ((gemm || fused) && n.i("transB", 0) != 0) swap_last(p.perm_b);
    if (gemm || fused) p.alpha = double(n.f("alpha", 1));
    if (gemm && n.inputs.size() > 2 && n.inputs[2] != kNone) {
      if (n.f("beta", 1) != 1 || !is_bias(n.inputs[2], shape(p.out).back())) return false;
      p.bias = n.inputs[2];
    }
    return true;
  }

  bool is_bias(ValueId v, int64_t n) const { return known(v) && shape(v) == Shape{n}; }

  // A number that is known now.
  const Tensor* number(ValueId v) const {
    const ValueDef& d = g_.value(v);
    bool one = d.is_constant() && d.constant.dtype() == DType::kFloat && d.constant.size() == 1;
    return one ? &d.constant : nullptr;
  }

  // x of `x * c`, `c * x` or `x / c`, and the factor.
  ValueId scaled(const Node& n, double& factor) const {
    if (!(n.is("Mul") || n.is("Div")) || n.inputs.size() != 2 || !known(n.outputs[0])) return kNone;
    if (n.version < 7) return kNone;
    for (int side : {1, 0}) {
      const Tensor* c = number(n.inputs[size_t(side)]);
      if (!c || (side == 0 && n.is("Div"))) continue;
      double v = double(*c->as<float>());
      ValueId x = n.inputs[size_t(1 - side)];
      if (!known(x) || shape(x) != shape(n.outputs[0])) continue;
      factor = n.is("Div") ? 1 / v : v;
      return std::isfinite(factor) ? x : kNone;
    }
    return kNone;
  }

  // Operand `v` of the GEMM at `at` becomes `now`; the other one may still be the old value.
  void reads_instead(const FusedGemm& p, ValueId& v, ValueId now, NodeId at) {
    ValueId before = v;
    v = now;
    readers_[size_t(now)].push_back(at);
    if (p.a != before && p.b != before && p.bias != before) drop_reader(before, at);
  }
  void drop_reader(ValueId v, NodeId at) {
    auto& r = readers_[size_t(v)];
    auto it = std::find(r.begin(), r.end(), at);
    if (it != r.end()) r.erase(it);
    NodeId maker = g_.value(v).producer;
    if (!r.empty() || fixed_[size_t(v)] || maker < 0 || gone_[size_t(maker)]) return;
    const Node& n = g_.nodes[size_t(maker)];
    if (n.outputs.size() != 1 || !(n.is("Transpose") || n.is("Mul") || n.is("Div"))) return;
    gone_[size_t(maker)] = 1;
    for (ValueId x : n.inputs) drop_reader(x, maker);
  }

  bool absorb_operand(FusedGemm& p, ValueId& v, Perm& perm, NodeId at) {
    NodeId maker = g_.value(v).producer;
    if (maker < 0 || gone_[size_t(maker)]) return false;
    const Node& n = g_.nodes[size_t(maker)];
    double factor = 1;
    if (n.is("Transpose") && known(n.inputs[0])) {
      Perm inner = n.ints("perm"), both;
      if (inner.empty()) return false;
      for (int64_t d : perm) both.push_back(inner[size_t(d)]);
      if (!readable(both)) return false;
      perm = both;
      reads_instead(p, v, n.inputs[0], at);
    } else if (ValueId x = scaled(n, factor); x != kNone && p.bias == kNone) {
      p.alpha *= factor;
      reads_instead(p, v, x, at);
    } else {
      return false;
    }
    p.gained = true;
    return true;
  }

  // The one reader of the GEMM so far, when nobody else needs the value.
  NodeId only_reader(ValueId v) const {
    const auto& r = readers_[size_t(v)];
    return !fixed_[size_t(v)] && r.size() == 1 && !gone_[size_t(r[0])] ? r[0] : -1;
  }

  bool absorb_reader(FusedGemm& p, NodeId& at) {
    NodeId k = only_reader(p.out);
    if (k < 0) return activates_and_keeps(p, at);
    if (k <= at) return false;
    const Node& n = g_.nodes[size_t(k)];
    if (n.outputs.size() != 1 || !known(n.outputs[0])) return false;
    if (!(transposes(p, n) || scales(p, n) || adds(p, n) || activates(p, n))) return false;
    p.out = n.outputs[0];
    if (at != k) gone_[size_t(at)] = 1;
    at = k;
    p.gained = true;
    return true;
  }

  // An activation whose argument is needed later too: the GEMM gives both.
  bool activates_and_keeps(FusedGemm& p, NodeId& at) {
    if (p.pre != kNone || p.saved != kNone || !p.act.empty()) return false;
    NodeId first = -1;
    for (NodeId r : readers_[size_t(p.out)])
      if (!gone_[size_t(r)] && (first < 0 || r < first)) first = r;
    if (first <= at) return false;
    const Node& n = g_.nodes[size_t(first)];
    std::string act = n.outputs.size() == 1 ? activation(n) : "";
    if (act.empty()) return false;
    p.act = act;
    p.pre = p.out;
    p.out = n.outputs[0];
    gone_[size_t(at)] = 1;
    at = first;
    p.gained = true;
    return true;
  }

  bool transposes(FusedGemm& p, const Node& n) const {
    if (!n.is("Transpose") || !n.has("perm")) return false;
    if (p.residual != kNone || p.saved != kNone || p.pre != kNone) return false;
    Perm outer = n.ints("perm"), both;
    for (int64_t d : outer) both.push_back(p.perm_y[size_t(d)]);
    int64_t last = int64_t(both.size()) - 1;
    if (both.back() == last) {
      p.perm_y = both;
      return true;
    }
    // the transposed result is the GEMM of the transposed operands, in the other order
    bool same_ranks = p.perm_a.size() == p.perm_b.size() && p.perm_a.size() == both.size();
    if (p.finished() || both.back() != last - 1 || !same_ranks) return false;
    for (int64_t& d : both) d = d == last ? last - 1 : d == last - 1 ? last : d;
    std::swap(p.a, p.b);
    std::swap(p.perm_a, p.perm_b);
    swap_last(p.perm_a);
    swap_last(p.perm_b);
    p.perm_y = both;
    return true;
  }

  bool scales(FusedGemm& p, const Node& n) const {
    double factor = 1;
    if (p.finished() || scaled(n, factor) != p.out) return false;
    p.alpha *= factor;
    return true;
  }

  bool adds(FusedGemm& p, const Node& n) const {
    if (!n.is("Add") || n.version < 7 || !p.act.empty() || p.saved != kNone) return false;
    ValueId other = n.inputs[0] == p.out ? n.inputs[1] : n.inputs[0];
    if (other == p.out || !known(other) || shape(n.outputs[0]) != shape(p.out)) return false;
    bool rows = p.perm_y.back() == int64_t(p.perm_y.size()) - 1;
    if (p.bias == kNone && p.residual == kNone && rows && is_bias(other, shape(p.out).back())) {
      p.bias = other;
      return true;
    }
    if (p.residual == kNone && shape(other) == shape(p.out) && shape(other).size() > 1) {
      p.residual = other;
      return true;
    }
    return false;
  }

  std::string activation(const Node& n) const {
    const Op* op = table_.find(n);
    return op && op->epilogue ? op->epilogue(n) : "";
  }
  std::string activation_of_gradient(const Node& n) const {
    const Op* op = table_.find(n);
    return op && op->epilogue_gradient ? op->epilogue_gradient(n) : "";
  }

  bool activates(FusedGemm& p, const Node& n) const {
    if (!p.act.empty() || p.saved != kNone) return false;
    p.act = activation(n);
    if (!p.act.empty()) return true;
    if (n.inputs.size() != 2 || n.inputs[0] != p.out) return false;
    std::string grad = activation_of_gradient(n);
    if (grad.empty() || n.inputs[1] == p.out || !known(n.inputs[1])) return false;
    p.grad = grad;
    p.saved = n.inputs[1];
    return true;
  }

  static Node write(const FusedGemm& p, const std::string& name) {
    Node n;
    n.domain = kOwnDomain;
    n.op = "StridedMatMul";
    n.version = 1;
    n.name = name;
    n.inputs = {p.a, p.b, p.bias, p.residual, p.saved};
    while (n.inputs.back() == kNone) n.inputs.pop_back();
    n.outputs = {p.out};
    if (p.pre != kNone) n.outputs.push_back(p.pre);
    auto put = [&](const char* key, const Perm& perm) {
      if (perm != identity_perm(perm.size())) n.attrs[key] = perm;
    };
    put("permA", p.perm_a);
    put("permB", p.perm_b);
    put("permY", p.perm_y);
    if (p.alpha != 1) n.attrs["alpha"] = float(p.alpha);
    if (!p.act.empty()) n.attrs["act"] = p.act;
    if (!p.grad.empty()) n.attrs["grad"] = p.grad;
    return n;
  }

  Graph& g_;
  const OpTable& table_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<char> fixed_, gone_;
};

}  // namespace

void pass_fuse_matmul(Graph& g, const PassContext& c) { Fuser(g, c).run(); }

}  // namespace onnxtrain
