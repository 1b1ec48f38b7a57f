// Softmax cross entropy and its gradient on the same scores become one node: the softmax is
// computed once. The incoming gradient must be a number known now (1 for the loss itself).
#include <algorithm>

#include "passes/passes.hpp"

namespace onnxtrain {

namespace {

bool same_attrs(const Node& a, const Node& b) {
  bool ignore = a.has("ignore_index");
  return a.s("reduction", "mean") == b.s("reduction", "mean") && ignore == b.has("ignore_index") &&
         (!ignore || a.i("ignore_index", 0) == b.i("ignore_index", 0));
}

ValueId input(const Node& n, size_t k) { return k < n.inputs.size() ? n.inputs[k] : kNone; }

// Scores [N, classes]: a sample is a row.
bool suits(const Graph& g, const Node& loss) {
  if (!loss.is("SoftmaxCrossEntropyLoss") || loss.s("reduction", "mean") == "none") return false;
  if (loss.outputs.size() > 1 && loss.outputs[1] != kNone) return false;
  const TypeInfo& t = g.value(loss.inputs[0]).type;
  return loss.outputs[0] != kNone && t.concrete() && t.elem == DType::kFloat &&
         t.concrete_shape().size() == 2 && num_elements(t.concrete_shape()) > 0;
}

// The gradient node of `loss`, and the factor it applies; -1 if there is none.
NodeId gradient_of(const Graph& g, const Node& loss, float& dloss) {
  for (size_t k = 0; k < g.nodes.size(); ++k) {
    const Node& n = g.nodes[k];
    if (!n.is("SoftmaxCrossEntropyLossGrad", kOwnDomain) || !same_attrs(loss, n)) continue;
    if (input(n, 4) != kNone || input(n, 0) == kNone) continue;
    bool same = true;
    for (size_t i = 0; i < 3; ++i) same = same && input(n, i + 1) == input(loss, i);
    const ValueDef& d = g.value(n.inputs[0]);
    if (!same || !d.is_constant() || d.constant.size() != 1) continue;
    dloss = float(d.constant.to_doubles()[0]);
    return NodeId(k);
  }
  return -1;
}

}  // namespace

void pass_fuse_loss(Graph& g, const PassContext&) {
  for (size_t k = 0; k < g.nodes.size(); ++k) {
    if (!suits(g, g.nodes[k])) continue;
    float dloss = 1;
    NodeId grad = gradient_of(g, g.nodes[k], dloss);
    if (grad <= NodeId(k)) continue;
    Node& loss = g.nodes[k];
    loss.op = "SoftmaxCrossEntropyBoth";
    loss.domain = kOwnDomain;
    loss.version = 1;
    loss.attrs["dloss"] = dloss;
    loss.outputs = {loss.outputs[0], g.nodes[size_t(grad)].outputs[0]};
    g.nodes.erase(g.nodes.begin() + grad);
  }
}

}  // namespace onnxtrain
