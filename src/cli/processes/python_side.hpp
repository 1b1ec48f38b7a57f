// The Python side of the package, for what needs other frameworks.
#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

namespace onnxtrain::cli {

// Becomes `python -m MODULE ARGS...`; returns only when there is no interpreter.
void become_python(const std::string& module, const std::vector<std::string>& args);

// Why there is no interpreter: "there is none on the path".
std::string missing_python();

// Runs `python -m MODULE ARGS...` and waits: its exit code, or -1 when there is no interpreter.
// silent: its complaints are not shown.
int run_python(const std::string& module, const std::vector<std::string>& args,
               bool silent = false);

// The same in a process of its own, which inherits what is open here but for `closed`.
pid_t start_python(const std::string& module, const std::vector<std::string>& args, int closed);
inline constexpr int kNoInterpreter = 127;  // its exit code when there is no Python

}  // namespace onnxtrain::cli
