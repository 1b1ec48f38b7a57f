// The C API: steps by another runtime, through callbacks.
#include <algorithm>
#include <cstring>

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
    const Arguments a(feeds);
    const char* error = nullptr;
    double loss = 0;
    const int status =
        e_.step(e_.context, a.names.size(), a.names.data(), a.pointers.data(), &loss, &error);
    check(status, error);
    return loss;
  }
  Named state() override {
    Named all;
    const char* error = nullptr;
    const int status = e_.state(e_.context, take, &all, &error);
    check(status, error);
    return all;
  }
  bool undo() override { return e_.undo && e_.undo(e_.context) == 0; }
  run::Evaluated evaluate(const Feeds& feeds) override {
    if (!e_.evaluate) return {{}, {}, "the engine only makes steps"};
    const Arguments a(feeds);
    Named all;
    const char* error = nullptr;
    const int status = e_.evaluate(e_.context, a.names.size(), a.names.data(), a.pointers.data(),
                                   take, &all, &error);
    if (status == OT_NOT_EVALUATED) return {{}, {}, error ? error : "the engine does not say why"};
    check(status, error);
    return run::evaluated(all);
  }

 private:
  struct Arguments {  // of a callback; the values stay the library's
    explicit Arguments(const Feeds& feeds) {
      values.reserve(feeds.size());
      for (const auto& [name, value] : feeds) {
        names.push_back(name.c_str());
        values.push_back({value});
        pointers.push_back(&values.back());
      }
    }
    std::vector<const char*> names;
    std::vector<ot_value> values;
    std::vector<ot_value*> pointers;
  };
  static void take(void* sink, const char* name, const ot_value* value) {
    if (const Tensor* t = value ? std::get_if<Tensor>(&value->v) : nullptr)
      static_cast<Named*>(sink)->emplace_back(name, t->clone());
  }
  // An error of this library that an engine hands on, "error[CODE]: text\n  help: what to do",
  // stays what it is.
  static void check(int status, const char* error) {
    if (status == 0) return;
    const std::string text = error ? error : "", begin = "error[OT", help = "\n  help: ";
    const size_t close = text.find("]: ");
    if (text.starts_with(begin) && close != std::string::npos) {
      const std::string code = text.substr(begin.size() - 2, close - begin.size() + 2);
      const size_t from = close + 3, to = std::min(text.find(help), text.size());
      throw Error(code[2] == '2' ? ErrorKind::kData : ErrorKind::kModel, code,
                  text.substr(from, to - from),
                  to == text.size() ? "" : text.substr(to + help.size()));
    }
    throw Error(ErrorKind::kFailed, "OT1275", cat("the engine failed: ", text));
  }
  ot_engine e_;
};

}  // namespace

ot_status ot_trainer_set_engine(ot_trainer* t, const ot_engine* engine) {
  return guarded({{"t", t}}, [&] {
    if (!engine) return t->run.set_engine(nullptr);
    ot_engine e{};  // a caller of an earlier version has fewer members
    std::memcpy(&e, engine, std::min(engine->size, sizeof e));
    check_needed({{"begin", reinterpret_cast<const void*>(e.begin)},
                  {"step", reinterpret_cast<const void*>(e.step)},
                  {"state", reinterpret_cast<const void*>(e.state)}});
    t->run.set_engine(std::make_unique<CallbackEngine>(e));
  });
}
