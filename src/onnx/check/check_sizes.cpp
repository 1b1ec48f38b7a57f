// Sizes in a file that can never fit together: the inner dimensions of matrix multiplications and
// convolutions, where both are known. For `check`: with an open batch nothing else looks at them
// before a run.
#include "onnx/check/checker.hpp"

namespace onnxtrain {
namespace {

using Dims = std::vector<Dim>;

const Dims* dims_of(const Graph& g, const Node& n, size_t input, size_t rank) {
  if (input >= n.inputs.size() || n.inputs[input] == kNone) return nullptr;
  const TypeInfo& t = g.value(n.inputs[input]).type;
  return t.is_tensor() && t.shape && (rank == 0 ? t.shape->size() >= 2 : t.shape->size() == rank)
             ? &*t.shape
             : nullptr;
}

void compare_sizes(const Graph& g, const Node& n, const Dim& a, int64_t b, Findings& out) {
  if (!a.known() || b < 0 || a.value == b) return;
  out.error("OT1104", "",
            cat(n.label(), ": '", g.value_name(n.inputs[0]), "' is ",
                to_string(g.value(n.inputs[0]).type), " and '", g.value_name(n.inputs[1]), "' is ",
                to_string(g.value(n.inputs[1]).type), ": ", a.value, " against ", b),
            "the sizes that are multiplied must be equal");
}

void check_node_sizes(const Graph& g, const Node& n, Findings& out) {
  auto value = [](const Dim& d) { return d.known() ? d.value : int64_t(-1); };
  if (n.is("Gemm")) {
    const Dims *a = dims_of(g, n, 0, 2), *b = dims_of(g, n, 1, 2);
    if (a && b)
      compare_sizes(g, n, (*a)[n.i("transA", 0) ? 0 : 1], value((*b)[n.i("transB", 0) ? 1 : 0]),
                    out);
  } else if (n.is("MatMul")) {
    const Dims *a = dims_of(g, n, 0, 0), *b = dims_of(g, n, 1, 0);
    if (a && b) compare_sizes(g, n, a->back(), value((*b)[b->size() - 2]), out);
  } else if (n.is("Conv")) {
    const Dims *x = dims_of(g, n, 0, 0), *w = dims_of(g, n, 1, 0);
    if (x && w && x->size() == w->size() && (*w)[1].known())
      compare_sizes(g, n, (*x)[1], (*w)[1].value * n.i("group", 1), out);
  }
}

void check_graph_sizes(const Graph& g, Findings& out) {
  for (const Node& n : g.nodes) {
    if (out.full()) return;
    check_node_sizes(g, n, out);
    for (const auto& [name, a] : n.attrs)
      if (const auto* sub = std::get_if<GraphPtr>(&a); sub && *sub) check_graph_sizes(**sub, out);
  }
}

}  // namespace

void check_sizes(const Model& m, Findings& out) {
  check_graph_sizes(m.main, out);
  for (const TrainingStep& s : m.training) check_graph_sizes(s.algorithm, out);
}

}  // namespace onnxtrain
