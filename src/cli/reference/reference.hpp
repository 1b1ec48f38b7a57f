// Every command with its options as data, read from the parser: the one source of docs/cli.md, of
// the completion scripts and of anything else that lists options.
#pragma once
#include <string>
#include <vector>

#include "cli/common/commands.hpp"

namespace onnxtrain::cli {

struct OptionEntry {
  std::string group;               // heading in the help: "Data", "Length", ...
  std::vector<std::string> names;  // "-o", "--output"; a positional argument: "MODEL"
  std::string value;               // what it takes: "TEXT", "INT", "{a,b}"; "" for a flag
  std::string help, default_value;
  bool positional = false, required = false, repeated = false;

  std::vector<std::string> long_names() const;  // "--output"
  bool is_help() const;                         // every command has it
};

struct CommandEntry {
  std::string name, help, examples;
  std::vector<OptionEntry> options;
};

// Every command but `reference` itself, in the order of the help.
std::vector<CommandEntry> command_table(const CLI::App& app);

}  // namespace onnxtrain::cli
