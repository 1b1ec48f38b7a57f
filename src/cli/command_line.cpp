// The command line: parses, runs one command, turns errors into exit codes.
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <new>
#include <set>

#include "cli/common/commands.hpp"
#include "cli/common/narration.hpp"
#include "cli/flags/flag_words.hpp"
#include "cli/flags/given_values.hpp"
#include "cli/flags/settings.hpp"
#include "cli/processes/data_process.hpp"
#include "cli/processes/fallback_process.hpp"
#include "cli/processes/processes.hpp"
#include "core/error.hpp"
#include "core/error_trace.hpp"
#include "core/memory.hpp"
#include "core/no_thread.hpp"
#include "core/shell.hpp"
#include "core/version.hpp"
#include "data/columns/dataset.hpp"

namespace onnxtrain::cli {

namespace {

// Help with the examples before the options.
class Help : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name,
                        CLI::AppFormatMode mode) const override {
    if (mode == CLI::AppFormatMode::Sub) return CLI::Formatter::make_help(app, name, mode);
    std::string out = make_description(app) + "\n" + app->get_footer() + "\n\n";
    out += make_usage(app, app->get_parent() ? "onnxtrain " + app->get_name() : name);
    return out + make_positionals(app) + make_groups(app, mode) + make_subcommands(app, mode);
  }
};

}  // namespace

CLI::App* Registry::add(const std::string& name, const std::string& help,
                        const std::string& examples) {
  CLI::App* c = app_.add_subcommand(name, help);
  c->footer("Examples:\n" + examples);
  c->option_defaults()->always_capture_default();
  c->set_help_flag("-h,--help,--help-all", "this text; --help-all: every option");
  rare(c->add_flag("-v,--verbose", verbosity(),
                   "more about decisions, time and memory; -vv: where an error comes from"),
       "Look");
  static const std::set<std::string> read_models = {"info",    "check", "run",  "grad",
                                                    "prepare", "train", "eval", "predict",
                                                    "export",  "bench", "diff"};
  if (read_models.contains(name)) add_fallback_flags(*this, c);
  return c;
}

std::string suggestion(const CLI::App& app, const std::string& word) {
  return word.starts_with("-") ? option_hint(app, word) : command_hint(app, word);
}

