// Numbers in the parameters of a training.
#include "cli/print/parameter_counts.hpp"

#include <set>

#include "core/text.hpp"

namespace onnxtrain::cli {

ParameterCounts count_parameters(const Model& m) {
  std::set<std::string> updated;
  for (const TrainingStep& s : m.training)
    for (const auto& [state, value] : s.update_binding) updated.insert(state);
  ParameterCounts n;
  for (const ValueDef& v : m.main.values)
    if (v.initializer && dtype_is_float(v.type.elem))
      (updated.count(v.name) > 0 ? n.trained : n.frozen) += v.constant.size();
  return n;
}

std::string frozen_text(const ParameterCounts& n) {
  return n.frozen > 0 ? cat(", ", with_commas(n.frozen), " frozen") : std::string();
}

}  // namespace onnxtrain::cli
