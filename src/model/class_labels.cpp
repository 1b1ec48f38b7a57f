// Class labels that a graph writes itself.
#include "model/class_labels.hpp"

#include <algorithm>

namespace onnxtrain {

namespace {

using Names = std::vector<std::string>;

Names texts(const Node& n, const char* strings, const char* ints) {
  Names out = n.strings(strings);
  if (out.empty())
    for (int64_t v : n.ints(ints)) out.push_back(std::to_string(v));
  return out;
}

Names texts(const Tensor& t) {
  Names out;
  if (!t.defined() || t.rank() > 2) return out;
  if (t.dtype() == DType::kString)
    for (int64_t i = 0; i < t.size(); ++i) out.push_back(t.as<std::string>()[i]);
  else if (dtype_is_integer(t.dtype()))
    for (int64_t v : t.to_ints()) out.push_back(std::to_string(v));
  return out;
}

// Is `v` the number of the best class: of an ArgMax, of a comparison of one score, or of what is
// made of one?
bool is_best(const Graph& g, ValueId v) {
  for (int hops = 0; hops < 4 && v != kNone; ++hops) {
    const NodeId p = g.producer_of(v);
    if (p < 0) return false;
    const Node& n = g.nodes[size_t(p)];
    for (const char* op : {"ArgMax", "Where", "TopK", "Greater", "GreaterOrEqual", "Less"})
      if (n.is(op)) return true;
    if (!n.is("Cast") && !n.is("Reshape") && !n.is("Squeeze") && !n.is("Identity")) return false;
    v = n.inputs[0];
  }
  return false;
}

// Of a node that makes labels from class numbers or scores.
Names labels_of(const Graph& g, const Node& n) {
  constexpr const char* kDomain = "ai.onnx.ml";
  if (n.is("ZipMap", kDomain)) return texts(n, "classlabels_strings", "classlabels_int64s");
  for (const char* op : {"LinearClassifier", "SVMClassifier"})
    if (n.is(op, kDomain)) return texts(n, "classlabels_strings", "classlabels_ints");
  if (n.is("TreeEnsembleClassifier", kDomain))
    return texts(n, "classlabels_strings", "classlabels_int64s");
  if (n.is("ArrayFeatureExtractor", kDomain) && n.inputs[0] != kNone)
    return texts(g.value(n.inputs[0]).constant);
  // what a classifier becomes that is trained: the labels, at the best class
  if (n.is("Gather") && n.inputs[0] != kNone && g.value(n.inputs[0]).constant.rank() == 1 &&
      is_best(g, n.inputs[1]))
    return texts(g.value(n.inputs[0]).constant);
  return {};
}

bool is_output(const Graph& g, ValueId v) {
  for (int hops = 0; hops < 4; ++hops) {  // casts and reshapes on the way
    if (std::find(g.outputs.begin(), g.outputs.end(), v) != g.outputs.end()) return true;
    ValueId next = kNone;
    for (const Node& n : g.nodes)
      for (ValueId in : n.inputs)
        if (in == v && (n.is("Cast") || n.is("Reshape") || n.is("Squeeze") || n.is("Flatten") ||
                        n.is("Identity")))
          next = n.outputs[0];
    if (next == kNone) return false;
    v = next;
  }
  return false;
}

}  // namespace

std::vector<std::string> class_labels(const Graph& main) {
  for (const Node& n : main.nodes) {
    Names labels = labels_of(main, n);
    if (labels.size() < 2 || n.outputs.empty() || !is_output(main, n.outputs[0])) continue;
    bool counted = true;
    for (size_t i = 0; i < labels.size(); ++i) counted &= labels[i] == std::to_string(i);
    return counted ? Names() : labels;
  }
  return {};
}

}  // namespace onnxtrain
