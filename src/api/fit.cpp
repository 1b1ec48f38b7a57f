// The C API's training loop: arrays in, epochs out.
#include "run/fit.hpp"

#include <filesystem>

#include <nlohmann/json.hpp>

#include "api/handles.hpp"
#include "data/sampler.hpp"
#include "run/feeds.hpp"
#include "run/run_folder.hpp"

using namespace onnxtrain;
using namespace onnxtrain::api;
using nlohmann::json;

namespace {

ot_text* text(const json& j) { return new ot_text{j.dump()}; }

Dataset dataset_of(size_t n, const char* const* names, ot_value* const* columns) {
  check_lists(n, names, columns);
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

struct Request {
  FitOptions fit;
  FeedOptions feed;
  double fraction = 0;  // of the rows, for validation
};

[[noreturn]] void wrong_option(const std::string& key, const json& value, const char* wanted) {
  usage_error("OT1152", cat(key, " is ", value.dump(), ", it must be ", wanted));
}

int64_t whole(const std::string& key, const json& value, int64_t least) {
  if (!value.is_number_integer() || value.get<int64_t>() < least)
    wrong_option(key, value,
                 least > 0 ? "a whole number, at least 1" : "a whole number, 0 or more");
  return value;
}

// Known keys only: a misspelt option must not be ignored.
Request request_of(const char* options) {
  Request q;
  FitOptions& o = q.fit;
  const json given = json::parse(options ? options : "{}", nullptr, false);  // outlives items()
  if (!given.is_object()) usage_error("OT1152", "the options of fit are no JSON object");
  for (const auto& [key, value] : given.items()) try {
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
      else if (key == "shuffle")
        o.shuffle = value;
      else if (key == "out")
        o.folder = value;
      else if (key == "save_every")
        o.save_every = whole(key, value, 0);
      else if (key == "keep")
        o.keep = whole(key, value, 0);
      else if (key == "check_finite")
        o.check_finite = value;
      else if (key == "valid")
        q.fraction = value;
      else if (key == "map")
        q.feed.map = value.get<std::map<std::string, std::string>>();
      else if (key == "scale")
        q.feed.adapt.scale = value;
      else if (key == "layout")
        q.feed.adapt.nhwc = value == "nhwc";
      else if (key == "label_offset")
        q.feed.adapt.label_offset = value;
      else
        usage_error("OT1152", cat("fit has no option '", key, "'"));
    } catch (const json::exception&) {
      wrong_option(key, value, "of another type");
    }
  if (!(q.fraction >= 0 && q.fraction < 1))
    usage_error("OT1152", cat("valid is ", q.fraction, ", it must be from 0 up to 1"));
  return q;
}

bool same_folder(const std::string& a, const std::string& b) {
  namespace fs = std::filesystem;
  std::error_code ec;
  return !a.empty() && !b.empty() && fs::weakly_canonical(a, ec) == fs::weakly_canonical(b, ec);
}

json fit_on(ot_trainer* t, const Dataset& data, const Dataset* other, Request q,
            ot_epoch_callback on_epoch, void* context) {
  t->at.step = t->t->step_count();  // steps of the caller's own count too
  if (!t->resumed) {  // another fit: its epochs come on top of what was trained before
    q.fit.epochs += t->at.epoch;
    if (q.fit.max_steps > 0) q.fit.max_steps += int64_t(t->at.step);
    t->at.batch = 0;
  }
  q.fit.goes_on = same_folder(q.fit.folder, t->folder);
  t->folder = q.fit.folder;
  LoadedData loaded = feeds_for(data, *t->t, q.feed);
  FeedColumns train = loaded.feeds, valid;
  if (other) {
    valid = feeds_for(*other, *t->t, q.feed).feeds;
  } else if (q.fraction > 0) {
    Split split = split_rows(train.rows(), q.fraction, t->at.seed, loaded.labels);
    valid = train.subset(split.valid);
    train = train.subset(split.train);
  }
  Caller caller;
  caller.callback = on_epoch;
  caller.context = context;
  t->stop = 0;
  caller.stop = &t->stop;
  q.fit.stop = &t->stop;
  q.fit.metadata = loaded.metadata;
  FitResult r = fit(*t->t, train, valid.columns.empty() ? nullptr : &valid, q.fit, t->at, caller);
  t->at = r.at;
  json j{{"interrupted", r.interrupted}, {"best_epoch", r.best_epoch}, {"epochs", json::array()}};
  for (const EpochResult& e : r.epochs) j["epochs"].push_back(epoch_json(e));
  return j;
}

json evaluate_on(ot_trainer* t, const Dataset& d, int64_t batch) {
  LoadedData data = feeds_for(d, *t->t, {});
  Metrics m = Evaluator(*t->t).evaluate(data.feeds, batch > 0 ? batch : 256);
  json j{{"loss", m.loss()}};
  for (const auto& [name, value] : m.values()) j[name] = value;
  if (!m.confusion().empty()) j["confusion"] = m.confusion();
  return j;
}

}  // namespace

ot_status ot_trainer_fit(ot_trainer* t, size_t n_columns, const char* const* names,
                         ot_value* const* columns, size_t n_valid, const char* const* valid_names,
                         ot_value* const* valid_columns, const char* options,
                         ot_epoch_callback on_epoch, void* context, ot_text** result) {
  return guarded({{"t", t}, {"result", result}}, [&] {
    Dataset valid;
    if (n_valid) valid = dataset_of(n_valid, valid_names, valid_columns);
    *result = text(fit_on(t, dataset_of(n_columns, names, columns), n_valid ? &valid : nullptr,
                          request_of(options), on_epoch, context));
  });
}

ot_status ot_trainer_fit_data(ot_trainer* t, const ot_dataset* train, const ot_dataset* valid,
                              const char* options, ot_epoch_callback on_epoch, void* context,
                              ot_text** result) {
  return guarded({{"t", t}, {"train", train}, {"result", result}}, [&] {
    *result = text(
        fit_on(t, train->d, valid ? &valid->d : nullptr, request_of(options), on_epoch, context));
  });
}

void ot_trainer_stop(ot_trainer* t) {
  if (t) t->stop = 1;
}

ot_status ot_trainer_evaluate(ot_trainer* t, size_t n_columns, const char* const* names,
                              ot_value* const* columns, int64_t batch, ot_text** result) {
  return guarded({{"t", t}, {"result", result}}, [&] {
    *result = text(evaluate_on(t, dataset_of(n_columns, names, columns), batch));
  });
}

ot_status ot_trainer_evaluate_data(ot_trainer* t, const ot_dataset* data, int64_t batch,
                                   ot_text** result) {
  return guarded({{"t", t}, {"data", data}, {"result", result}},
                 [&] { *result = text(evaluate_on(t, data->d, batch)); });
}

ot_status ot_trainer_resume(const char* run_or_checkpoint, const ot_options* o, ot_trainer** out) {
  return guarded({{"run_or_checkpoint", run_or_checkpoint}, {"out", out}}, [&] {
    std::string path = run_or_checkpoint;
    auto t = std::make_unique<ot_trainer>();
    if (std::filesystem::is_directory(path)) {
      RunFolder(path).require_last();
      t->folder = path;
      path = RunFolder(path).last();
    }
    Position at;
    auto model = std::make_shared<const Model>(load_checkpoint(path, at));
    auto training = std::make_unique<Training>(model, at.seed, options_of(o));
    training->set_step_count(at.step);
    t->t = std::move(training);
    t->at = at;
    t->resumed = true;
    *out = t.release();
  });
}

ot_status ot_run_folder(const char* path, ot_text** kept) {
  return guarded({{"path", path}, {"kept", kept}},
                 [&] { *kept = new ot_text{RunFolder::open(path).set_aside()}; });
}

ot_status ot_trainer_save(const ot_trainer* t, const char* path) {
  return guarded({{"t", t}, {"path", path}}, [&] {
    Position at = t->at;
    at.step = t->t->step_count();
    at.seed = t->t->seed();
    save_checkpoint(*t->t, at, path);
  });
}
