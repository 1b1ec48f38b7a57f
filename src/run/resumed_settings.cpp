// Settings of the run that is resumed: config.toml, or what its checkpoint holds of it.
#include "run/resumed_settings.hpp"

#include <filesystem>
#include <set>

#include "core/error.hpp"

namespace onnxtrain::run {

namespace {

namespace fs = std::filesystem;

void take_model(const std::map<std::string, std::string>& all, Settings& settings) {
  if (all.count("model") != 0) settings.replace("model", unquoted(all.at("model")));
}

// config: the file that lacks settings; empty: it is gone.
std::shared_ptr<Start> settings_of_checkpoint(const std::string& resume, const std::string& config,
                                              const std::set<std::string>& leave,
                                              Settings& settings, Observer& observer) {
  const std::string file = checkpoint_of(resume, "last", observer);
  auto start = std::make_shared<Start>(start_from_run(resume));
  const auto text = start->model->metadata.find("onnxtrain.settings");
  const bool of_run = fs::is_directory(resume) || !config.empty();
  if (text != start->model->metadata.end()) {
    if (of_run)
      observer.on_warning(
          "OT3117",
          cat("'", config.empty() ? Folder(resume).config() : config,
              config.empty() ? "' is gone" : "' is incomplete",
              ": the settings are those that the checkpoint '", file, "' holds"),
          "a new config.toml is written; flags change settings:  --batch N --epochs N");
    take_model(settings_in_text(text->second, file), settings);
    settings.from_checkpoint(text->second, file, leave);
  } else if (of_run) {
    observer.on_warning(
        "OT3117",
        cat("config.toml of '", resume,
            "' is gone and its checkpoint is of an older version: batch size, split and other "
            "settings are the defaults where no flag says otherwise"),
        "say what the run had:  --batch N --valid FRACTION --epochs N");
  }
  return start;
}

}  // namespace

std::shared_ptr<Start> settings_of_run(const std::string& resume, Settings& settings,
                                       Observer& observer) {
  std::set<std::string> leave = {"model",   "out",      "resume",  "find-lr", "dry-run", "quiet",
                                 "profile", "progress", "verbose", "threads", "json"};
  const std::string run = run_of(resume);
  if (run.empty()) return settings_of_checkpoint(resume, {}, leave, settings, observer);
  const std::string config = Folder(run).config();
  const auto all = settings_in(config);
  if (all.count("batch") == 0)
    return settings_of_checkpoint(resume, config, leave, settings, observer);
  if (const auto it = all.find("overfit"); it != all.end() && it->second == "0")
    leave.insert("overfit");  // nothing to take over
  settings.from_file(config, "run", leave);
  take_model(all, settings);
  return nullptr;
}

}  // namespace onnxtrain::run
