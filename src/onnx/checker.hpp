// The checker over a message. Internal to onnx/.
#pragma once
#include <vector>

#include "onnx/onnx.hpp"
#include "onnx/source.hpp"

namespace onnxtrain {

// IR and opset versions that this build understands.
std::vector<Finding> check_versions(const ModelSource& source);
// Everything: validity and, with training_info, C1-C20. External data is not opened.
std::vector<Finding> check_source(ModelSource& source, const OpTable& ops);
// Throws the first finding that is an error, if any.
void throw_first_error(const std::vector<Finding>& findings);

}  // namespace onnxtrain
