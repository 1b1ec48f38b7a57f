// Narration and small words.
#include "cli/narration.hpp"

#include <cstdio>

#include "core/cpu.hpp"
#include "core/error.hpp"
#include "core/shell.hpp"
#include "run/start.hpp"

namespace onnxtrain::cli {

namespace {
bool quiet_ = false;
std::string command_line_;
}  // namespace

void set_command_line(int argc, char** argv) {
  command_line_ = "onnxtrain";
  for (int k = 1; k < argc; ++k) command_line_ += " " + shell_word(argv[k]);
}
const std::string& command_line() { return command_line_; }

bool quiet() { return quiet_; }
void set_quiet(bool q) { quiet_ = q; }

int& verbosity() {
  static int level = 0;
  return level;
}

void say(const std::string& label, const std::string& text) {
  if (!quiet_) std::fprintf(stderr, "%-9s %s\n", label.c_str(), text.c_str());
}

void warn(const std::string& code, const std::string& text, const std::string& hint) {
  if (quiet_) return;  // errors only
  std::fprintf(stderr, "warning[%s]: %s\n", code.c_str(), text.c_str());
  if (!hint.empty()) std::fprintf(stderr, "  help: %s\n", hint.c_str());
}

std::string simd_name() { return name_of(instruction_set()); }

std::string checkpoint_of(const std::string& path, const std::string& which) {
  Narrator narrator;
  return run::checkpoint_of(path, which, narrator);
}

}  // namespace onnxtrain::cli
