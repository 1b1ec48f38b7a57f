// The name that was probably meant.
#pragma once
#include <string>
#include <vector>

namespace onnxtrain {

// The candidate that is a typing mistake away from `name`, or "".
std::string closest(const std::string& name, const std::vector<std::string>& candidates);

}  // namespace onnxtrain
