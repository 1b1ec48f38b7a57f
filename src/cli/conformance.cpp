// `conformance`: hands over to the Python side, where the cases and other runtimes are.
#include <string>
#include <vector>

#include "cli/common/commands.hpp"
#include "cli/processes/python_side.hpp"
#include "core/error.hpp"

namespace onnxtrain::cli {

namespace {

struct Options {
  std::string action, folder, engine, backend, only, html;
  bool json = false, all = false;
};

int conformance(const Options& o) {
  std::vector<std::string> args = {o.action};
  if (!o.folder.empty()) args.push_back(o.folder);
  const auto give = [&](const char* flag, const std::string& value) {
    if (!value.empty()) args.insert(args.end(), {flag, value});
  };
  give("--engine", o.engine);
  give("--backend", o.backend);
  give("--only", o.only);
  give("--html", o.html);
  if (o.json) args.push_back("--json");
  if (o.all) args.push_back("--all");
  become_python("onnxtrain.conformance", args);
  usage_error("OT1731", cat("the conformance suite needs Python, and ", missing_python()),
              "install it with the package:  pip install onnxtrain   or name it in "
              "ONNXTRAIN_PYTHON");
}

}  // namespace

void add_conformance(Registry& r) {
  static Options o;
  CLI::App* c = r.add(
      "conformance", "the conformance suite for ONNX Training: write it, run it on any engine",
      "  onnxtrain conformance export suite/                     the cases as files\n"
      "  onnxtrain conformance run                               this library on all of them\n"
      "  onnxtrain conformance run --engine onnxruntime --html scoreboard.html\n"
      "  onnxtrain conformance run suite/ --backend my.backend   a backend of your own");
  c->add_option("ACTION", o.action, "export or run")
      ->required()
      ->check(CLI::IsMember({"export", "run"}));
  c->add_option("DIR", o.folder, "the suite's folder; run without it makes the cases as it goes");
  c->add_option("--engine", o.engine, "run: NAME[:DEVICE], as train --engine takes it");
  c->add_option("--backend", o.backend, "run: a Python module of the ONNX backend interface");
  c->add_option("--only", o.only, "cases whose name fits this glob, for example 'adam_*'");
  c->add_option("--html", o.html, "run: write a scoreboard page");
  c->add_flag("--json", o.json, "run: every result as JSON on stdout");
  c->add_flag("--all", o.all, "run: list what is not applicable too");
  r.on(c, [] { return conformance(o); });
}

}  // namespace onnxtrain::cli
