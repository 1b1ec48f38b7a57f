// The activation at the end of a model, also when the tensor was reshaped after it: a loss that
// contains the activation must read the scores, or it would take probabilities for scores.
#include <algorithm>

#include "convert/analysis.hpp"

namespace onnxtrain {

namespace {

bool is_view(const Node& n) {
  for (const char* op : {"Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose"})
    if (n.is(op)) return true;
  return n.is("Cast");
}

// Rows divided by the sum of their sizes: nothing, behind a Softmax along the rows (scikit-learn's
// exporter writes it behind every classifier).
bool normalises_softmax(const Graph& g, const Node& n) {
  if (!n.is("Normalizer", kMlDomain) || n.s("norm", "MAX") != "L1") return false;
  ValueId v = n.inputs[0];
  while (g.value(v).producer >= 0) {
    const Node& before = g.nodes[size_t(g.value(v).producer)];
    if (before.is("Softmax")) return true;
    if (!before.is("Identity")) return false;
    v = before.inputs[0];
  }
  return false;
}

const std::vector<Dim>* shape_of(const Graph& g, ValueId v) {
  const TypeInfo& t = g.value(v).type;
  return t.is_tensor() && t.shape ? &*t.shape : nullptr;
}

// Elements behind this axis, -1 when a size is not a number.
int64_t behind(const std::vector<Dim>& shape, size_t axis) {
  int64_t p = 1;
  for (size_t k = axis + 1; k < shape.size(); ++k) {
    if (!shape[k].known()) return -1;
    p *= shape[k].value;
  }
  return p;
}

// Where the axis lies after a reshaping: the one of the same size with as many elements behind it.
int64_t same_axis(const std::vector<Dim>& from, int64_t axis, const std::vector<Dim>& to) {
  const Dim& size = from[size_t(axis)];
  const int64_t rest = behind(from, size_t(axis));
  if (!size.known() || rest < 0) return -1;
  for (size_t k = 0; k < to.size(); ++k)
    if (to[k].known() && to[k].value == size.value && behind(to, k) == rest) return int64_t(k);
  return -1;
}

// The axis of the classes in the node's output when it is `axis` in its input; -1: not known.
int64_t axis_after(const Graph& g, const Node& n, int64_t axis) {
  if (axis < 0 || n.is("Identity") || n.is("Cast")) return axis;
  const auto *from = shape_of(g, n.inputs[0]), *to = shape_of(g, n.outputs[0]);
  if (!from || !to || size_t(axis) >= from->size()) return -1;
  if (!n.is("Transpose")) return same_axis(*from, axis, *to);
  std::vector<int64_t> perm = n.ints("perm");
  if (perm.empty()) return int64_t(from->size()) - 1 - axis;
  auto it = std::find(perm.begin(), perm.end(), axis);
  return it == perm.end() ? -1 : it - perm.begin();
}

// The axis that a Softmax normalises, or -1: before opset 13 it is all from `axis` on, which is one
// axis only where the others have size 1.
int64_t softmax_axis(const Graph& g, const Node& n) {
  const std::vector<Dim>* shape = shape_of(g, n.outputs[0]);
  const int64_t rank = shape ? int64_t(shape->size()) : 2;
  int64_t axis = n.i("axis", n.version >= 13 ? -1 : 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis >= rank) return -1;
  if (n.version < 13 && shape && behind(*shape, size_t(axis)) != 1) return -1;
  return axis;
}

}  // namespace

Activation activation_behind(const Graph& g, ValueId v) {
  Activation a;
  while (g.value(v).producer >= 0) {
    const NodeId k = g.value(v).producer;
    const Node& n = g.nodes[size_t(k)];
    if (n.is("Softmax") || n.is("LogSoftmax") || n.is("Sigmoid")) {
      a.node = k;
      break;
    }
    if (!is_view(n) && !normalises_softmax(g, n)) return {};
    if (is_view(n)) a.views.insert(a.views.begin(), k);
    v = n.inputs[0];
  }
  if (a.node < 0) return {};
  const Node& n = g.nodes[size_t(a.node)];
  if (n.is("Sigmoid")) return a;
  a.axis = softmax_axis(g, n);
  for (NodeId k : a.views) a.axis = axis_after(g, g.nodes[size_t(k)], a.axis);
  return a;
}

}  // namespace onnxtrain
