// The commands. Each adds itself to the parser and returns its exit code when chosen.
#pragma once
#include <functional>
#include <string>

#include <CLI/CLI.hpp>

#include "cli/common/narration.hpp"

namespace onnxtrain::cli {

using Command = std::function<int()>;

// Registers a subcommand whose body runs after parsing.
class Registry {
 public:
  // all_help: options that are used rarely are shown too (--help-all)
  Registry(CLI::App& app, bool all_help) : app_(app), all_help_(all_help) {}
  CLI::App* add(const std::string& name, const std::string& help, const std::string& examples);
  void on(CLI::App* command, const Command& body) {
    command->callback([this, body] { chosen_ = body; });
  }
  // An option that is used rarely: listed by --help-all only.
  CLI::Option* rare(CLI::Option* o, const char* group) const {
    return o->group(all_help_ ? group : "");
  }
  int run() const { return chosen_ ? chosen_() : 2; }
  CLI::App& app() { return app_; }

 private:
  CLI::App& app_;
  bool all_help_;
  Command chosen_;
};

void add_info(Registry& r);
void add_check(Registry& r);
void add_run(Registry& r);
void add_grad(Registry& r);
void add_new(Registry& r);
void add_prepare(Registry& r);
void add_train(Registry& r);
void add_eval(Registry& r);
void add_predict(Registry& r);
void add_export(Registry& r);
void add_convert(Registry& r);
void add_conformance(Registry& r);
void add_diff(Registry& r);
void add_demo(Registry& r);
void add_doctor(Registry& r);
void add_explain(Registry& r);
void add_operators(Registry& r);
void add_bench(Registry& r);
void add_runs(Registry& r);
void add_report(Registry& r);
void add_launch(Registry& r);
void add_board(Registry& r);
void add_completion(Registry& r);
void add_reference(Registry& r);

// Parses and runs one command; returns the exit code of the program.
int run_command_line(int argc, char** argv);

// Names one typing mistake away from `word`: "did you mean --epochs?", or "".
std::string suggestion(const CLI::App& app, const std::string& word);

}  // namespace onnxtrain::cli
