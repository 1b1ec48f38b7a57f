// The command line tool: parses, runs one command, turns errors into exit codes.
#include <cstdio>
#include <cstring>
#include <new>

#include "cli/commands.hpp"
#include "core/error.hpp"
#include "core/version.hpp"

namespace onnxtrain::cli {

namespace {
bool quiet_ = false;
}

bool quiet() { return quiet_; }
void set_quiet(bool q) { quiet_ = q; }

void say(const std::string& label, const std::string& text) {
  if (!quiet_) std::fprintf(stderr, "%-9s %s\n", label.c_str(), text.c_str());
}

std::string with_commas(int64_t n) {
  std::string s = std::to_string(n);
  for (int k = int(s.size()) - 3; k > (n < 0 ? 1 : 0); k -= 3) s.insert(size_t(k), ",");
  return s;
}

CLI::App* Registry::add(const std::string& name, const std::string& help,
                        const std::string& examples) {
  CLI::App* c = app_.add_subcommand(name, help);
  c->footer("Examples:\n" + examples);
  return c;
}

namespace {

int run(int argc, char** argv) {
  CLI::App app{
      "onnxtrain: trains ONNX models. An ONNX file can carry its own training, and this program "
      "obeys it."};
  app.set_version_flag("--version", std::string("onnxtrain ") + version());
  app.require_subcommand(1);
  app.footer(
      "Examples:\n"
      "  onnxtrain demo                                   train the MNIST sample from nothing\n"
      "  onnxtrain info model.onnx                        what is in a file, and could it be "
      "trained\n"
      "  onnxtrain train model.onnx --data data.npz       train it\n"
      "  onnxtrain COMMAND --help                         options and examples of a command");
  Registry r(app);
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
  add_doctor(r);
  add_explain(r);
  add_operators(r);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForAllHelp& e) {
    return app.exit(e);
  } catch (const CLI::CallForVersion& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    std::fprintf(stderr, "error[OT0001]: %s\n  help: onnxtrain %s --help\n", e.what(),
                 argc > 1 && argv[1][0] != '-' ? argv[1] : "");
    return 2;
  }
  return r.run();
}

}  // namespace
}  // namespace onnxtrain::cli

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--version") == 0) {
    std::printf("onnxtrain %s\n", onnxtrain::version());
    return 0;
  }
  try {
    return onnxtrain::cli::run(argc, argv);
  } catch (const onnxtrain::Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
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
