// bench: how fast a model runs and trains here, and where the time goes.

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "cli/common/commands.hpp"
#include "cli/flags/recipe_flags.hpp"
#include "cli/measure/bench_against.hpp"
#include "cli/measure/bench_feeds.hpp"
#include "cli/print/profile_table.hpp"
#include "core/file.hpp"
#include "core/memory.hpp"
#include "core/thread_count.hpp"
#include "data/arrays/npz_file.hpp"
#include "engine/training.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain::cli {

namespace {

using nlohmann::json;
using Clock = std::chrono::steady_clock;

struct BenchFlags {
  std::string model, inputs, trace, against, mode = "both";
  FeedSizes sizes;
  RecipeFlags recipe;
  int threads = 0;
  double seconds = 1;
  size_t slowest = 15;
  bool as_json = false;
};

double since(Clock::time_point t) {
  return std::chrono::duration<double>(Clock::now() - t).count();
}

int64_t rows_of(const Feeds& feeds) {
  int64_t n = 1;
  for (const auto& [name, v] : feeds)
    if (const Tensor* t = std::get_if<Tensor>(&v); t && t->rank() > 0)
      n = std::max(n, t->shape()[0]);
  return n;
}

// Feeds from the npz, or random.
Feeds feeds_for(const BenchFlags& f, const Model& m, const std::vector<ValueDef>& inputs) {
  if (f.inputs.empty()) return bench_feeds(m, inputs, f.sizes);
  NamedTensors file = read_npz(f.inputs);
  Feeds feeds;
  for (const ValueDef& d : inputs)
    for (const auto& [name, t] : file)
      if (name == d.name) feeds[name] = t;
  return feeds;
}

// Medians of batches of steps, then as many steps again under the profiler.
template <class Step, class Watch>
json measure(const BenchFlags& f, const char* what, int64_t rows, const Plan& plan,
             size_t state_bytes, Step step, Watch watch) {
  Clock::time_point t = Clock::now();
  step();
  double first = since(t), once = 1e-9;
  for (t = Clock::now(); since(t) < 0.2 * f.seconds;) {
    Clock::time_point one = Clock::now();
    step();
    once = since(one);
  }
  const int64_t per_batch = std::max<int64_t>(1, int64_t(f.seconds / 11 / std::max(once, 1e-9)));
  std::vector<double> times;
  for (int k = 0; k < 11 && (k < 3 || since(t) < 10 * f.seconds); ++k) {
    Clock::time_point b = Clock::now();
    for (int64_t i = 0; i < per_batch; ++i) step();
    times.push_back(since(b) / double(per_batch));
  }
  std::sort(times.begin(), times.end());
  const double ms = times[times.size() / 2] * 1e3;
  const int64_t profiled = std::clamp<int64_t>(int64_t(f.seconds / (ms / 1e3)), 2, 1000);
  Profiler profiler(f.trace.empty() ? 0 : 200000);
  watch(&profiler);
  step();
  profiler.clear();
  for (int64_t i = 0; i < profiled; ++i) step();
  watch(nullptr);
  const double rss = double(peak_resident_bytes());
  Peak peak = Peak::measure(f.threads);
  json j = profile_json(profiler, peak, profiled);
  j["ms_per_step"] = ms;
  j["ms_least"] = times.front() * 1e3;
  j["ms_most"] = times.back() * 1e3;
  j["samples_per_second"] = double(rows) / ms * 1e3;
  j["first_step_ms"] = first * 1e3;
  j["arena_bytes"] = plan.arena_bytes;
  j["state_bytes"] = state_bytes;
  j["peak_rss_bytes"] = rss;
  if (!f.trace.empty()) write_file(cat(f.trace, ".", what, ".json"), profiler.chrome_trace());
  if (f.as_json) return j;
  std::printf(
      "%-9s %.4f ms per step (%.4f..%.4f), %.0f samples/s, batch %lld; first step %.1f ms\n", what,
      ms, times.front() * 1e3, times.back() * 1e3, double(rows) / ms * 1e3,
      static_cast<long long>(rows), first * 1e3);
  std::printf(
      "memory    %.1f MB planned (%.1f MB alive at once), %.1f MB state, %.1f MB peak of the "
      "process\n",
      double(plan.arena_bytes) / 1e6, double(plan.peak_bytes) / 1e6, double(state_bytes) / 1e6,
      rss / 1e6);
  print_profile(profiler, peak, profiled, f.slowest);
  std::printf("\n");
  return j;
}

json bench_inference(const BenchFlags& f, const std::shared_ptr<const Model>& m,
                     std::vector<BenchPart>& parts) {
  std::vector<ValueDef> inputs;
  for (ValueId v : m->main.inputs) inputs.push_back(m->main.value(v));
  Feeds feeds = feeds_for(f, *m, inputs);
  parts.push_back({"inference", m, feeds});
  ProgramOptions o;
  o.threads = f.threads;
  Session s(m, o);
  const Plan& plan = s.plan_for(feeds);
  return measure(
      f, "inference", rows_of(feeds), plan, 0, [&] { s.run(feeds); },
      [&](StepObserver* w) { s.set_observer(w); });
}

json bench_training(const BenchFlags& f, const std::shared_ptr<const Model>& m,
                    std::vector<BenchPart>& parts) {
  ProgramOptions o;
  o.threads = f.threads;
  Training t(m, 0, o);
  std::vector<ValueDef> inputs;
  for (const std::string& name : t.input_names(0)) inputs.push_back(t.input(0, name));
  Feeds feeds = feeds_for(f, *m, inputs);
  parts.push_back({"training", m, feeds});
  const Plan& plan = t.plan_for(feeds, 0);
  return measure(
      f, "training", rows_of(feeds), plan, t.state().bytes(), [&] { t.step(feeds, 0, false); },
      [&](StepObserver* w) { t.set_observer(w); });
}

int bench(const BenchFlags& f) {
  const std::vector<std::string> peers = peer_names(f.against);
  std::vector<BenchPart> parts;
  auto m = std::make_shared<Model>(load_model(f.model, all_ops()));
  json out = {{"model", f.model}, {"threads", thread_count(f.threads)}, {"batch", f.sizes.batch}};
  const bool has_training = !m->training.empty();
  if (f.mode != "train" && !has_training) out["inference"] = bench_inference(f, m, parts);
  if (f.mode == "infer" && has_training) out["inference"] = bench_inference(f, m, parts);
  if (f.mode != "infer") {
    std::shared_ptr<const Model> t = m;
    std::string why;
    if (!has_training) {
      try {
        t = std::make_shared<const Model>(prepare(*m, f.recipe.recipe(0, 0), all_ops()));
      } catch (const Error& e) {
        if (f.mode == "train") throw;
        why = e.what();
        t = nullptr;
      }
    }
    if (t)
      out["training"] = bench_training(f, t, parts);
    else
      say("training", "left out: " + why);
  }
  if (!peers.empty()) {
    say("against", cat(f.against, ", interleaved rounds of ", f.seconds, " s"));
    out["against"] = bench_against(peers, parts, out["threads"], f.seconds);
    if (!f.as_json) print_against(out["against"]);
  }
  if (f.as_json) std::printf("%s\n", out.dump(2).c_str());
  return 0;
}

}  // namespace

