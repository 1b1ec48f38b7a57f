// Values as they were typed, before a command uses them.
#pragma once
#include <string>

#include <CLI/CLI.hpp>

namespace onnxtrain::cli {

// Refuses what no option takes: nothing at all, the name of another option, a number that is not
// finite or that no whole number of the machine holds (OT0003), and an output that is one of the
// inputs (OT0012).
void check_given(const CLI::App& command);

// An option by its name, "--epochs"; null when there is none.
const CLI::Option* option_of(const CLI::App& command, const std::string& name);

// The parser's words about values in ours; hint: a value that the option takes.
std::string in_our_words(const CLI::App& command, const std::string& said, std::string& hint);

// "inf", "nan" and numbers out of range for an option that takes a number; "" when it is sound.
std::string number_problem(const CLI::Option& option, const std::string& value);

}  // namespace onnxtrain::cli
