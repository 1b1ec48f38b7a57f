// The C API: operators that the library does not know, run by another runtime.
#include "run/fallback.hpp"

#include "api/handles.hpp"

using namespace onnxtrain;
using namespace onnxtrain::api;

namespace {

class CallbackFallback final : public run::Fallback {
 public:
  explicit CallbackFallback(const ot_fallback& f) : f_(f), name_(f.name ? f.name : "fallback") {}
  const char* name() const override { return name_.c_str(); }
  bool has_gradient(const std::string& domain, const std::string& op) override {
    const int has = f_.has_gradient ? f_.has_gradient(f_.context, domain.c_str(), op.c_str()) : 0;
    if (has < 0)
      throw Error(ErrorKind::kFailed, "OT1780",
                  cat(name_, " failed when asked for a gradient of ", domain, ".", op));
    return has != 0;
  }
  std::vector<Tensor> run_model(const std::string& model, const std::string& about,
                                const std::vector<const Tensor*>& inputs, size_t outputs) override {
    std::vector<ot_value> values;
    values.reserve(inputs.size());
    for (const Tensor* t : inputs) values.push_back({*t});
    std::vector<ot_value*> in;
    for (ot_value& v : values) in.push_back(&v);
    std::vector<ot_value*> out(outputs, nullptr);
    const char* error = nullptr;
    const int status = f_.run(f_.context, model.data(), model.size(), about.c_str(), in.size(),
                              in.data(), out.size(), out.data(), &error);
    std::vector<std::unique_ptr<ot_value>> owned;
    for (ot_value* v : out) owned.emplace_back(v);
    if (status != 0)
      throw Error(ErrorKind::kFailed, "OT1780", cat(name_, " failed: ", error ? error : ""));
    std::vector<Tensor> tensors;
    for (const auto& v : owned) {
      const Tensor* t = v ? std::get_if<Tensor>(&v->v) : nullptr;
      if (!t)
        throw Error(ErrorKind::kFailed, "OT1780",
                    cat(name_, " returned fewer results than the nodes have outputs"));
      tensors.push_back(t->clone());
    }
    return tensors;
  }

 private:
  ot_fallback f_;
  std::string name_;
};

}  // namespace

ot_status ot_set_fallback(const ot_fallback* f) {
  return guarded({}, [&] {
    if (!f) return set_foreign_runner(nullptr);
    check_needed({{"run", reinterpret_cast<const void*>(f->run)}});
    set_foreign_runner(std::make_shared<CallbackFallback>(*f));
  });
}
