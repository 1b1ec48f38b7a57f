// Joins a channels-last BatchNormalization with the addition and the activation behind it, and its
// gradient with the activation's: FusedBatchNorm and FusedBatchNormGrad. The statistics of the
// forward pass are kept for the backward pass.
#include <algorithm>

#include "op/channels_last.hpp"
#include "passes/passes.hpp"

namespace onnxtrain {

namespace {

class NormFuser {
 public:
  NormFuser(Graph& g, const PassContext& c) : g_(g) {
    g.renumber();
    readers_ = g.consumers();
    fixed_.assign(g.values.size(), 0);
    for (ValueId v : g.outputs) fixed_[size_t(v)] = 1;
    for (ValueId v : c.keep) fixed_[size_t(v)] = 1;
    removed_.assign(g.nodes.size(), 0);
  }

  void run() {
    for (size_t k = 0; k < g_.nodes.size(); ++k)
      if (!removed_[k] && is_norm(g_.nodes[k])) fuse(NodeId(k));
    if (made_.empty()) return;
    for (auto& [k, n] : made_) {
      g_.nodes[size_t(k)] = std::move(n);
      removed_[size_t(k)] = 0;
    }
    std::vector<Node> kept;
    for (size_t k = 0; k < g_.nodes.size(); ++k)
      if (!removed_[k]) kept.push_back(std::move(g_.nodes[k]));
    g_.nodes = std::move(kept);
    g_.sort();  // a reader of the running statistics may stand before the activation
  }

 private:
  // What stands around one normalisation.
  struct Match {
    NodeId norm = -1, add = -1, act = -1;  // forward
    NodeId grad = -1, act_grad = -1;       // backward
    ValueId residual = kNone, y = kNone;   // y: the result of all of it
    float low = 0, high = 0;               // of Clip
  };

  const Node& node(NodeId k) const { return g_.nodes[size_t(k)]; }
  Node& node(NodeId k) { return g_.nodes[size_t(k)]; }

  bool is_float(ValueId v) const {
    const TypeInfo& t = g_.value(v).type;
    return t.elem == DType::kFloat && t.concrete();
  }

  // Training, channels last, all of it float32.
  bool is_norm(const Node& n) const {
    if (!n.is("BatchNormalization") || n.version < 14 || n.i("training_mode", 0) == 0) return false;
    if (!is_channels_last(n) || n.inputs.size() != 5) return false;
    for (ValueId v : n.inputs)
      if (v == kNone || !is_float(v)) return false;
    return true;
  }

  // The one node that reads v, apart from `but`; -1 if there are others or v is needed itself.
  NodeId only_reader(ValueId v, NodeId but = -1) const {
    if (fixed_[size_t(v)]) return -1;
    NodeId found = -1;
    for (NodeId r : readers_[size_t(v)]) {
      if (r == but) continue;
      if (found >= 0 || removed_[size_t(r)]) return -1;
      found = r;
    }
    return found;
  }

  // A number that is known now.
  bool bound(const Node& n, size_t i, float* to) const {
    if (i >= n.inputs.size() || n.inputs[i] == kNone) return false;
    const ValueDef& d = g_.value(n.inputs[i]);
    if (!d.is_constant() || d.constant.dtype() != DType::kFloat || d.constant.size() != 1)
      return false;
    *to = d.constant.as<float>()[0];
    return true;
  }

  // The gradient node of the same normalisation in training.
  NodeId find_grad(const Node& n) const {
    for (NodeId r : readers_[size_t(n.inputs[0])]) {
      const Node& m = node(r);
      if (m.is("BatchNormalizationGrad", kOwnDomain) && !removed_[size_t(r)] &&
          is_channels_last(m) && m.inputs.size() == 3 && m.inputs[1] == n.inputs[0] &&
          m.inputs[2] == n.inputs[1] && m.f("epsilon", 1e-5f) == n.f("epsilon", 1e-5f))
        return r;
    }
    return -1;
  }

  // The node that makes the gradient node's dy, when it is `op` of our domain reading `s`.
  NodeId find_act_grad(NodeId grad, const char* op, ValueId s) const {
    if (grad < 0) return -1;
    NodeId p = g_.value(node(grad).inputs[0]).producer;
    if (p < 0 || removed_[size_t(p)]) return -1;
    const Node& n = node(p);
    return n.is(op, kOwnDomain) && n.inputs.size() >= 2 && n.inputs[1] == s ? p : -1;
  }

  void match_add(Match& m) const {
    ValueId y = node(m.norm).outputs[0];
    NodeId r = only_reader(y);
    if (r < 0 || !node(r).is("Add")) return;
    const Node& add = node(r);
    ValueId other = add.inputs[0] == y ? add.inputs[1] : add.inputs[0];
    if (other == y || g_.value(other).type.concrete_shape() != g_.value(y).type.concrete_shape())
      return;
    NodeId act = only_reader(add.outputs[0]);
    if (act < 0 || !node(act).is("Relu")) return;
    m.add = r, m.act = act, m.residual = other;
  }

