// Settings and data of a `fit` that was called, kept in the run folder and recalled.
#include "run/given.hpp"

#include <charconv>
#include <cstdlib>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "core/file.hpp"
#include "core/shell.hpp"

namespace onnxtrain::run {

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

std::string exact_text(double v) {
  char text[40];
  auto [end, bad] = std::to_chars(text, text + sizeof text, v);
  return {text, end};
}

// Keys are those of the command line, which can go on with such a run.
Settings keys() {
  using Kind = Settings::Kind;
  Settings s;
  s.add({"map", Kind::kText, true, "", {}});
  s.add({"scale", Kind::kText, false, "auto", {}});
  s.add({"layout", Kind::kText, false, "nchw", {}});
  s.add({"label-offset", Kind::kNumber, false, "0", {}});
  s.add({"valid", Kind::kText, false, "0", {}});
  s.add({"no-shuffle", Kind::kFlag, false, "", {}});
  s.add({"epochs", Kind::kNumber, false, "10", {}});
  s.add({"batch", Kind::kNumber, false, "32", {}});
  for (const char* name : {"steps", "time", "patience", "save-every", "keep", "seed"})
    s.add({name, Kind::kNumber, false, "0", {}});
  s.add({"metric", Kind::kText, false, "", {}});
  s.add({"allow-non-finite", Kind::kFlag, false, "", {}});
  return s;
}

// Has numpy this element type?
bool in_numpy(DType t) {
  const int n = int(t);
  return n >= int(DType::kFloat) && n <= int(DType::kComplex128) && t != DType::kString;
}

[[noreturn]] void damaged(const std::string& path, const std::string& why, const char* hint) {
  throw Error(ErrorKind::kData, "OT4202", cat("'", path, "' is damaged: ", why), hint);
}

// fit.json of older versions: batch_size, valid, shuffle.
void read_old(const std::string& path, Settings& s) {
  try {
    const json j = json::parse(read_file(path, 1 << 20));
    if (j.contains("batch_size") && !j["batch_size"].is_null())
      s.set("batch", {std::to_string(j["batch_size"].get<int64_t>())}, "run");
    if (j.contains("valid")) s.set("valid", {exact_text(j["valid"].get<double>())}, "run");
    if (j.contains("shuffle"))
      s.set("no-shuffle", {j["shuffle"].get<bool>() ? "false" : "true"}, "run");
  } catch (const json::exception& e) {
    damaged(path, e.what(), "remove it and give x, y, valid and batch_size again");
  }
}

}  // namespace

Settings settings_of(const FitCall& c, const std::set<std::string>& recalled, uint64_t seed) {
  Settings s = keys();
  auto put = [&](const char* name, const std::string& key, Settings::Values values) {
    if (recalled.count(name) != 0)
      s.set(key, std::move(values), "run");
    else if (c.given.count(name) != 0)
      s.set(key, std::move(values), "call");
    else if (values.size() == 1)
      s.replace(key, values[0]);
  };
  Settings::Values map;
  for (const auto& [input, column] : c.feed.map) map.push_back(input + "=" + column);
  if (!map.empty()) put("map", "map", map);
  put("scale", "scale", {c.feed.adapt.scale});
  put("layout", "layout", {layout_word(c.feed.adapt.layout)});
  put("label_offset", "label-offset", {std::to_string(c.feed.adapt.label_offset)});
  put("valid", "valid", {exact_text(c.valid)});
  put("shuffle", "no-shuffle", {c.fit.shuffle ? "false" : "true"});
  put("epochs", "epochs", {std::to_string(c.fit.epochs)});
  if (c.fit.batch > 0) put("batch", "batch", {std::to_string(c.fit.batch)});
  put("steps", "steps", {std::to_string(c.fit.max_steps)});
  put("time", "time", {exact_text(c.fit.max_seconds)});
  put("patience", "patience", {std::to_string(c.fit.patience)});
  if (!c.fit.metric.empty()) put("metric", "metric", {c.fit.metric});
  put("save_every", "save-every", {std::to_string(c.fit.save_every)});
  put("keep", "keep", {std::to_string(c.fit.keep)});
  put("check_finite", "allow-non-finite", {c.fit.check_finite ? "false" : "true"});
  s.replace("seed", std::to_string(seed));
  return s;
}

std::set<std::string> recall(const Folder& folder, FitCall& c, std::string& valid_file,
                             const std::string& in_checkpoint) {
  Settings s = keys();
  if (fs::exists(folder.config()))
    s.from_file(folder.config(), "run", {}, Settings::Unknown::kPassedOver);
  else if (fs::exists(folder.old_settings()))
    read_old(folder.old_settings(), s);
  else if (!in_checkpoint.empty())
    s.from_checkpoint(in_checkpoint, folder.last(), {});
  std::set<std::string> taken;
  auto wanted = [&](const char* name, const char* key) {
    const bool take = c.given.count(name) == 0 && s.given(key);
    if (take) taken.insert(name);
    return take;
  };
  if (wanted("batch", "batch")) c.fit.batch = std::strtoll(s.value("batch").c_str(), nullptr, 10);
  if (wanted("metric", "metric")) c.fit.metric = s.value("metric");
  if (wanted("shuffle", "no-shuffle")) c.fit.shuffle = s.value("no-shuffle") != "true";
  if (wanted("valid", "valid") && !is_fraction(s.value("valid"), c.valid)) {
    valid_file = s.value("valid");
    c.valid = 0;
  }
  return taken;
}

NamedTensors kept_arrays(const Given& given, uint64_t most) {
  if (!given.data) return {};
  NamedTensors all;
  uint64_t bytes = 0;
  auto add = [&](const Dataset* d, const char* part) {
    if (!d) return true;
    for (const std::string& name : d->columns()) {
      if (!in_numpy(d->dtype(name))) return false;
      bytes += uint64_t(d->column(name)->rows()) * d->column(name)->row_bytes();
      if (bytes > most) return false;
      all.emplace_back(part + name, d->gather_all(name));
    }
    return true;
  };
  return add(given.data, "train/") && add(given.valid, "valid/") ? all : NamedTensors();
}

KeptData recall_data(const std::string& folder) {
  if (folder.empty()) usage_error("OT1155", "fit needs data", "t.fit(x, y, epochs=3)");
  const std::string path = Folder(folder).data();
  if (!fs::exists(path))
    usage_error("OT1155", cat("run '", folder, "' does not hold its data"),
                cat("give it again: fit(x, y, epochs=...); a run of the command line resumes with: "
                    "onnxtrain train --resume ",
                    shell_word(folder)));
  NamedTensors arrays;
  try {
    arrays = read_npz(path);
  } catch (const Error& e) {
    damaged(path, e.message(), "give the data again: fit(x, y, epochs=...)");
  }
  NamedTensors train, valid;
  for (auto& [name, t] : arrays) {
    const size_t slash = name.find('/');
    if (slash == std::string::npos) continue;
    (name.starts_with("valid/") ? valid : train).emplace_back(name.substr(slash + 1), t);
  }
  KeptData k;
  k.data = Dataset::from_tensors(train);
  k.has_valid = !valid.empty();
  if (k.has_valid) k.valid = Dataset::from_tensors(valid);
  return k;
}

}  // namespace onnxtrain::run
