// `export --step`: a training step for other runtimes.
#pragma once
#include <string>
#include <vector>

#include "cli/common/commands.hpp"
#include "convert/portable/portable.hpp"

namespace onnxtrain::cli {

struct StepFlags {
  std::vector<std::string> section;  // --step: nothing, a number or "all"
  std::vector<std::string> dims;
  StepOptions options;
};

void add_step_flags(CLI::App* c, StepFlags& f);
// Writes the step of `m`, which was read from `from`, to `to` with manifest and initial state.
int export_step(const Model& m, const StepFlags& f, const std::string& from, const std::string& to);

}  // namespace onnxtrain::cli
