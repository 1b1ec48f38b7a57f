// The C API of runs: arrays or batches in, epochs out.
#include <chrono>

#include <nlohmann/json.hpp>

#include "api/handles.hpp"

using namespace onnxtrain;
using namespace onnxtrain::api;
using nlohmann::json;

namespace {

ot_text* text(const json& j) { return new ot_text{j.dump()}; }

json epoch_json(const run::EpochResult& e) {
  json j{{"epoch", e.epoch},     {"step", e.step}, {"steps", e.steps},
         {"loss", e.train_loss}, {"lr", e.lr},     {"samples_per_second", e.samples_per_second},
         {"seconds", e.seconds}, {"best", e.best}};
  if (e.has_valid) j["valid_loss"] = e.valid_loss;
  for (const auto& [name, value] : e.metrics) j["valid_" + name] = value;
  return j;
}

struct Caller : run::Observer {
  using Clock = std::chrono::steady_clock;
  // {"progress": {...}} at most every `progress` seconds
  void on_step(int64_t epoch, int64_t batch, int64_t batches, double loss,
               double samples_per_second) override {
    const Clock::time_point now = Clock::now();
    if (!callback || progress <= 0 || std::chrono::duration<double>(now - told).count() < progress)
      return;
    told = now;
    const json j{{"epoch", epoch},
                 {"batch", batch},
                 {"batches", batches},
                 {"loss", loss},
                 {"samples_per_second", samples_per_second}};
    if (callback(context, json{{"progress", j}}.dump().c_str()) != 0) *stop = 1;
  }
  // {"plan": {"epochs": 20}} for who hears about progress
  void on_plan(int64_t epochs) override {
    if (callback && progress > 0)
      callback(context, json{{"plan", {{"epochs", epochs}}}}.dump().c_str());
  }
  void on_epoch(const run::EpochResult& e) override {
    if (callback && callback(context, epoch_json(e).dump().c_str()) != 0) *stop = 1;
  }
  void on_warning(const std::string& code, const std::string& what,
                  const std::string& hint) override {
    warnings.push_back({{"code", code}, {"text", what}, {"hint", hint}});
  }
  void on_note(const std::string& label, const std::string& what) override {
    if (label == "note") warnings.push_back({{"code", ""}, {"text", what}, {"hint", ""}});
  }
  json warnings = json::array();
  ot_epoch_callback callback = nullptr;
  void* context = nullptr;
  std::atomic<int>* stop = nullptr;
  double progress = 0;
  Clock::time_point told{};
};

[[noreturn]] void wrong_option(const std::string& key, const json& value, const char* wanted) {
  usage_error("OT1152", cat(key, " is ", value.dump(), ", it must be ", wanted),
              cat("give ", wanted));
}

int64_t whole(const std::string& key, const json& value, int64_t least) {
  if (!value.is_number_integer() || value.get<int64_t>() < least)
    wrong_option(key, value,
                 least > 0 ? "a whole number, at least 1" : "a whole number, 0 or more");
  return value;
}

// "progress" of the options: seconds between two words about a running epoch; 0: none.
double progress_of(const char* options) {
  const json given = json::parse(options ? options : "{}", nullptr, false);
  if (!given.is_object() || !given.contains("progress")) return 0;
  const json& value = given["progress"];
  if (!value.is_number() || !(value.get<double>() >= 0))
    wrong_option("progress", value, "a number of seconds, 0 or more");
  return value;
}

// Known keys only: a misspelt option must not be ignored.
run::FitCall call_of(const char* options) {
  run::FitCall q;
  run::FitOptions& o = q.fit;
  const json given = json::parse(options ? options : "{}", nullptr, false);  // outlives items()
  if (!given.is_object()) usage_error("OT1152", "the options of fit are no JSON object");
  for (const auto& [key, value] : given.items()) try {
      if (key == "progress") continue;  // progress_of
      if (key == "epochs")
        o.epochs = whole(key, value, 1);
      else if (key == "batch")
        o.batch = whole(key, value, 1);
      else if (key == "steps")
        o.max_steps = whole(key, value, 0);
      else if (key == "time")
        o.max_seconds = value;
      else if (key == "patience")
        o.patience = whole(key, value, 0);
      else if (key == "metric")
        o.metric = value;
      else if (key == "shuffle")
        o.shuffle = value;
      else if (key == "out")
        q.out = value;
      else if (key == "save_every")
        o.save_every = whole(key, value, 0);
      else if (key == "keep")
        o.keep = whole(key, value, 0);
      else if (key == "keep_data")
        q.keep_bytes = uint64_t(whole(key, value, 0));
      else if (key == "check_finite")
        o.check_finite = value;
      else if (key == "valid")
        q.valid = value;
      else if (key == "map")
        q.feed.map = value.get<std::map<std::string, std::string>>();
      else if (key == "scale")
        q.feed.adapt.scale = value;
      else if (key == "layout")
        q.feed.adapt.layout = layout_of_word(value);
      else if (key == "label_offset")
        q.feed.adapt.label_offset = value;
      else if (key == "features")
        q.features = value.get<std::vector<std::string>>();
      else if (key == "targets")
        q.targets = value.get<std::vector<std::string>>();
      else
        usage_error("OT1152", cat("fit has no option '", key, "'"),
                    "the options are in docs/fit.md");
      q.given.insert(key);
    } catch (const json::exception&) {
      wrong_option(key, value,
                   value.is_string() ? "a number, or true or false" : "of another type");
    }
  if (!(q.valid >= 0 && q.valid < 1))
    usage_error("OT1152", cat("valid is ", q.valid, ", it must be from 0 up to 1"),
                "valid=0.1, or data of its own: valid=(x, y)");
  return q;
}

json fit_on(ot_trainer* t, const run::Given& given, const char* options, ot_epoch_callback on_epoch,
            void* context) {
  Caller caller;
  caller.callback = on_epoch;
  caller.context = context;
  caller.progress = progress_of(options);
  t->stop = 0;
  caller.stop = &t->stop;
  const run::FitResult r = t->run.fit(given, call_of(options), t->stop, caller);
  json j{{"interrupted", r.interrupted}, {"best_epoch", r.best_epoch}, {"epochs", json::array()}};
  for (const run::EpochResult& e : r.epochs) j["epochs"].push_back(epoch_json(e));
  if (!r.constant_guess.empty()) {
    j["constant_guess"] = json::object();
    for (const auto& [name, value] : r.constant_guess) j["constant_guess"][name] = value;
  }
  if (const run::Guess g = run::only_guessed(r, false); !g.text.empty())
    caller.on_warning("OT3118", g.text, g.hint);
  j["warnings"] = caller.warnings;
  return j;
}

ot_text* evaluated(const run::Evaluation& e) {
  nlohmann::ordered_json j = run::evaluation_json(e);
  if (!e.unlike.empty()) j["warnings"] = {cat(e.unlike, " [OT3129]")};
  return new ot_text{j.dump()};
}

void needs_rows(const ot_dataset* d, const char* what) {
  if (d && d->stream)
    usage_error("OT1157", cat(what, " needs rows, not a stream of batches"),
                "give arrays:  fit(x, y)");
}

}  // namespace

