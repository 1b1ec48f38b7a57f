// The commands. Each adds itself to the parser and returns its exit code when chosen.
#pragma once
#include <functional>
#include <string>

#include <CLI/CLI.hpp>

namespace onnxtrain::cli {

using Command = std::function<int()>;

// Registers a subcommand whose body runs after parsing.
class Registry {
 public:
  explicit Registry(CLI::App& app) : app_(app) {}
  CLI::App* add(const std::string& name, const std::string& help, const std::string& examples);
  void on(CLI::App* command, Command body) {
    command->callback([this, body] { chosen_ = body; });
  }
  int run() const { return chosen_ ? chosen_() : 2; }
  bool any() const { return bool(chosen_); }

 private:
  CLI::App& app_;
  Command chosen_;
};

void add_info(Registry& r);
void add_check(Registry& r);
void add_run(Registry& r);
void add_grad(Registry& r);
void add_prepare(Registry& r);
void add_train(Registry& r);
void add_eval(Registry& r);
void add_predict(Registry& r);
void add_export(Registry& r);
void add_convert(Registry& r);
void add_diff(Registry& r);
void add_demo(Registry& r);
void add_doctor(Registry& r);
void add_explain(Registry& r);
void add_operators(Registry& r);
void add_bench(Registry& r);

// ---- shared by several commands
// stdout: results; stderr: narration. A label padded to 10 columns, then text.
void say(const std::string& label, const std::string& text);
bool quiet();
void set_quiet(bool q);
// "1,234,567"
std::string with_commas(int64_t n);

}  // namespace onnxtrain::cli
