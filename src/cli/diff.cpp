// diff: two models, checkpoints or runs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include "cli/commands.hpp"
#include "onnx/onnx.hpp"
#include "run/epoch_log.hpp"
#include "run/folder.hpp"

namespace onnxtrain::cli {

namespace {

namespace fs = std::filesystem;

// Largest difference of two tensors; infinite for other types.
double difference(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return INFINITY;
  if (a.dtype() == DType::kString) return 0;
  std::vector<double> x = a.to_doubles(), y = b.to_doubles();
  double worst = 0;
  for (size_t k = 0; k < x.size(); ++k) {
    if (std::isnan(x[k]) && std::isnan(y[k])) continue;
    double d = x[k] == y[k] ? 0 : std::fabs(x[k] - y[k]);
    worst = std::isnan(d) ? INFINITY : std::max(worst, d);
  }
  return worst;
}

std::map<std::string, const Tensor*> initializers(const Model& m) {
  std::map<std::string, const Tensor*> all;
  auto add = [&](const Graph& g) {
    for (const ValueDef& d : g.values)
      if (d.initializer && d.constant.defined()) all.emplace(d.name, &d.constant);
  };
  add(m.main);
  for (const auto& t : m.training) add(t.algorithm);
  return all;
}

std::string structure(const Model& m) {
  std::string s = to_text(m.main);
  for (const auto& t : m.training) s += to_text(t.algorithm);
  return s;
}

constexpr int kShown = 20;  // tensors that differ; the rest is counted

int diff_models(const Model& a, const Model& b) {
  int differences = 0;
  double worst = 0;
  auto ia = initializers(a), ib = initializers(b);
  for (const auto& [name, t] : ia) {
    auto it = ib.find(name);
    if (it == ib.end()) {
      std::printf("only in A   %s\n", name.c_str());
      ++differences;
    } else if (double d = difference(*t, *it->second); d != 0) {
      worst = std::max(worst, d);
      if (differences++ < kShown) std::printf("differs     %-32s max %.3g\n", name.c_str(), d);
    }
  }
  if (differences > kShown)
    std::printf("...         %d more tensors differ, max %.3g of all\n", differences - kShown,
                worst);
  for (const auto& [name, t] : ib)
    if (!ia.count(name)) {
      std::printf("only in B   %s\n", name.c_str());
      ++differences;
    }
  if (structure(a) != structure(b)) {
    std::printf("differs     the graphs\n");
    ++differences;
  }
  if (!differences) std::printf("same        %d tensors and the graphs\n", int(ia.size()));
  return differences;
}

template <class Map>
int diff_maps(const Map& a, const Map& b, const std::string& what) {
  int differences = 0;
  for (const auto& [key, value] : a) {
    auto it = b.find(key);
    if (it != b.end() && it->second == value) continue;
    std::printf("%-11s %-32s A %s   B %s\n", what.c_str(), key.c_str(), cat(value).c_str(),
                it == b.end() ? "-" : cat(it->second).c_str());
    ++differences;
  }
  for (const auto& [key, value] : b)
    if (!a.count(key)) {
      std::printf("%-11s %-32s A -   B %s\n", what.c_str(), key.c_str(), cat(value).c_str());
      ++differences;
    }
  return differences;
}

// What only concerns the look of a run or the machine does not count.
std::map<std::string, std::string> settings_of(const std::string& folder) {
  auto all = run::settings_in(run::Folder(folder).config());
  std::erase_if(all, [](const auto& e) { return run::is_about_look(e.first); });
  return all;
}

// What an epoch learnt, by epoch; not how long it took.
using Metrics = std::map<int64_t, std::map<std::string, double>>;
Metrics metrics_of(const std::string& folder) {
  Metrics all;
  for (const auto& j : run::epoch_lines(folder))
    for (const auto& [key, v] : j.items())
      if (v.is_number() && key.find("seconds") == std::string::npos &&
          key != "samples_per_second" && key != "epoch" && key != "steps")
        all[j.value("epoch", int64_t(0))][key] = v;
  return all;
}

// The first epoch with a difference, the last one, and how many there are between.
int diff_metrics(const Metrics& a, const Metrics& b) {
  std::vector<int64_t> epochs, different;
  for (const auto& [epoch, values] : a) epochs.push_back(epoch);
  for (const auto& [epoch, values] : b)
    if (a.count(epoch) == 0) epochs.push_back(epoch);
  std::sort(epochs.begin(), epochs.end());
  auto of = [](const Metrics& m, int64_t epoch) {
    auto it = m.find(epoch);
    return it == m.end() ? std::map<std::string, double>{} : it->second;
  };
  for (int64_t epoch : epochs)
    if (of(a, epoch) != of(b, epoch)) different.push_back(epoch);
  if (different.empty()) return 0;
  auto show = [&](int64_t epoch) { diff_maps(of(a, epoch), of(b, epoch), cat("epoch ", epoch)); };
  show(different.front());
  if (different.size() > 2)
    std::printf("%-11s %d more epochs differ up to epoch %d of %d\n", "...",
                int(different.size() - 2), int(different.back()), int(epochs.size()));
  if (different.size() > 1) show(different.back());
  return int(different.size());
}

int diff(const std::string& a, const std::string& b) {
  int differences = 0;
  if (fs::is_directory(a) && fs::is_directory(b)) {
    differences += diff_maps(settings_of(a), settings_of(b), "setting");
    differences += diff_metrics(metrics_of(a), metrics_of(b));
  }
  differences += diff_models(load_model(checkpoint_of(a, "last"), all_ops()),
                             load_model(checkpoint_of(b, "last"), all_ops()));
  return differences ? 6 : 0;
}

}  // namespace

void add_diff(Registry& r) {
  static std::string a, b;
  CLI::App* c = r.add("diff", "compare two models, checkpoints or runs (exit 6 when different)",
                      "  onnxtrain diff runs/cnn-001 runs/cnn-002\n"
                      "  onnxtrain diff a.onnx b.train.onnx");
  c->add_option("A", a, "a model, checkpoint or run")->required();
  c->add_option("B", b, "the other one")->required();
  r.on(c, [] { return diff(a, b); });
}

}  // namespace onnxtrain::cli
