// The C API's training loop: arrays in, epochs out.
#include "train/fit.hpp"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "api/handles.hpp"
#include "data/sampler.hpp"
#include "train/feeds.hpp"
#include "train/run_folder.hpp"

using namespace onnxtrain;
using namespace onnxtrain::api;
using nlohmann::json;

namespace {

ot_text* text(const json& j) { return new ot_text{j.dump()}; }

Dataset dataset_of(size_t n, const char* const* names, ot_value* const* columns) {
  std::vector<std::pair<std::string, Tensor>> arrays;
  for (size_t k = 0; k < n; ++k) {
    const Tensor* t = std::get_if<Tensor>(&columns[k]->v);
    if (!t) data_error("OT2105", cat("'", names[k], "' is not an array"));
    arrays.emplace_back(names[k], *t);
  }
  return Dataset::from_tensors(arrays);
}

json epoch_json(const EpochResult& e) {
  json j{{"epoch", e.epoch},
         {"steps", e.steps},
         {"loss", e.train_loss},
         {"lr", e.rate},
         {"samples_per_second", e.samples_per_second},
         {"seconds", e.seconds},
         {"best", e.best}};
  if (e.has_valid) j["valid_loss"] = e.valid_loss;
  for (const auto& [name, value] : e.metrics) j["valid_" + name] = value;
  return j;
}

struct Caller : FitObserver {
  void on_epoch(const EpochResult& e) override {
    if (callback && callback(context, epoch_json(e).dump().c_str()) != 0) *stop = 1;
  }
  ot_epoch_callback callback = nullptr;
  void* context = nullptr;
  std::atomic<int>* stop = nullptr;
};

// Known keys only: a misspelt option must not be ignored.
FitOptions fit_options(const json& j, double& fraction) {
  FitOptions o;
  for (const auto& [key, value] : j.items()) {
    if (key == "epochs")
      o.epochs = value;
    else if (key == "batch")
      o.batch = value;
    else if (key == "steps")
      o.max_steps = value;
    else if (key == "time")
      o.max_seconds = value;
    else if (key == "patience")
      o.patience = value;
    else if (key == "shuffle")
      o.shuffle = value;
    else if (key == "out")
      o.folder = value;
    else if (key == "save_every")
      o.save_every = value;
    else if (key == "valid")
      fraction = value;
    else
      usage_error("OT1152", cat("fit has no option '", key, "'"));
  }
  if (o.epochs < 1 || o.batch < 1) usage_error("OT1152", "epochs and batch must be at least 1");
  return o;
}

}  // namespace

ot_status ot_trainer_fit(ot_trainer* t, size_t n_columns, const char* const* names,
                         ot_value* const* columns, size_t n_valid, const char* const* valid_names,
                         ot_value* const* valid_columns, const char* options,
                         ot_epoch_callback on_epoch, void* context, ot_text** result) {
  return guarded([&] {
    double fraction = 0;
    FitOptions o = fit_options(json::parse(options ? options : "{}"), fraction);
    LoadedData data = feeds_for(dataset_of(n_columns, names, columns), *t->t, {});
    FeedColumns train = data.feeds, valid;
    if (n_valid) {
      valid = feeds_for(dataset_of(n_valid, valid_names, valid_columns), *t->t, {}).feeds;
    } else if (fraction > 0) {
      Split split = split_rows(train.rows(), fraction, t->at.seed, data.labels);
      valid = train.subset(split.valid);
      train = train.subset(split.train);
    }
    if (!o.folder.empty()) RunFolder::open(o.folder);
    Caller caller;
    caller.callback = on_epoch;
    caller.context = context;
    t->stop = 0;
    caller.stop = &t->stop;
    o.stop = &t->stop;
    FitResult r = fit(*t->t, train, valid.columns.empty() ? nullptr : &valid, o, t->at, caller);
    t->at = r.at;
    json j{{"interrupted", r.interrupted}, {"best_epoch", r.best_epoch}, {"epochs", json::array()}};
    for (const EpochResult& e : r.epochs) j["epochs"].push_back(epoch_json(e));
    *result = text(j);
  });
}

void ot_trainer_stop(ot_trainer* t) { t->stop = 1; }

ot_status ot_trainer_evaluate(ot_trainer* t, size_t n_columns, const char* const* names,
                              ot_value* const* columns, int64_t batch, ot_text** result) {
  return guarded([&] {
    LoadedData data = feeds_for(dataset_of(n_columns, names, columns), *t->t, {});
    Metrics m = Evaluator(*t->t).evaluate(data.feeds, batch > 0 ? batch : 256);
    json j{{"loss", m.loss()}};
    for (const auto& [name, value] : m.values()) j[name] = value;
    if (!m.confusion().empty()) j["confusion"] = m.confusion();
    *result = text(j);
  });
}

ot_status ot_trainer_resume(const char* run_or_checkpoint, const ot_options* o, ot_trainer** out) {
  return guarded([&] {
    std::string path = run_or_checkpoint;
    if (std::filesystem::is_directory(path)) path = RunFolder(path).last();
    Position at;
    auto model = std::make_shared<const Model>(load_checkpoint(path, at));
    auto training = std::make_unique<Training>(model, at.seed, options_of(o));
    training->set_step_count(at.step);
    *out = new ot_trainer{std::move(training), {}, at};
  });
}

ot_status ot_trainer_save(const ot_trainer* t, const char* path) {
  return guarded([&] {
    Position at = t->at;
    at.step = t->t->step_count();
    at.seed = t->t->seed();
    save_checkpoint(*t->t, at, path);
  });
}
