// The Python side of the package, for what needs other frameworks.
#pragma once
#include <string>
#include <vector>

namespace onnxtrain::cli {

// Becomes `python -m MODULE ARGS...`; returns only when there is no interpreter.
void become_python(const std::string& module, const std::vector<std::string>& args);

// Runs `python -m MODULE ARGS...` and waits: its exit code, or -1 when there is no interpreter.
int run_python(const std::string& module, const std::vector<std::string>& args);

}  // namespace onnxtrain::cli