  void match_activation(Match& m) const {
    ValueId y = node(m.norm).outputs[0];
    NodeId r = only_reader(y);
    if (r >= 0 && node(r).is("Relu")) {
      m.act = r;
      return;
    }
    // Clip's gradient reads the same value: both go, or none
    NodeId g = find_act_grad(m.grad, "ClipGrad", y);
    r = only_reader(y, g);
    if (r < 0 || !node(r).is("Clip") || node(r).version < 11) return;
    Match with = m;
    if (!bound(node(r), 1, &with.low) || !bound(node(r), 2, &with.high)) return;
    if (g >= 0) {
      float low = 0, high = 0;
      if (!bound(node(g), 2, &low) || !bound(node(g), 3, &high)) return;
      if (low != with.low || high != with.high) return;
    }
    m = with;
    m.act = r;
    m.act_grad = g;
  }

  void fuse(NodeId k) {
    Match m;
    m.norm = k;
    m.grad = find_grad(node(k));
    match_add(m);
    if (m.act < 0) match_activation(m);
    m.y = m.act >= 0 ? node(m.act).outputs[0] : node(k).outputs[0];
    if (m.act >= 0 && node(m.act).is("Relu")) m.act_grad = find_act_grad(m.grad, "ReluGrad", m.y);
    std::vector<ValueId> saved = fuse_forward(m);
    if (m.grad >= 0) fuse_backward(m, saved);
    for (NodeId r : {m.norm, m.add, m.act, m.grad, m.act_grad})
      if (r >= 0) removed_[size_t(r)] = 1;
  }

  Node fused(const Match& m, const char* op, NodeId like) const {
    Node n;
    n.domain = kOwnDomain;
    n.op = op;
    n.version = 1;
    n.name = node(like).name;
    n.attrs["epsilon"] = node(m.norm).f("epsilon", 1e-5f);
    n.attrs["momentum"] = node(m.norm).f("momentum", 0.9f);
    n.attrs[kChannelsLast] = int64_t(1);
    return n;
  }
  void set_activation(const Match& m, Node& n) const {
    n.attrs["act"] = node(m.act).op;
    if (!node(m.act).is("Clip")) return;
    n.attrs["low"] = m.low;
    n.attrs["high"] = m.high;
  }

  ValueId like(ValueId v, const char* suffix) {
    return g_.add_value(g_.unique_name(g_.value_name(v) + suffix), g_.value(v).type);
  }

  // Returns mean and inverse deviation of the batch.
  std::vector<ValueId> fuse_forward(const Match& m) {
    Node n = fused(m, "FusedBatchNorm", m.norm);
    std::vector<ValueId> saved;
    ValueId scale = node(m.norm).inputs[1];
    if (m.grad >= 0) saved = {like(scale, "_mean"), like(scale, "_inverse")};
    const Node& norm = node(m.norm);
    n.inputs = norm.inputs;
    if (m.residual != kNone) n.inputs.push_back(m.residual);
    n.outputs = norm.outputs;
    n.outputs.resize(3, kNone);
    n.outputs[0] = m.y;
    n.outputs.insert(n.outputs.end(), saved.begin(), saved.end());
    if (m.act >= 0) set_activation(m, n);
    made_[m.act >= 0 ? m.act : m.norm] = std::move(n);
    return saved;
  }

  void fuse_backward(const Match& m, const std::vector<ValueId>& saved) {
    Node n = fused(m, "FusedBatchNormGrad", m.grad);
    const Node &norm = node(m.norm), &grad = node(m.grad);
    n.inputs = {grad.inputs[0], norm.inputs[0], norm.inputs[1], norm.inputs[2], saved[0], saved[1]};
    n.outputs = grad.outputs;
    n.outputs.resize(3, kNone);
    if (m.act_grad >= 0) {
      const Node& act = node(m.act_grad);
      n.inputs[0] = act.inputs[0];
      if (m.residual != kNone) n.inputs.push_back(m.y);  // x alone does not tell the sign
      set_activation(m, n);
      // others may read dy behind the activation: the branch that was added
      ValueId dz = act.outputs[0];
      bool wanted = fixed_[size_t(dz)];
      for (NodeId r : readers_[size_t(dz)]) wanted |= r != m.grad;
      n.outputs.push_back(wanted ? dz : kNone);
    }
    made_[m.grad] = std::move(n);
  }

  Graph& g_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<char> fixed_, removed_;
  std::map<NodeId, Node> made_;  // by the node whose place they take
};

}  // namespace

void pass_fuse_norm(Graph& g, const PassContext& c) { NormFuser(g, c).run(); }

}  // namespace onnxtrain
