// Targets of another shape than the output: elementwise operators would repeat them without a word.
#pragma once
#include <string>
#include <vector>

#include "model/model.hpp"

namespace onnxtrain {

// Inputs of a prepared step that are compared with an output element by element.
std::vector<std::string> elementwise_targets(const Model& m, const TrainingStep& step);

// targets: names of inputs of `g`, whose types are concrete. Throws when what one of them meets has
// another shape; shapes that show only while running are not looked at.
void refuse_other_shapes(const Graph& g, const std::vector<std::string>& targets);

}  // namespace onnxtrain
