// The C API: steps by another runtime, through callbacks.
#include "api/handles.hpp"

using namespace onnxtrain;
using namespace onnxtrain::api;

namespace {

class CallbackEngine final : public run::Engine {
 public:
  explicit CallbackEngine(const ot_engine& e) : e_(e) {}

  void begin(const Model& training, uint64_t step) override {
    auto m = std::make_unique<ot_model>(ot_model{std::make_shared<const Model>(training)});
    const char* error = nullptr;
    const int status = e_.begin(e_.context, m.release(), step, &error);
    check(status, error);
  }
  double step(const Feeds& feeds) override {
    std::vector<const char*> names;
    std::vector<ot_value> values;
    values.reserve(feeds.size());
    for (const auto& [name, value] : feeds) {
      names.push_back(name.c_str());
      values.push_back({value});
    }
    std::vector<ot_value*> pointers;
    for (ot_value& v : values) pointers.push_back(&v);
    const char* error = nullptr;
    double loss = 0;
    const int status =
        e_.step(e_.context, names.size(), names.data(), pointers.data(), &loss, &error);
    check(status, error);
    return loss;
  }
  std::vector<std::pair<std::string, Tensor>> state() override {
    std::vector<std::pair<std::string, Tensor>> all;
    const char* error = nullptr;
    const int status = e_.state(
        e_.context,
        [](void* sink, const char* name, const ot_value* value) {
          if (const Tensor* t = value ? std::get_if<Tensor>(&value->v) : nullptr)
            static_cast<decltype(all)*>(sink)->emplace_back(name, t->clone());
        },
        &all, &error);
    check(status, error);
    return all;
  }
  bool undo() override { return e_.undo && e_.undo(e_.context) == 0; }

 private:
  static void check(int status, const char* error) {
    if (status == 0) return;
    throw Error(ErrorKind::kFailed, "OT1275", cat("the engine failed: ", error ? error : ""));
  }
  ot_engine e_;
};

}  // namespace

ot_status ot_trainer_set_engine(ot_trainer* t, const ot_engine* engine) {
  return guarded({{"t", t}}, [&] {
    if (!engine) return t->run.set_engine(nullptr);
    check_needed({{"begin", reinterpret_cast<const void*>(engine->begin)},
                  {"step", reinterpret_cast<const void*>(engine->step)},
                  {"state", reinterpret_cast<const void*>(engine->state)}});
    t->run.set_engine(std::make_unique<CallbackEngine>(*engine));
  });
}
