// Words on stderr, shared by the commands.
#pragma once
#include <string>

#include "core/text.hpp"
#include "run/hooks/observer.hpp"

namespace onnxtrain::cli {

// stdout: results; stderr: narration. A label padded to 10 columns, then text.
void say(const std::string& label, const std::string& text);
void warn(const std::string& code, const std::string& text, const std::string& hint = {});
bool quiet();
void set_quiet(bool q);
// Says what a run tells.
class Narrator : public run::Observer {
 public:
  void on_note(const std::string& label, const std::string& text) override { say(label, text); }
  void on_warning(const std::string& code, const std::string& text,
                  const std::string& hint) override {
    warn(code, text, hint);
  }
};

// What MODEL, RUN and DATA in a printed command stand for: the user's own names.
void set_name(const std::string& placeholder, const std::string& word);
std::string with_names(std::string hint);

// The command as it was typed, for shells.
void set_command_line(int argc, char** argv);
const std::string& command_line();

// How often -v was given: 1 says more about decisions, time and memory, 2 adds where an error was
// thrown.
int& verbosity();
// AVX-512, AVX2 or baseline
std::string simd_name();
// A run folder -> its best (or last) checkpoint; anything else as it is. OT4102 when the folder is
// no run.
std::string checkpoint_of(const std::string& run_or_file, const std::string& which = "best");

}  // namespace onnxtrain::cli
