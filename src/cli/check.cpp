// check: validity, and with --grad the gradients.
#include <cstdio>

#include <nlohmann/json.hpp>

#include "cli/common/commands.hpp"
#include "cli/flags/limit_flags.hpp"
#include "cli/measure/check_gradients.hpp"
#include "engine/check_types.hpp"
#include "onnx/odd_updates.hpp"

namespace onnxtrain::cli {

namespace {

using nlohmann::json;

struct CheckFlags {
  std::string path;
  bool as_json = false, grad = false;
  uint64_t seed = 0;
  LimitFlags limits;
};

// Every violation at once; returns the number of errors.
int report_findings(const CheckFlags& f, json& list) {
  int errors = 0;
  Model m;
  auto found = with_types_checked(check_model_file(f.path, all_ops()), [&]() -> const Model& {
    return m = load_model(f.path, all_ops());
  });
  add_odd_updates(m, found);
  for (const Finding& x : found) {
    bool error = x.level == Finding::Level::kError;
    errors += error;
    if (f.as_json) {
      list.push_back({{"level", error ? "error" : "warning"},
                      {"code", x.code},
                      {"rule", x.rule},
                      {"message", x.message},
                      {"hint", x.hint}});
    } else {
      std::printf("%s[%s]: %s%s\n", error ? "error" : "warning", x.code.c_str(), x.message.c_str(),
                  x.rule.empty() ? "" : cat(" (rule ", x.rule, ")").c_str());
      if (!x.hint.empty()) std::printf("  help: %s\n", x.hint.c_str());
    }
  }
  return errors;
}

int report_gradients(const CheckFlags& f, json& list) {
  Model m = load_model(f.path, all_ops());
  std::vector<GradientCheck> all = check_gradients(m, f.seed, f.limits.limits());
  int wrong = 0;
  double worst = 0;
  for (const GradientCheck& g : all) {
    wrong += !g.ok;
    worst = std::max(worst, g.error);
    if (f.as_json)
      list.push_back({{"parameter", g.name},
                      {"gradient", g.gradient},
                      {"difference", g.measured},
                      {"error", g.error},
                      {"noise", g.noise},
                      {"ok", g.ok}});
    else if (!g.ok)
      std::printf(
          "error[OT1207]: the gradient of '%s' is %.6g along a random direction, finite "
          "differences say %.6g\n",
          g.name.c_str(), g.gradient, g.measured);
  }
  if (!f.as_json)
    std::printf(
        "gradients %d of %d parameters agree with finite differences (largest relative "
        "gap %.2g)\n",
        int(all.size()) - wrong, int(all.size()), worst);
  return wrong;
}

int check(const CheckFlags& f) {
  json findings = json::array(), gradients = json::array();
  int errors = report_findings(f, findings);
  int wrong = f.grad && !errors ? report_gradients(f, gradients) : 0;
  if (f.as_json)
    std::printf("%s\n", (f.grad ? json{{"findings", findings}, {"gradients", gradients}} : findings)
                            .dump(2)
                            .c_str());
  else if (errors == 0)
    std::printf("valid     %s\n", f.path.c_str());
  return errors ? 3 : wrong ? 6 : 0;
}

}  // namespace

void add_check(Registry& r) {
  static CheckFlags f;
  CLI::App* c = r.add("check", "validity, including every rule for training files",
                      "  onnxtrain check model.train.onnx\n  onnxtrain check model.onnx --grad");
  c->add_option("MODEL", f.path, "an ONNX file")->required();
  c->add_flag("--json", f.as_json, "machine-readable");
  c->add_flag("--grad", f.grad,
              "every parameter's gradient against finite differences on a random batch");
  c->add_option("--seed", f.seed, "of the random batch and directions");
  f.limits.add_to(r, c);
  r.on(c, [] { return check(f); });
}

}  // namespace onnxtrain::cli