ot_status ot_trainer_fit(ot_trainer* t, size_t n_columns, const char* const* names,
                         ot_value* const* columns, size_t n_valid, const char* const* valid_names,
                         ot_value* const* valid_columns, const char* options,
                         ot_epoch_callback on_epoch, void* context, ot_text** result) {
  return guarded({{"t", t}, {"result", result}}, [&] {
    Dataset train, valid;
    run::Given given;
    if (n_columns) {
      train = dataset_of(n_columns, names, columns);
      given.data = &train;
    }
    if (n_valid) {
      valid = dataset_of(n_valid, valid_names, valid_columns);
      given.valid = &valid;
    }
    *result = text(fit_on(t, given, options, on_epoch, context));
  });
}

ot_status ot_trainer_fit_data(ot_trainer* t, const ot_dataset* train, const ot_dataset* valid,
                              const char* options, ot_epoch_callback on_epoch, void* context,
                              ot_text** result) {
  return guarded({{"t", t}, {"train", train}, {"result", result}}, [&] {
    needs_rows(valid, "validation");
    run::Given given;
    given.stream = train->stream.get();
    if (!given.stream) given.data = &train->d;
    if (valid) given.valid = &valid->d;
    *result = text(fit_on(t, given, options, on_epoch, context));
  });
}

void ot_trainer_stop(ot_trainer* t) {
  if (t) t->stop = 1;
}

ot_status ot_trainer_evaluate(ot_trainer* t, size_t n_columns, const char* const* names,
                              ot_value* const* columns, int64_t batch, ot_text** result) {
  return guarded({{"t", t}, {"result", result}}, [&] {
    *result = evaluated(t->run.evaluate(dataset_of(n_columns, names, columns), batch));
  });
}

ot_status ot_trainer_evaluate_data(ot_trainer* t, const ot_dataset* data, int64_t batch,
                                   ot_text** result) {
  return guarded({{"t", t}, {"data", data}, {"result", result}}, [&] {
    needs_rows(data, "evaluation");
    *result = evaluated(t->run.evaluate(data->d, batch));
  });
}

ot_status ot_trainer_resume(const char* run_or_checkpoint, const ot_options* o, ot_trainer** out) {
  return guarded({{"run_or_checkpoint", run_or_checkpoint}, {"out", out}},
                 [&] { *out = new ot_trainer(run::Run(run_or_checkpoint, options_of(o))); });
}

ot_status ot_run_folder(const char* path, ot_text** kept) {
  return guarded({{"path", path}, {"kept", kept}},
                 [&] { *kept = new ot_text{run::Folder::open(path).set_aside()}; });
}

ot_status ot_trainer_save(const ot_trainer* t, const char* path) {
  return guarded({{"t", t}, {"path", path}}, [&] { const_cast<ot_trainer*>(t)->run.save(path); });
}
