// Names that people type for our options and commands because other tools call them so.
#pragma once
#include <string>

#include "cli/common/commands.hpp"

namespace onnxtrain::cli {

// For an option that the command does not have: "did you mean --epochs?", or why there is none.
std::string option_hint(const CLI::App& command, const std::string& typed);
// The name of the option that a key of a settings file means, without dashes; "" when none does.
std::string option_named(const CLI::App& command, const std::string& typed);
// For a command that does not exist.
std::string command_hint(const CLI::App& app, const std::string& typed);

}  // namespace onnxtrain::cli
