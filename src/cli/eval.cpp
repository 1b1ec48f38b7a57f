// eval: loss and metrics of a run or model.
#include <algorithm>
#include <cstdio>

#include <nlohmann/json.hpp>

#include "cli/flags/data_flags.hpp"
#include "cli/flags/limit_flags.hpp"
#include "cli/print/progress.hpp"
#include "cli/processes/processes.hpp"
#include "run/borrowed.hpp"
#include "run/predict.hpp"

namespace onnxtrain::cli {

namespace {

struct EvalFlags {
  std::string what, part = "test", which = "best";
  DataFlags data;
  LimitFlags limits;
  ProcessFlags processes;
  int64_t batch = 256;
  int threads = 0;
  const CLI::Option* part_option = nullptr;
  bool as_json = false;
};

// A line per class, when they are not too many.
void print_classes(const run::Metrics& metrics, const std::vector<std::string>& names) {
  constexpr size_t kMost = 20;
  const auto all = metrics.per_class();
  if (all.size() < 2 || all.size() > kMost) return;
  auto name = [&](size_t k) { return k < names.size() ? names[k] : std::to_string(k); };
  size_t width = 9;
  for (size_t k = 0; k < all.size(); ++k) width = std::max(width, name(k).size());
  std::printf("%-*s precision   recall       f1     rows\n", int(width), "class");
  for (size_t k = 0; k < all.size(); ++k)
    std::printf("%-*s  %7.2f %%  %5.2f %%  %5.2f %%  %7lld\n", int(width), name(k).c_str(),
                100 * all[k].precision, 100 * all[k].recall, 100 * all[k].f1,
                static_cast<long long>(all[k].rows));
}

void print_metrics(const run::Metrics& metrics, const std::vector<std::string>& classes) {
  for (const auto& [name, value] : metrics.values())
    std::printf("%-9s %s\n", name.c_str(), format_metric(name, value).c_str());
  for (const auto& [name, value] : metrics.more())
    std::printf("%-9s %s\n", name.c_str(), format_metric(name, value).c_str());
  print_classes(metrics, classes);
}

int eval(EvalFlags& f) {
  ProgramOptions po;
  f.processes.options.program = "onnxtrain eval";
  Communicator* processes = f.processes.connect(f.threads);
  const bool speaks = !processes || processes->rank() == 0;
  run::Borrowed borrowed;  // of a run that rank 0 alone sees
  if (processes) f.what = borrowed.find(*processes, f.what, run::Borrowed::For::kEvaluating);
  po.threads = f.threads;
  po.limits = f.limits.limits();
  Narrator narrator;
  run::DataRequest data = f.data.request();
  data.part_asked = f.part_option->count() > 0;
  const run::Evaluation found =
      run::evaluate(f.what, f.which, data, f.part == "test" ? DataPart::kTest : DataPart::kTrain,
                    f.batch, po, narrator, processes);
  disconnect_processes();
  if (!speaks) return 0;
  if (f.as_json) {
    std::printf("%s\n", run::evaluation_json(found).dump().c_str());
    return 0;
  }
  std::printf("loss      %.6g\n", found.metrics.loss());
  if (found.outputs.empty()) print_metrics(found.metrics, found.classes);
  for (const run::OutputMetrics& o : found.outputs) {
    std::printf("output    %s\n", o.output.c_str());
    print_metrics(o.metrics, o.classes);
  }
  const auto baseline = [](const run::Metrics& m, const std::string& of) {
    if (const std::string guess = constant_guess_text(m.constant_guess()); !guess.empty())
      say("baseline", of + guess);
  };
  if (found.outputs.empty()) baseline(found.metrics, "");
  for (const run::OutputMetrics& o : found.outputs) baseline(o.metrics, o.output + ": ");
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
  f.part_option =
      c->add_option("--part", f.part, "test|train: which part of a source that has both")
          ->check(CLI::IsMember({"test", "train"}));
  c->add_flag("--json", f.as_json, "machine-readable, with the confusion matrix");
  f.processes.add_connection(r, c);
  f.limits.add_to(r, c);
  r.on(c, [] { return eval(f); });
}

}  // namespace onnxtrain::cli
