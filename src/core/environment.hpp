// The environment variables that the library reads: a wrong value is an error, also where it would
// not be used.
#pragma once
#include <string>
#include <vector>

namespace onnxtrain {

// Checks the values of all of them, and names that are a typing mistake away from one. `others`:
// further names, whose values somebody else checks. A usage error names variable and value.
void check_environment(const std::vector<std::string>& others = {});

}  // namespace onnxtrain
