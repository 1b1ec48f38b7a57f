// C++20 over the C API: header only, exceptions instead of status codes, values that own.
#pragma once
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onnxtrain/error.hpp"
#include "onnxtrain/onnxtrain.h"
#include "onnxtrain/optimizers.hpp"

namespace ot {

namespace detail {
template <class T, void (*Free)(T*)>
struct Deleter {
  void operator()(T* p) const { Free(p); }
};
template <class T, void (*Free)(T*)>
using Handle = std::unique_ptr<T, Deleter<T, Free>>;
inline std::string take(ot_text* t) {
  Handle<ot_text, ot_text_free> h(t);
  return {ot_text_data(t), ot_text_size(t)};
}
inline std::string quoted(const std::string& s) {
  std::string out = "\"";
  for (char c : s) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}
// The numbers of a flat JSON object, by name.
inline std::map<std::string, double> numbers(const std::string& json) {
  std::map<std::string, double> out;
  for (size_t at = json.find('"'); at != std::string::npos; at = json.find('"', at)) {
    size_t end = json.find('"', at + 1), colon = end + 1;
    if (end == std::string::npos || colon >= json.size() || json[colon] != ':') break;
    char* stop = nullptr;
    double v = std::strtod(json.c_str() + colon + 1, &stop);
    if (stop != json.c_str() + colon + 1) out[json.substr(at + 1, end - at - 1)] = v;
    at = json.find_first_of(",}", colon);
    if (at == std::string::npos) break;
  }
  return out;
}
}  // namespace detail

template <class T>
struct dtype_of;
template <>
struct dtype_of<float> {
  static constexpr int value = 1;
};
template <>
struct dtype_of<uint8_t> {
  static constexpr int value = 2;
};
template <>
struct dtype_of<int8_t> {
  static constexpr int value = 3;
};
template <>
struct dtype_of<int32_t> {
  static constexpr int value = 6;
};
template <>
struct dtype_of<int64_t> {
  static constexpr int value = 7;
};
template <>
struct dtype_of<bool> {
  static constexpr int value = 9;
};
template <>
struct dtype_of<double> {
  static constexpr int value = 11;
};

// A tensor, sequence, map or nothing.
class Value {
 public:
  Value() = default;
  explicit Value(ot_value* v) : h_(v) {}
  // A tensor with a copy of `data`.
  template <class T>
  static Value tensor(const std::vector<int64_t>& shape, std::span<const T> data) {
    ot_value* v = nullptr;
    check(
        ot_value_tensor_copy(dtype_of<T>::value, int(shape.size()), shape.data(), data.data(), &v));
    return Value(v);
  }
  ot_value* get() const { return h_.get(); }
  ot_kind kind() const { return ot_value_kind(get()); }
  std::vector<int64_t> shape() const {
    const int64_t* d = ot_value_dims(get());
    return {d, d + ot_value_rank(get())};
  }
  template <class T>
  std::span<T> data() const {
    if (ot_value_dtype(get()) != dtype_of<T>::value)
      throw std::logic_error("ot::Value::data: another element type");
    return {static_cast<T*>(ot_value_data(get())), ot_value_count(get())};
  }

 private:
  detail::Handle<ot_value, ot_value_free> h_;
};

using Feeds = std::vector<std::pair<std::string, const Value*>>;

namespace detail {
struct Arguments {
  explicit Arguments(const Feeds& f) {
    for (const auto& [name, value] : f) {
      names.push_back(name.c_str());
      values.push_back(value->get());
    }
  }
  std::vector<const char*> names;
  std::vector<ot_value*> values;
};
}  // namespace detail

class Model {
 public:
  explicit Model(ot_model* m) : h_(m) {}
  static Model load(const std::string& path) {
    ot_model* m = nullptr;
    check(ot_model_load(path.c_str(), &m));
    return Model(m);
  }
  static Model from_bytes(std::string_view bytes, const std::string& base_dir = {}) {
    ot_model* m = nullptr;
    check(ot_model_load_bytes(bytes.data(), bytes.size(),
                              base_dir.empty() ? nullptr : base_dir.c_str(), &m));
    return Model(m);
  }
  void save(const std::string& path) const { check(ot_model_save(get(), path.c_str())); }
  void export_inference(const std::string& path) const {
    check(ot_model_export(get(), path.c_str()));
  }
  std::string info_json() const {
    ot_text* t = nullptr;
    check(ot_model_info(get(), &t));
    return detail::take(t);
  }
  // What every initializer is to a training by this recipe, as JSON.
  std::string weights_json(const std::string& recipe = "{}") const {
    ot_text* t = nullptr;
    check(ot_model_weights(get(), recipe.c_str(), &t));
    return detail::take(t);
  }
  // recipe: JSON, see docs/recipe.md
  Model prepare(const std::string& recipe = "{}") const {
    ot_model* m = nullptr;
    check(ot_prepare(get(), recipe.c_str(), &m));
    return Model(m);
  }
  ot_model* get() const { return h_.get(); }

