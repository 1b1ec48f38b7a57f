// C++20 over the C API: header only, exceptions instead of status codes, values that own.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "onnxtrain/onnxtrain.h"

namespace ot {

// What went wrong: code ("OT1203"), message, hint; status() is the command line's exit code.
class Error : public std::runtime_error {
 public:
  Error(ot_status status, const ot_error_info& e)
      : std::runtime_error(std::string("error[") + e.code + "]: " + e.message +
                           (e.hint[0] ? std::string("\n  help: ") + e.hint : std::string())),
        status_(status),
        code_(e.code),
        message_(e.message),
        hint_(e.hint) {}
  ot_status status() const { return status_; }
  const std::string& code() const { return code_; }
  const std::string& message() const { return message_; }
  const std::string& hint() const { return hint_; }

 private:
  ot_status status_;
  std::string code_, message_, hint_;
};

inline void check(ot_status s) {
  if (s != OT_OK) throw Error(s, ot_last_error());
}

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
  ot_options c() const { return {sizeof(ot_options), threads, seed}; }
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

class Trainer {
 public:
  explicit Trainer(const Model& training_model, const Options& o = {}) {
    ot_options c = o.c();
    ot_trainer* t = nullptr;
    check(ot_trainer_create(training_model.get(), &c, &t));
    h_.reset(t);
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
  void save(const std::string& path) const { model().save(path); }
  void export_inference(const std::string& path) const { model().export_inference(path); }
  ot_trainer* get() const { return h_.get(); }

 private:
  detail::Handle<ot_trainer, ot_trainer_free> h_;
};

}  // namespace ot
