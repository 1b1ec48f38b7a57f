// New initial values for the trained parameters.
#pragma once
#include "convert/prepare.hpp"

namespace onnxtrain {

// Fills in the initialization of training[0]: initial values by operator kind (PyTorch's defaults),
// deterministic by seed; optimizer state starts anew with them.
void add_reset(Model& m, const std::vector<std::string>& parameters, uint64_t seed,
               const OpTable& ops);

}  // namespace onnxtrain
