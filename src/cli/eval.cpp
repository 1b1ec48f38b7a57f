// eval: loss and metrics of a run or model.
#include <cstdio>

#include <nlohmann/json.hpp>

#include "cli/data_flags.hpp"
#include "cli/limit_flags.hpp"
#include "cli/progress.hpp"
#include "run/predict.hpp"

namespace onnxtrain::cli {

namespace {

struct EvalFlags {
  std::string what, part = "test", which = "best";
  DataFlags data;
  LimitFlags limits;
  int64_t batch = 256;
  int threads = 0;
  bool as_json = false;
};

int eval(const EvalFlags& f) {
  ProgramOptions po;
  po.threads = f.threads;
  po.limits = f.limits.limits();
  Narrator narrator;
  const auto [metrics, rows] =
      run::evaluate(f.what, f.which, f.data.request(),
                    f.part == "test" ? DataPart::kTest : DataPart::kTrain, f.batch, po, narrator);
  if (f.as_json) {
    nlohmann::ordered_json j{{"rows", rows}, {"loss", metrics.loss()}};
    for (const auto& [name, value] : metrics.values()) j[name] = value;
    if (!metrics.confusion().empty()) j["confusion"] = metrics.confusion();
    std::printf("%s\n", j.dump().c_str());
    return 0;
  }
  std::printf("loss      %.6g\n", metrics.loss());
  for (const auto& [name, value] : metrics.values())
    std::printf("%-9s %s\n", name.c_str(), format_metric(name, value).c_str());
  if (const std::string guess = constant_guess_text(metrics.constant_guess()); !guess.empty())
    say("baseline", guess);
  return 0;
}

}  // namespace

void add_eval(Registry& r) {
  static EvalFlags f;
  CLI::App* c = r.add("eval", "loss and metrics of a run or model",
                      "  onnxtrain eval runs/cnn-001 --data mnist/\n"
                      "  onnxtrain eval model.train.onnx --data test.npz --json");
  c->add_option("RUN|MODEL", f.what, "a run folder, a checkpoint or a model")->required();
  f.data.add_to(r, c, true, false);
  c->add_option("--batch,--batch-size", f.batch, "rows per batch")->check(CLI::PositiveNumber);
  c->add_option("--threads", f.threads, "0: all cores this process may use")
      ->check(CLI::NonNegativeNumber);
  c->add_option("--which", f.which, "best|last (of a run)")->check(CLI::IsMember({"best", "last"}));
  c->add_option("--part", f.part, "test|train: which part of a source that has both")
      ->check(CLI::IsMember({"test", "train"}));
  c->add_flag("--json", f.as_json, "machine-readable, with the confusion matrix");
  f.limits.add_to(r, c);
  r.on(c, [] { return eval(f); });
}

}  // namespace onnxtrain::cli
