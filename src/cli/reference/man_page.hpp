// onnxtrain(1) from the table of commands.
#pragma once
#include <string>
#include <vector>

#include "cli/reference/reference.hpp"

namespace onnxtrain::cli {

std::string man_page(const std::vector<CommandEntry>& commands);

}  // namespace onnxtrain::cli
