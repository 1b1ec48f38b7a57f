// Narration and small words.
#include "cli/narration.hpp"

#include <cstdio>
#include <filesystem>

#include "core/cpu.hpp"
#include "core/error.hpp"
#include "train/run_folder.hpp"

namespace onnxtrain::cli {

namespace {
bool quiet_ = false;
}

bool quiet() { return quiet_; }
void set_quiet(bool q) { quiet_ = q; }

void say(const std::string& label, const std::string& text) {
  if (!quiet_) std::fprintf(stderr, "%-9s %s\n", label.c_str(), text.c_str());
}

void warn(const std::string& code, const std::string& text, const std::string& hint) {
  std::fprintf(stderr, "warning[%s]: %s\n", code.c_str(), text.c_str());
  if (!hint.empty()) std::fprintf(stderr, "  help: %s\n", hint.c_str());
}

std::string simd_name() { return name_of(instruction_set()); }

std::string checkpoint_of(const std::string& path, const std::string& which) {
  if (!std::filesystem::is_directory(path)) return path;
  RunFolder run(path);
  if (which != "last" && std::filesystem::exists(run.best())) return run.best();
  run.require_last();
  if (which != "last") say("note", cat(run.best(), " is not there: the last checkpoint is taken"));
  return run.last();
}

}  // namespace onnxtrain::cli
