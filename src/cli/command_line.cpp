// The command line: parses, runs one command, turns errors into exit codes.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <new>

#include "cli/commands.hpp"
#include "cli/flag_words.hpp"
#include "cli/narration.hpp"
#include "core/error.hpp"
#include "core/error_trace.hpp"
#include "core/memory.hpp"
#include "core/version.hpp"
#include "data/dataset.hpp"

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
  return c;
}

std::string suggestion(const CLI::App& app, const std::string& word) {
  return word.starts_with("-") ? option_hint(app, word) : command_hint(app, word);
}

namespace {

// The parser's complaint in our form, with the name that was probably meant.
int usage_failure(CLI::App& app, const CLI::ParseError& e, const std::string& first) {
  CLI::App* command = app.get_subcommands().empty() ? &app : app.get_subcommands()[0];
  std::string message = e.what(), hint;
  // the parser prints the largest double as the end of "greater than 0"
  if (size_t at = message.find(" not in range 0.000000 to 17976931"); at != std::string::npos)
    message = message.substr(0, at) + " is not a positive number";
  std::vector<std::string> extra = app.remaining(true);
  if (command == &app && !first.starts_with("-")) extra = {first};
  if (!extra.empty()) {
    bool option = extra[0].starts_with("-");
    message = option            ? cat("there is no option ", extra[0].substr(0, extra[0].find('=')),
                           command == &app ? "" : " of " + command->get_name())
                         : command == &app ? cat("there is no command '", extra[0], "'")
                                : cat("'", extra[0], "' is one argument too many");
    hint = suggestion(*command, extra[0]);
  }
  if (hint.empty())
    hint = command == &app ? "onnxtrain --help" : cat("onnxtrain ", command->get_name(), " --help");
  std::fprintf(stderr, "error[OT0001]: %s\n  help: %s\n", message.c_str(), hint.c_str());
  return 2;
}

void add_commands(Registry& r) {
  add_demo(r);
  add_info(r);
  add_check(r);
  add_run(r);
  add_grad(r);
  add_prepare(r);
  add_train(r);
  add_eval(r);
  add_predict(r);
  add_export(r);
  add_convert(r);
  add_diff(r);
  add_bench(r);
  add_runs(r);
  add_report(r);
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
  if (argc == 1) {
    std::printf("%s", app.help().c_str());
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
  set_error_traces(verbosity() > 1);
  const auto start = std::chrono::steady_clock::now();
  const int code = r.run();
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
    std::fprintf(stderr, "%s\n%s", e.what(), last_error_trace().c_str());
    int code = int(e.kind());
    return code > 5 ? 1 : code;
  } catch (const std::bad_alloc&) {
    std::fprintf(stderr, "error[OT1401]: out of memory\n");
    return 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "error[OT9001]: %s\n", e.what());
    return 1;
  }
}

}  // namespace onnxtrain::cli
