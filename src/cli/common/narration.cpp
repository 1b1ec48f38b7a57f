// Narration and small words.
#include "cli/common/narration.hpp"

#include <cctype>
#include <cstdio>
#include <map>

#include "core/cpu.hpp"
#include "core/error.hpp"
#include "core/shell.hpp"
#include "run/start.hpp"

namespace onnxtrain::cli {

namespace {
bool quiet_ = false;
std::map<std::string, std::string> shown_names;

bool is_letter(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
std::string typed_line;
}  // namespace

void set_command_line(int argc, char** argv) {
  typed_line = "onnxtrain";
  for (int k = 1; k < argc; ++k) typed_line += " " + shell_word(argv[k]);
}
const std::string& command_line() { return typed_line; }

void set_name(const std::string& placeholder, const std::string& word) {
  shown_names[placeholder] = word;
}

std::string with_names(std::string hint) {
  for (const auto& [placeholder, word] : shown_names) {
    size_t at = hint.find("onnxtrain ");
    while (at != std::string::npos && (at = hint.find(placeholder, at)) != std::string::npos) {
      const size_t end = at + placeholder.size();
      const bool whole = !is_letter(hint[at - 1]) && (end == hint.size() || !is_letter(hint[end]));
      const std::string typed = shell_word(word);
      if (whole) hint.replace(at, placeholder.size(), typed);
      at += whole ? typed.size() : placeholder.size();
    }
    if (const size_t call = hint.find(cat("ot.Trainer(", placeholder, ")"));
        call != std::string::npos)
      hint.replace(call + 11, placeholder.size(), cat("\"", word, "\""));
  }
  return hint;
}

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
  if (!hint.empty()) std::fprintf(stderr, "  help: %s\n", with_names(hint).c_str());
}

std::string simd_name() { return name_of(instruction_set()); }

std::string checkpoint_of(const std::string& path, const std::string& which) {
  Narrator narrator;
  return run::checkpoint_of(path, which, narrator);
}

}  // namespace onnxtrain::cli
