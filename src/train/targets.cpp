// Targets of a training file: from what `prepare` noted, else from its graphs.
#include "train/targets.hpp"

#include <algorithm>
#include <cstdlib>

namespace onnxtrain {

namespace {

bool is_class_loss(const Node& n) {
  return n.is("SoftmaxCrossEntropyLoss") || n.is("NegativeLogLikelihoodLoss");
}

std::optional<int64_t> ignored_label(const Model& m) {
  std::vector<const Graph*> graphs{&m.main};
  for (const TrainingStep& t : m.training) graphs.push_back(&t.algorithm);
  for (const Graph* g : graphs)
    for (const Node& n : g->nodes)
      if (is_class_loss(n) && n.has("ignore_index")) return n.i("ignore_index", 0);
  return std::nullopt;
}

ValueId output_of(const Model& m) {
  auto named = m.metadata.find("onnxtrain.output");
  ValueId first = kNone;
  for (ValueId v : m.main.outputs) {
    if (named != m.metadata.end() && m.main.value_name(v) == named->second) return v;
    const TypeInfo& t = m.main.value(v).type;
    if (first == kNone && t.is_tensor() && dtype_is_float(t.elem)) first = v;
  }
  return first;
}

}  // namespace

TargetInfo target_info(const Model& m) {
  TargetInfo info;
  info.ignore_index = ignored_label(m);
  ValueId v = output_of(m);
  if (v == kNone) return info;
  info.output = m.main.value_name(v);
  const ValueDef& d = m.main.value(v);
  if (d.producer >= 0) {
    const Node& n = m.main.nodes[size_t(d.producer)];
    info.probabilities = n.is("Sigmoid") || n.is("Softmax");
  }
  if (!d.type.shape || d.type.shape->size() < 2) return info;
  const auto& dims = *d.type.shape;
  auto axis = m.metadata.find("onnxtrain.class_axis");
  if (axis != m.metadata.end()) info.axis = std::strtoll(axis->second.c_str(), nullptr, 10);
  // [batch, time, 50257]: only the last size is a number
  else if (dims.size() > 2 && !dims[1].known() && dims.back().known())
    info.axis = int64_t(dims.size()) - 1;
  if (info.axis < 0 || info.axis >= int64_t(dims.size())) info.axis = 1;
  const Dim& classes = dims[size_t(info.axis)];
  if (classes.known()) info.classes = classes.value;
  return info;
}

bool is_target(const Model& m, const std::string& input) {
  std::vector<std::string> inputs = m.input_names();
  return std::find(inputs.begin(), inputs.end(), input) == inputs.end();
}

}  // namespace onnxtrain
