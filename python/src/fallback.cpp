// Another runtime for operators that the library does not know, as a Python object: name,
// run(model, about, inputs) -> values, has_gradient(domain, op) -> bool (onnxtrain/foreign.py).
#include "native.hpp"

namespace otpy {

namespace {

struct PyFallback {
  nb::object runtime;
  nb::object results;  // of the last call, until the library has copied them
  std::string name, text;
};

PyValue borrowed(const ot_value* v) {
  ot_value* out = nullptr;
  ok(ot_value_tensor(ot_value_dtype(v), ot_value_rank(v), ot_value_dims(v), ot_value_data(v),
                     nullptr, nullptr, &out));
  return PyValue(out);
}

ot_value* again(const ot_value* v) {
  ot_value* out = nullptr;
  ok(ot_value_tensor(ot_value_dtype(v), ot_value_rank(v), ot_value_dims(v), ot_value_data(v),
                     nullptr, nullptr, &out));
  return out;
}

int run(void* context, const void* model, size_t size, const char* about, size_t n_inputs,
        ot_value* const* inputs, size_t n_outputs, ot_value** outputs, const char** error) {
  nb::gil_scoped_acquire gil;
  PyFallback& f = *static_cast<PyFallback*>(context);
  try {
    nb::list in;
    for (size_t k = 0; k < n_inputs; ++k) in.append(nb::cast(borrowed(inputs[k])));
    f.results = f.runtime.attr("run")(nb::bytes(static_cast<const char*>(model), size),
                                      std::string(about), in);
    size_t at = 0;
    for (nb::handle v : f.results) {
      if (at == n_outputs) break;
      outputs[at++] = again(nb::cast<const PyValue&>(v).h.get());
    }
    return 0;
  } catch (const std::exception& e) {
    f.text = e.what();
    *error = f.text.c_str();
    return 1;
  }
}

int has_gradient(void* context, const char* domain, const char* op) {
  nb::gil_scoped_acquire gil;
  try {
    return nb::cast<bool>(
        static_cast<PyFallback*>(context)->runtime.attr("has_gradient")(domain, op));
  } catch (nb::python_error& e) {
    e.discard_as_unraisable("has_gradient of the fallback");
    return -1;
  } catch (const nb::cast_error&) {
    return -1;
  }
}

}  // namespace

void bind_fallback(nb::module_& m) {
  m.def(
      "set_fallback",
      [](nb::object runtime) {
        // one of the process; plans may hold it for as long as they live
        static std::vector<std::unique_ptr<PyFallback>>& all =
            *new std::vector<std::unique_ptr<PyFallback>>();
        if (runtime.is_none()) return ok(ot_set_fallback(nullptr));
        auto f = std::make_unique<PyFallback>();
        f->name = nb::cast<std::string>(runtime.attr("name"));
        f->runtime = std::move(runtime);
        ot_fallback c{};
        c.size = sizeof c;
        c.context = f.get();
        c.name = f->name.c_str();
        c.run = run;
        c.has_gradient = has_gradient;
        ok(ot_set_fallback(&c));
        all.push_back(std::move(f));
      },
      "runtime"_a.none());
}

}  // namespace otpy