namespace {

// A file behind the model, where data is wanted.
std::string data_hint(const CLI::App& command, const std::string& word) {
  const CLI::Option* data = option_of(command, "--data");
  std::error_code ignored;
  return data && data->empty() && std::filesystem::exists(word, ignored)
             ? cat("--data ", shell_word(word))
             : std::string();
}

// The parser's complaint in our form, with the name that was probably meant.
int usage_failure(CLI::App& app, const CLI::ParseError& e, const std::string& first) {
  CLI::App* command = app.get_subcommands().empty() ? &app : app.get_subcommands()[0];
  std::string hint, message = in_our_words(*command, e.what(), hint);
  std::vector<std::string> extra = app.remaining(true);
  if (command == &app && !first.starts_with("-")) extra = {first};
  // a value that is wrong is named, whatever stands behind it
  const bool value = dynamic_cast<const CLI::ValidationError*>(&e) != nullptr ||
                     dynamic_cast<const CLI::ConversionError*>(&e) != nullptr;
  if (!extra.empty() && !value) {
    bool option = extra[0].starts_with("-");
    message = option            ? cat("there is no option ", extra[0].substr(0, extra[0].find('=')),
                           command == &app ? "" : " of " + command->get_name())
                         : command == &app ? cat("there is no command '", extra[0], "'")
                                : cat("'", extra[0], "' is one argument too many");
    hint = suggestion(*command, extra[0]);
    if (!option && command != &app && hint.empty()) hint = data_hint(*command, extra[0]);
    if (option && command->get_name() == "launch")
      hint =
          "options of the command stand behind --:  onnxtrain launch -n 2 -- train MODEL --data "
          "DATA";
  }
  if (hint.empty())
    hint = command == &app ? "onnxtrain --help" : cat("onnxtrain ", command->get_name(), " --help");
  return failed(cat("error[OT0001]: ", message, "\n  help: ", hint), 2);
}

// The user's files, for the commands in hints.
void note_names(const CLI::App& app) {
  if (app.get_subcommands().empty()) return;
  for (const CLI::Option* o : app.get_subcommands()[0]->get_options()) {
    if (o->empty()) continue;
    const std::string name = o->get_name(), value = o->results().back();
    if (name.find("MODEL") != std::string::npos) set_name("MODEL", value);
    if (name.find("RUN") != std::string::npos || name == "--resume") set_name("RUN", value);
    if (name == "--data") set_name("DATA", value);
  }
}

// Variables of the environment are wrong for every command, also where it does not use them.
// Those that tell what to do about an error answer all the same.
void check_variables(const CLI::App& app) {
  static const std::set<std::string> excepted = {"train", "explain", "completion", "reference"};
  if (app.get_subcommands().empty() || excepted.contains(app.get_subcommands()[0]->get_name()))
    return;  // train takes its settings from there, and checks them when it does
  settings_of(app.get_subcommand("train")).from_environment();
}

void add_commands(Registry& r) {
  add_demo(r);
  add_info(r);
  add_check(r);
  add_run(r);
  add_grad(r);
  add_new(r);
  add_prepare(r);
  add_train(r);
  add_launch(r);
  add_eval(r);
  add_predict(r);
  add_export(r);
  add_convert(r);
  add_conformance(r);
  add_diff(r);
  add_bench(r);
  add_runs(r);
  add_report(r);
  add_board(r);
  add_doctor(r);
  add_explain(r);
  add_operators(r);
  add_completion(r);
  add_reference(r);
}

int run(int argc, char** argv) {
  CLI::App app{
      "onnxtrain: trains ONNX models. An ONNX file can carry its own training, and this program "
      "obeys it."};
  app.formatter(std::make_shared<Help>());
  app.set_version_flag("--version", std::string("onnxtrain ") + version());
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  onnxtrain demo                                   train the MNIST sample from nothing\n"
      "  onnxtrain info model.onnx                        what is in a file, and could it be "
      "trained\n"
      "  onnxtrain train model.onnx --data data.npz       train it\n"
      "  onnxtrain COMMAND --help                         options and examples of a command");
  // The parser does not name options that it hides: they are hidden from the short help only.
  bool short_help = false;
  for (int k = 1; k < argc; ++k)
    short_help |= std::strcmp(argv[k], "--help") == 0 || std::strcmp(argv[k], "-h") == 0;
  Registry r(app, !short_help);
  add_commands(r);
  if (argc == 3 && std::strcmp(argv[1], "help") == 0)
    usage_error("OT0001", "there is no command 'help'", cat("onnxtrain ", argv[2], " --help"));
  if (argc == 1) {
    std::printf("%s", app.help("onnxtrain").c_str());
    return 2;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    return usage_failure(app, e, argv[1]);
  }
  if (!app.get_subcommands().empty()) check_given(*app.get_subcommands()[0]);
  note_names(app);
  set_error_traces(verbosity() > 1);
  check_variables(app);
  const auto start = std::chrono::steady_clock::now();
  start_fallback();
  use_python_for_data();
  const int code = r.run();
  // results that never arrived are no results
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
    throw Error(ErrorKind::kFailed, "OT4012",
                cat("cannot write to standard output: ", std::strerror(errno)),
                "the disk or pipe behind it is full or closed; where there is one, take another "
                "file:  -o FILE");
  if (verbosity() > 0) {
    std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    say("took", cat(took.count(), " s, ", double(peak_resident_bytes()) / 1e6, " MB at most"));
  }
  return code;
}

}  // namespace

int run_command_line(int argc, char** argv) {
  verbosity() = 0;
  try {
    return run(argc, argv);
  } catch (const Error& e) {
    const Error told(e.kind(), e.code(), e.message(), with_names(e.hint()));
    const int code = int(e.kind());
    const std::string trace = last_error_trace();
    return failed(
        trace.empty() ? told.what() : cat(told.what(), "\n", trace.substr(0, trace.size() - 1)),
        code > 5 ? 1 : code);
  } catch (const std::bad_alloc&) {
    return failed("error[OT1401]: out of memory", 1);
  } catch (const std::system_error& e) {
    return failed(error_of(e).what(), 1);
  } catch (const std::exception& e) {
    return failed(cat("error[OT9001]: ", e.what()), 1);
  }
}

}  // namespace onnxtrain::cli
