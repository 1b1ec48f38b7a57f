// What files of earlier versions meant.
#include "onnx/load/earlier_files.hpp"

#include <algorithm>

#include "model/training_copies.hpp"

namespace onnxtrain {

namespace {

constexpr std::string_view kSuffix = "_train";

std::string_view without_suffix(std::string_view name) {
  if (name.size() <= kSuffix.size() || !name.ends_with(kSuffix)) return {};
  return name.substr(0, name.size() - kSuffix.size());
}

// Lowering kept the names of the values that nodes of the step make.
std::vector<ValueId> made_values(const Graph& g) {
  std::vector<ValueId> list;
  for (const Node& n : g.nodes)
    for (ValueId v : n.outputs)
      if (v != kNone) list.push_back(v);
  return list;
}

// A module's outputs in training are outputs of the step, behind the loss.
std::vector<ValueId> training_outputs(const TrainingStep& t) {
  std::vector<ValueId> list;
  for (size_t k = 1; k < t.algorithm.outputs.size(); ++k) {
    const ValueId v = t.algorithm.outputs[k];
    const bool assigned =
        std::any_of(t.update_binding.begin(), t.update_binding.end(),
                    [&](const auto& b) { return b.second == t.algorithm.value_name(v); });
    if (!assigned) list.push_back(v);
  }
  return list;
}

}  // namespace

void mark_copies_by_name(Model& m) {
  const bool lowered = m.metadata.contains("onnxtrain.lowered");
  const bool from_torch = m.metadata.contains("onnxtrain.torch");
  if ((!lowered && !from_torch) || m.metadata.contains(kInferenceForm)) return;
  for (TrainingStep& t : m.training) {
    const Graph& g = t.algorithm;
    for (ValueId v : lowered ? made_values(g) : training_outputs(t)) {
      const std::string_view original = without_suffix(g.value_name(v));
      if (original.empty() || g.value(v).inference_form != kNone) continue;
      t.mark(v).inference_form = m.main.find(original);
    }
  }
}

}  // namespace onnxtrain
