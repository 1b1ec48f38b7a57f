// Chains that exporters write for one operator become that operator, before differentiation: fewer
// passes over memory, and the operator's own gradient.
//   Gelu: x * 0.5 * (1 + erf(x / sqrt(2))), the factors in any order
//   FusedAttention: softmax(scale * q k^T, masked) v, see recognise_attention.cpp
// One slice of a transposed tensor is taken from the tensor itself where its rest keeps its order.
#include <algorithm>
#include <cmath>

#include "passes/chains.hpp"

namespace onnxtrain {

namespace {

bool near(double a, double b) { return std::fabs(a - b) <= 1e-6 * std::fabs(b); }

class Recogniser : Chains {
 public:
  using Chains::Chains;

  bool run() {
    bool any = false;
    const bool once = !second_derivatives(graph());
    std::vector<Node>& nodes = graph().nodes;
    for (size_t k = 0; k < nodes.size(); ++k)
      if (nodes[k].is("Erf"))
        any |= gelu(NodeId(k));
      else if (nodes[k].is("Softmax"))
        any |= once && recognise_attention(*this, NodeId(k));
      else if (nodes[k].is("Gather"))
        any |= slice_of_transpose(nodes[k]);
    return any;
  }

 private:
  bool gelu(NodeId erf) {
    const Node& e = node(erf);
    double factor = 0, one = 0;
    ValueId x = scaled(e.inputs[0], factor);
    if (x == kNone || !near(factor, std::sqrt(0.5)) || reader(e.inputs[0]) < 0) return false;
    NodeId k = reader(e.outputs[0]);
    if (k < 0 || !node(k).is("Add") || node(k).version < 7) return false;
    ValueId beside = other(node(k), e.outputs[0]);
    if (beside == kNone || !number(beside, one) || one != 1) return false;
    // multiply upwards until x and a half have been met
    ValueId at = node(k).outputs[0];
    double half = 1;
    bool met = false;
    for (int step = 0; step < 3 && same_type(at, x); ++step) {
      k = reader(at);
      if (k < 0 || !node(k).is("Mul") || node(k).version < 7) return false;
      ValueId by = other(node(k), at);
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
      at = node(k).outputs[0];
      if (met && near(half, 0.5) && same_type(at, x)) {
        replace(k, "Gelu", 20, {x});
        return true;
      }
    }
    return false;
  }

  // Gather with a single index: the whole transpose would be made for one slice of it.
  bool slice_of_transpose(Node& n) const {
    const Node* t = producer(n.inputs[0]);
    if (!t || !t->is("Transpose")) return false;
    const TypeInfo &x = graph().value(t->inputs[0]).type, &index = graph().value(n.inputs[1]).type;
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
};

}  // namespace

void recognise_operators(Graph& g, const std::vector<ValueId>& keep) {
  if (Recogniser(g, keep).run()) g.remove_dead(keep);
}

}  // namespace onnxtrain
