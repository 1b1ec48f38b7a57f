// Values of a command's options and where each came from: flag, environment ONNXTRAIN_X, --config
// file, the run that is resumed, what the model file carries, default.
#pragma once
#include <map>
#include <set>
#include <string>

#include <CLI/CLI.hpp>

namespace onnxtrain::cli {

class Settings {
 public:
  // After parsing: what was typed is taken as it is.
  explicit Settings(CLI::App* command);
  void from_environment();
  // A toml file; `source` is how config.toml will name it. Keys are the options' long names; an
  // unknown one is an error with a suggestion (OT0007). `leave` are passed over.
  void from_file(const std::string& path, const std::string& source,
                 const std::set<std::string>& leave = {});
  bool given(const std::string& name) const { return source_.count(name) != 0; }
  // Said for this command, not taken over from a run that is resumed.
  bool fresh(const std::string& name) const { return given(name) && source_.at(name) != "run"; }
  // Said for this command, and not what the run has that is resumed (from_file as "run").
  bool changes(const std::string& name) const;
  // The text of a value in config.toml, where it says more than what was typed.
  void replace(const std::string& name, const std::string& value) { shown_[name] = value; }
  void mark(const std::string& name, const std::string& source) { source_[name] = source; }
  // toml: one line per option, with the source as a comment.
  std::string text() const;

 private:
  void apply(CLI::Option* o, const std::vector<std::string>& values, const std::string& source);
  CLI::App* app_;
  std::map<std::string, CLI::Option*> options_;  // by long name
  std::map<std::string, std::string> source_;    // of what is not the default
  std::map<std::string, std::string> shown_;
  std::map<std::string, std::vector<std::string>> of_run_;
};

}  // namespace onnxtrain::cli
