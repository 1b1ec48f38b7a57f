// A command's options as settings of a run.
#pragma once
#include <CLI/CLI.hpp>

#include "run/folder/settings.hpp"

namespace onnxtrain::cli {

// After parsing: what was typed is taken as it is. Values from elsewhere (environment, files) are
// given to the options, which check them. The command must outlive the settings.
run::Settings settings_of(CLI::App* command);

}  // namespace onnxtrain::cli
