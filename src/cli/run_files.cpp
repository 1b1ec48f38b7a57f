// Files that say how a run was started.
#include "cli/run_files.hpp"

#include <sys/utsname.h>

#include <cmath>
#include <ctime>
#include <filesystem>
#include <numeric>

#include <nlohmann/json.hpp>

#include "cli/narration.hpp"
#include "core/file.hpp"
#include "core/memory.hpp"
#include "core/text.hpp"
#include "core/version.hpp"
#include "data/prefetch.hpp"
#include "engine/session.hpp"
#include "model/batch.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain::cli {

namespace {

namespace fs = std::filesystem;

std::string& command_line() {
  static std::string line;
  return line;
}

std::string shell_word(const std::string& s) {
  constexpr const char* kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=,:+@%";
  if (!s.empty() && s.find_first_not_of(kPlain) == std::string::npos) return s;
  std::string out = "'";
  for (char c : s) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

std::string now() {
  char text[40];
  std::time_t t = std::time(nullptr);
  std::tm parts;
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&t, &parts));
  return text;
}

std::string environment(Training& t) {
  utsname u{};
  uname(&u);
  nlohmann::ordered_json j{{"onnxtrain", version()},
                           {"system", cat(u.sysname, " ", u.release, " ", u.machine)},
                           {"simd", simd_name()},
                           {"threads", t.pool().threads()},
                           {"memory_limit_bytes", memory_limit()},
                           {"started", now()}};
  return j.dump(2) + "\n";
}

}  // namespace

void set_command_line(int argc, char** argv) {
  std::string& line = command_line();
  line = "onnxtrain";
  for (int k = 1; k < argc; ++k) line += " " + shell_word(argv[k]);
}

void write_run_files(const RunFolder& folder, Settings& settings, const TrainFlags& f, Training& t,
                     const LoadedData& data, int64_t train_rows, int64_t valid_rows) {
  // a path that still means the same when the run is resumed from elsewhere
  for (const auto& [name, value] : {std::pair{"data", f.data.data}, std::pair{"valid", f.valid}})
    if (fs::exists(value) && fs::path(value).is_relative())
      settings.replace(name, fs::absolute(value).lexically_normal().string());
  folder.write_text("config.toml", settings.text());
  append_line(folder.path() + "/command.txt", command_line());
  folder.write_text("env.json", environment(t));
  nlohmann::ordered_json card{{"data", data.line},
                              {"notes", data.notes},
                              {"train_rows", train_rows},
                              {"valid_rows", valid_rows}};
  for (const auto& [key, value] : data.metadata) card[key] = value;
  folder.write_text("data.json", card.dump(2) + "\n");
}

void report_memory(const RunFolder& folder, const Training& t, size_t limit) {
  const PlannedMemory m = t.memory();
  const size_t peak = peak_resident_bytes();
  auto mb = [](size_t bytes) { return megabytes(bytes, 0); };
  std::string line =
      cat(mb(m.state + m.arena), " planned (state ", mb(m.state), ", step ", mb(m.arena), ")");
  if (limit > 0)
    line += m.recomputed > 0 ? cat(", limit ", mb(limit), ": ", m.recomputed,
                                   " nodes computed twice, else ", mb(m.state + m.whole))
                             : cat(", limit ", mb(limit), ": nothing had to be computed twice");
  say("memory", cat(line, ", peak of the process ", mb(peak)));
  const std::string path = folder.path() + "/env.json";
  nlohmann::ordered_json j =
      nlohmann::ordered_json::parse(read_file(path, 1 << 20), nullptr, /*allow_exceptions=*/false);
  if (!j.is_object()) return;
  j["memory"] = {{"state_bytes", m.state},
                 {"step_bytes", m.arena},
                 {"step_bytes_without_limit", m.whole},
                 {"nodes_computed_twice", m.recomputed},
                 {"limit_bytes", limit},
                 {"peak_process_bytes", peak}};
  folder.write_text("env.json", j.dump(2) + "\n");
}

std::optional<double> export_difference(const RunFolder& folder, const FeedColumns& sample) {
  Position ignored;
  if (!std::filesystem::exists(folder.best())) return {};
  auto exported = std::make_shared<const Model>(load_model(folder.model(), all_ops()));
  const int64_t fixed = fixed_batch(exported->main);
  std::vector<int64_t> rows(size_t(std::min<int64_t>(fixed > 0 ? fixed : 32, sample.rows())));
  std::iota(rows.begin(), rows.end(), int64_t(0));
  Prefetcher prefetch(sample.columns, int64_t(rows.size()), 0);
  prefetch.start(rows);
  const Batch* b = prefetch.next();
  Feeds feeds;
  for (const std::string& name : exported->input_names())
    for (size_t k = 0; k < sample.names.size(); ++k)
      if (sample.names[k] == name) feeds[name] = b->tensors[k];
  if (feeds.size() != exported->input_names().size()) return {};  // an input the step does not feed
  auto got = Session(exported).run(feeds);
  exported = nullptr;  // one of the two in memory at a time
  auto trained = std::make_shared<const Model>(load_checkpoint(folder.best(), ignored));
  auto want = Session(std::move(trained)).run(feeds);
  double worst = 0;
  for (size_t k = 0; k < got.size(); ++k) {
    const Tensor* x = std::get_if<Tensor>(&want[k].second);
    const Tensor* y = std::get_if<Tensor>(&got[k].second);
    if (!x || !y || x->dtype() == DType::kString) continue;
    std::vector<double> a = x->to_doubles(), c = y->to_doubles();
    for (size_t i = 0; i < std::min(a.size(), c.size()); ++i)
      worst = std::max(worst, std::fabs(a[i] - c[i]));
  }
  return worst;
}

}  // namespace onnxtrain::cli