void add_bench(Registry& r) {
  static BenchFlags f;
  CLI::App* c =
      r.add("bench", "measure samples/s, ms per step, time per operator, peak memory",
            "  onnxtrain bench model.onnx --batch 64\n"
            "  onnxtrain bench model.onnx --against torch,ort\n"
            "  onnxtrain bench bert.onnx --dim input_ids=8,128 --mode train --optimizer adamw\n"
            "  onnxtrain bench model.train.onnx --inputs batch.npz --json > bench.json");
  c->add_option("MODEL", f.model, "an ONNX file, with or without training inside")->required();
  c->add_option("--batch,--batch-size", f.sizes.batch, "for an open first dimension")
      ->check(CLI::PositiveNumber);
  c->add_option("--dim", f.sizes.dims, "NAME=8: a named dimension; INPUT=8,128: a shape");
  c->add_option("--inputs", f.inputs, "npz with real inputs instead of random ones");
  c->add_option("--mode", f.mode, "infer|train|both")
      ->check(CLI::IsMember({"infer", "train", "both"}));
  c->add_option("--threads", f.threads, "0: all cores this process may use")
      ->check(CLI::NonNegativeNumber);
  c->add_option("--seconds", f.seconds, "how long to measure")->check(CLI::PositiveNumber);
  c->add_option("--nodes", f.slowest, "how many of the slowest nodes to list");
  c->add_option("--trace", f.trace,
                "write Chrome traces to FILE.inference.json, FILE.training.json");
  c->add_option("--against", f.against,
                "torch,ort: the same model and inputs there too, where they are installed");
  c->add_flag("--json", f.as_json, "print JSON");
  f.recipe.add_to(r, c, false);
  r.on(c, [] { return bench(f); });
}

}  // namespace onnxtrain::cli