 private:
  detail::Handle<ot_model, ot_model_free> h_;
};

struct Options {
  int threads = 0;
  uint64_t seed = 0;
  uint64_t memory = 0;      // a limit in bytes; 0: docs/safety.md, 5
  uint64_t loop_trips = 0;  // of all loops of a run together
  double seconds = 0;       // of one run or step
  ot_options c() const { return {sizeof(ot_options), threads, seed, memory, loop_trips, seconds}; }
};

class Session {
 public:
  explicit Session(const Model& m, const Options& o = {}) {
    ot_options c = o.c();
    ot_session* s = nullptr;
    check(ot_session_create(m.get(), &c, &s));
    h_.reset(s);
  }
  std::map<std::string, Value> run(const Feeds& feeds) {
    detail::Arguments a(feeds);
    size_t n = ot_session_output_count(h_.get());
    std::vector<ot_value*> out(n, nullptr);
    check(ot_session_run(h_.get(), a.names.size(), a.names.data(), a.values.data(), 0, nullptr,
                         out.data()));
    std::map<std::string, Value> result;
    for (size_t k = 0; k < n; ++k)
      result.emplace(ot_session_output_name(h_.get(), k), Value(out[k]));
    return result;
  }

 private:
  detail::Handle<ot_session, ot_session_free> h_;
};

// Data on disk: a file (npy, npz, idx, csv, tsv), a folder with such files, or "synthetic:...".
class Dataset {
 public:
  explicit Dataset(ot_dataset* d) : h_(d) {}
  // part: "train" or "test" (data without parts have no "test": OT2194); "": training data, or all
  // rows. target: a csv column
  static Dataset open(const std::string& spec, const std::string& part = {},
                      const std::string& target = {}) {
    ot_dataset* d = nullptr;
    std::string options = "{\"target\": " + detail::quoted(target);
    if (!part.empty()) options += ", \"part\": " + detail::quoted(part);
    options += "}";
    check(ot_dataset_open(spec.c_str(), options.c_str(), &d));
    return Dataset(d);
  }
  int64_t rows() const { return ot_dataset_rows(get()); }
  std::string info_json() const {
    ot_text* t = nullptr;
    check(ot_dataset_info(get(), &t));
    return detail::take(t);
  }
  ot_dataset* get() const { return h_.get(); }

