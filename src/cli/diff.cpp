// diff: two models, checkpoints or runs.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <map>

#include <nlohmann/json.hpp>

#include "cli/common/commands.hpp"
#include "onnx/onnx.hpp"
#include "run/folder/epoch_log.hpp"
#include "run/folder/folder.hpp"

namespace onnxtrain::cli {

namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

// Lines for people, or one list for a machine.
struct Told {
  bool as_json = false;
  ordered_json list = ordered_json::array();

  void line(const std::string& what, const std::string& text) const {
    if (!as_json) std::printf("%-11s %s\n", what.c_str(), text.c_str());
  }
  void entry(ordered_json j) {
    if (as_json) list.push_back(std::move(j));
  }
};

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

int diff_models(const Model& a, const Model& b, Told& told) {
  int differences = 0;
  double worst = 0;
  auto ia = initializers(a), ib = initializers(b);
  auto only = [&](const char* where, const std::string& name) {
    told.line(cat("only in ", where), name);
    told.entry({{"tensor", name}, {"only_in", where}});
    ++differences;
  };
  char text[96];
  for (const auto& [name, t] : ia) {
    auto it = ib.find(name);
    if (it == ib.end()) {
      only("A", name);
    } else if (double d = difference(*t, *it->second); d != 0) {
      worst = std::max(worst, d);
      std::snprintf(text, sizeof text, " max %.3g", d);
      if (differences++ < kShown)
        told.line("differs",
                  name + std::string(name.size() < 32 ? 32 - name.size() : 0, ' ') + text);
      told.entry({{"tensor", name}, {"max_difference", d}});
    }
  }
  std::snprintf(text, sizeof text, "%d more tensors differ, max %.3g of all", differences - kShown,
                worst);
  if (differences > kShown) told.line("...", text);
  for (const auto& [name, t] : ib)
    if (!ia.count(name)) only("B", name);
  if (structure(a) != structure(b)) {
    told.line("differs", "the graphs");
    told.entry({{"graphs", "differ"}});
    ++differences;
  }
  if (!differences) told.line("same", cat(ia.size(), " tensors and the graphs"));
  return differences;
}

template <class Map>
int diff_maps(const Map& a, const Map& b, const std::string& what, Told& told, bool shown = true) {
  int differences = 0;
  auto differ = [&](const std::string& key, const auto* x, const auto* y) {
    ++differences;
    const std::string s = x ? cat(*x) : "-", t = y ? cat(*y) : "-";
    if (shown)
      told.line(what, cat(key, std::string(key.size() < 32 ? 32 - key.size() : 0, ' '), " A ", s,
                          "   B ", t));
    ordered_json j{{"what", what}, {"name", key}, {"a", nullptr}, {"b", nullptr}};
    if (x) j["a"] = *x;
    if (y) j["b"] = *y;
    told.entry(std::move(j));
  };
  for (const auto& [key, value] : a) {
    auto it = b.find(key);
    if (it != b.end() && it->second == value) continue;
    differ(key, &value, it == b.end() ? nullptr : &it->second);
  }
  for (const auto& [key, value] : b)
    if (!a.count(key)) differ(key, static_cast<decltype(&value)>(nullptr), &value);
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
int diff_metrics(const Metrics& a, const Metrics& b, Told& told) {
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
  for (size_t k = 0; k < different.size(); ++k) {
    const int64_t epoch = different[k];
    diff_maps(of(a, epoch), of(b, epoch), cat("epoch ", epoch), told,
              k == 0 || k + 1 == different.size());
    if (k == 0 && different.size() > 2)
      told.line("...", cat(different.size() - 2, " more epochs differ up to epoch ",
                           different.back(), " of ", epochs.size()));
  }
  return int(different.size());
}

int diff(const std::string& a, const std::string& b, bool as_json) {
  int differences = 0;
  Told told{as_json};
  if (fs::is_directory(a) && fs::is_directory(b)) {
    differences += diff_maps(settings_of(a), settings_of(b), "setting", told);
    differences += diff_metrics(metrics_of(a), metrics_of(b), told);
  }
  differences += diff_models(load_model(checkpoint_of(a, "last"), all_ops()),
                             load_model(checkpoint_of(b, "last"), all_ops()), told);
  if (as_json)
    std::printf(
        "%s\n",
        ordered_json{{"same", differences == 0}, {"differences", told.list}}.dump(2).c_str());
  return differences ? 6 : 0;
}

}  // namespace

void add_diff(Registry& r) {
  static std::string a, b;
  static bool as_json = false;
  CLI::App* c = r.add("diff", "compare two models, checkpoints or runs (exit 6 when different)",
                      "  onnxtrain diff runs/cnn-001 runs/cnn-002\n"
                      "  onnxtrain diff a.onnx b.train.onnx");
  c->add_option("A", a, "a model, checkpoint or run")->required();
  c->add_option("B", b, "the other one")->required();
  c->add_flag("--json", as_json, "machine-readable, every difference");
  r.on(c, [] { return diff(a, b, as_json); });
}

}  // namespace onnxtrain::cli
