// `export --whole`: the entire training as one model.
#pragma once
#include <string>

#include "cli/export_step.hpp"
#include "convert/whole/whole.hpp"

namespace onnxtrain::cli {

struct WholeFlags {
  bool wanted = false;
  WholeOptions options;
};

void add_whole_flags(Registry& r, CLI::App* c, WholeFlags& f);
// Options of the step (--opset, --dim, ...) are those of `step`.
int export_whole(const Model& m, const WholeFlags& f, const StepFlags& step,
                 const std::string& from, const std::string& to);

}  // namespace onnxtrain::cli