 private:
  detail::Handle<ot_dataset, ot_dataset_free> h_;
};

// For a model without training inside; one that carries its own is obeyed as it is.
struct TrainerOptions {
  std::string loss = "auto";  // as --loss of the command line
  Optimizer optimizer;
  float clip_norm = 0;
  int threads = 0;
  uint64_t seed = 0;
  uint64_t memory = 0;      // limit in bytes for state and step: recomputes activations; 0: none
  uint64_t loop_trips = 0;  // of all loops of a step together; 0: docs/safety.md, 5
  double seconds = 0;       // of one step
  // "auto": with the processes that mpirun or srun started (docs/distributed.md)
  std::string distributed = "off";
  int micro_blocks = 0;          // of rows that a batch is cut into; 0: one for each process
  std::string batch_norm;        // "local": statistics of each block, "sync": of the whole batch
  std::string reduce_dtype;      // "bf16": gradients between processes; else float32
  bool shard_optimizer = false;  // each process keeps a part of the optimizer's state
  double fault_timeout = 0;      // seconds without a sign of life of a process; 0: 20
  int64_t communicator = -1;     // a Fortran handle of MPI (MPI_Comm_c2f); -1: all processes
};

struct FitOptions {
  int64_t epochs = 10, batch = 32;
  double valid = 0;  // fraction of the rows for validation
  std::string out;   // run folder; empty: nothing is written
  int64_t patience = 0;
  bool shuffle = true;
};

// What an epoch measured, by name: epoch, loss, lr, valid_loss, valid_accuracy, ...
using Epoch = std::map<std::string, double>;

class Trainer {
 public:
  explicit Trainer(const Model& model, const TrainerOptions& o = {}) {
    ot_options c = {sizeof(ot_options), o.threads, o.seed, o.memory, o.loop_trips, o.seconds};
    ot_trainer* t = nullptr;
    ot_status status = ot_trainer_create(model.get(), &c, &t);
    if (without_training(status)) {
      Model prepared = prepare(model, o);
      status = ot_trainer_create(prepared.get(), &c, &t);
    }
    check(status);
    h_.reset(t);
    distribute(o);
  }
  // The same for a model that is given up: its weights are not copied.
  explicit Trainer(Model&& model, const TrainerOptions& o = {}) {
    ot_options c = {sizeof(ot_options), o.threads, o.seed, o.memory, o.loop_trips, o.seconds};
    ot_trainer* t = nullptr;
    ot_status status = ot_trainer_take(model.get(), &c, &t);
    if (without_training(status)) {
      model = prepare(model, o);
      status = ot_trainer_take(model.get(), &c, &t);
    }
    check(status);
    h_.reset(t);
    distribute(o);
  }
  // Joins the processes of the launcher, or cuts batches into blocks, as the options say: for a
  // trainer that was resumed; the others have done it.
  void distribute(const TrainerOptions& o) {
    if (o.distributed == "off" && o.micro_blocks == 0 && o.batch_norm.empty() &&
        o.reduce_dtype.empty() && !o.shard_optimizer)
      return;
    const ot_distributed d = {sizeof(ot_distributed),
                              o.distributed.c_str(),
                              o.micro_blocks,
                              o.fault_timeout,
                              o.communicator,
                              o.batch_norm.empty() ? nullptr : o.batch_norm.c_str(),
                              o.reduce_dtype.empty() ? nullptr : o.reduce_dtype.c_str(),
                              o.shard_optimizer ? 1 : 0};
    check(ot_trainer_distribute(h_.get(), &d));
  }
  int rank() const { return ot_trainer_rank(h_.get()); }
  int ranks() const { return ot_trainer_ranks(h_.get()); }
  // Resumes where a run folder or checkpoint stopped.
  static Trainer resume(const std::string& run, const Options& o = {}) {
    ot_options c = o.c();
    ot_trainer* t = nullptr;
    check(ot_trainer_resume(run.c_str(), &c, &t));
    return Trainer(t);
  }
  // Whole epochs; one entry per epoch. valid: data of its own instead of a fraction.
  std::vector<Epoch> fit(const Dataset& train, const FitOptions& o = {},
                         const Dataset* valid = nullptr) {
    std::string options =
        "{\"epochs\": " + std::to_string(o.epochs) + ", \"batch\": " + std::to_string(o.batch) +
        ", \"valid\": " + std::to_string(o.valid) +
        ", \"patience\": " + std::to_string(o.patience) + ", \"out\": " + detail::quoted(o.out) +
        ", \"shuffle\": " + (o.shuffle ? "true" : "false") + "}";
    std::vector<Epoch> history;
    ot_text* result = nullptr;
    check(ot_trainer_fit_data(
        h_.get(), train.get(), valid ? valid->get() : nullptr, options.c_str(),
        [](void* context, const char* json) {
          static_cast<std::vector<Epoch>*>(context)->push_back(detail::numbers(json));
          return 0;
        },
        &history, &result));
    detail::take(result);
    return history;
  }
  // Loss and metrics on the inference form.
  std::map<std::string, double> evaluate(const Dataset& data, int64_t batch = 256) {
    ot_text* result = nullptr;
    check(ot_trainer_evaluate_data(h_.get(), data.get(), batch, &result));
    return detail::numbers(detail::take(result));
  }
  void initialize() { check(ot_trainer_initialize(h_.get())); }
  // Returns the loss.
  double step(const Feeds& feeds, int which = -1) {
    detail::Arguments a(feeds);
    double loss = 0;
    check(ot_trainer_step(h_.get(), a.names.size(), a.names.data(), a.values.data(), which, &loss));
    return loss;
  }
  double steps(const Feeds& feeds, uint64_t n) {
    detail::Arguments a(feeds);
    double loss = 0;
    check(ot_trainer_steps(h_.get(), a.names.size(), a.names.data(), a.values.data(), n, &loss));
    return loss;
  }
  Value state(const std::string& name) const {
    ot_value* v = nullptr;
    check(ot_trainer_get(h_.get(), name.c_str(), &v));
    return Value(v);
  }
  void set_state(const std::string& name, const Value& v) {
    check(ot_trainer_set(h_.get(), name.c_str(), v.get()));
  }
  double rate() const {
    double r = 0;
    check(ot_trainer_rate(h_.get(), &r));
    return r;
  }
  void set_rate(double r) { check(ot_trainer_set_rate(h_.get(), r)); }
  uint64_t step_count() const { return ot_trainer_step_count(h_.get()); }
  Model model() const {
    ot_model* m = nullptr;
    check(ot_trainer_model(h_.get(), &m));
    return Model(m);
  }
  // A checkpoint: program, state, position and checksums in one training ONNX file.
  void save(const std::string& path) const { check(ot_trainer_save(h_.get(), path.c_str())); }
  void export_inference(const std::string& path) const { model().export_inference(path); }
  ot_trainer* get() const { return h_.get(); }

 private:
  explicit Trainer(ot_trainer* t) : h_(t) {}
  static bool without_training(ot_status status) {
    return status == OT_MODEL && std::string(ot_last_error().code) == "OT1210";
  }
  static Model prepare(const Model& model, const TrainerOptions& o) {
    return model.prepare("{\"losses\": [{\"kind\": " + detail::quoted(o.loss) +
                         "}], \"optimizer\": " + o.optimizer.json() +
                         ", \"clip_norm\": " + std::to_string(o.clip_norm) + "}");
  }
  detail::Handle<ot_trainer, ot_trainer_free> h_;
};

}  // namespace ot
