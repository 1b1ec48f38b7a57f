// How many parameters a training changes, and how many it leaves alone.
#pragma once
#include <string>

#include "model/model.hpp"

namespace onnxtrain::cli {

struct ParameterCounts {
  int64_t trained = 0, frozen = 0;
};

// Of a model with its training.
ParameterCounts count_parameters(const Model& m);
// ", 20 frozen"; "" when there are none.
std::string frozen_text(const ParameterCounts& n);

}  // namespace onnxtrain::cli
