// The Python module onnxtrain._native: thin bindings over the public C API. Arrays cross without a
// copy on the way in; the friendly classes are in Python.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "onnxtrain/onnxtrain.hpp"
#include "step.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

// Raises onnxtrain's own exception class for this status.
void raise(ot_status status) {
  ot_error_info e = ot_last_error();
  nb::object cls = nb::module_::import_("onnxtrain.errors").attr("for_status")(int(status));
  nb::object error = cls(std::string(e.message), std::string(e.code), std::string(e.hint));
  PyErr_SetObject(cls.ptr(), error.ptr());
  throw nb::python_error();
}

void ok(ot_status s) {
  if (s != OT_OK) raise(s);
}

// Without the GIL while the library works.
template <class F>
void released(F&& f) {
  ot_status s;
  {
    nb::gil_scoped_release release;
    s = f();
  }
  ok(s);
}

nb::bytes take(ot_text* t) {
  nb::bytes b(ot_text_data(t), ot_text_size(t));
  ot_text_free(t);
  return b;
}

struct PyValue {
  explicit PyValue(ot_value* v) : h(v) {}
  ot::detail::Handle<ot_value, ot_value_free> h;
};

// A tensor over memory of a Python object that supports the buffer protocol (contiguous).
PyValue tensor(int dtype, const std::vector<int64_t>& dims, nb::object buffer) {
  auto* view = new Py_buffer;
  if (PyObject_GetBuffer(buffer.ptr(), view, PyBUF_SIMPLE) != 0) {
    delete view;
    throw nb::python_error();
  }
  auto release = [](void* context) {
    nb::gil_scoped_acquire gil;
    auto* v = static_cast<Py_buffer*>(context);
    PyBuffer_Release(v);
    delete v;
  };
  ot_value* v = nullptr;
  ok(ot_value_tensor(dtype, int(dims.size()), dims.data(), view->buf, release, view, &v));
  return PyValue(v);
}

PyValue strings(const std::vector<int64_t>& dims, const std::vector<std::string>& items) {
  std::vector<const char*> data;
  std::vector<size_t> sizes;
  for (const auto& s : items) {
    data.push_back(s.data());
    sizes.push_back(s.size());
  }
  ot_value* v = nullptr;
  ok(ot_value_strings(int(dims.size()), dims.data(), data.data(), sizes.data(), &v));
  return PyValue(v);
}

PyValue sequence(const std::vector<const PyValue*>& items, int elem) {
  std::vector<ot_value*> raw;
  for (const PyValue* p : items) raw.push_back(p->h.get());
  ot_value* v = nullptr;
  ok(ot_value_sequence(raw.size(), raw.data(), elem, &v));
  return PyValue(v);
}

PyValue int_map(const std::vector<int64_t>& keys, const std::vector<const PyValue*>& items) {
  std::vector<ot_value*> raw;
  for (const PyValue* p : items) raw.push_back(p->h.get());
  ot_value* v = nullptr;
  int64_t none = 0;
  ok(ot_value_map(raw.size(), keys.empty() ? &none : keys.data(), nullptr, raw.data(), &v));
  return PyValue(v);
}

PyValue string_map(const std::vector<std::string>& keys, const std::vector<const PyValue*>& items) {
  std::vector<ot_value*> raw;
  for (const PyValue* p : items) raw.push_back(p->h.get());
  std::vector<const char*> names;
  for (const auto& k : keys) names.push_back(k.c_str());
  ot_value* v = nullptr;
  ok(ot_value_map(raw.size(), nullptr, names.data(), raw.data(), &v));
  return PyValue(v);
}

struct Names {
  explicit Names(const std::vector<std::string>& n) {
    for (const auto& s : n) p.push_back(s.c_str());
  }
  std::vector<const char*> p;
};

std::vector<ot_value*> handles(const std::vector<const PyValue*>& values) {
  std::vector<ot_value*> raw;
  for (const PyValue* p : values) raw.push_back(p ? p->h.get() : nullptr);
  return raw;
}

nb::list wrap(const std::vector<ot_value*>& values) {
  nb::list out;
  for (ot_value* v : values) {
    if (v)
      out.append(nb::cast(PyValue(v)));
    else
      out.append(nb::none());
  }
  return out;
}

struct PyModel {
  explicit PyModel(ot_model* m) : h(m) {}
  ot::detail::Handle<ot_model, ot_model_free> h;
};

struct PySession {
  ot::detail::Handle<ot_session, ot_session_free> h;
};

struct PyTrainer {
  ot::detail::Handle<ot_trainer, ot_trainer_free> h;
  std::unique_ptr<StepBinding> binding;  // made at the first step
};

ot_options options(int threads, uint64_t seed) { return {sizeof(ot_options), threads, seed}; }

void bind_values(nb::module_& m) {
  nb::class_<PyValue>(m, "Value")
      .def_prop_ro("kind", [](const PyValue& v) { return int(ot_value_kind(v.h.get())); })
      .def_prop_ro("dtype", [](const PyValue& v) { return ot_value_dtype(v.h.get()); })
      .def_prop_ro("shape",
                   [](const PyValue& v) {
                     const int64_t* d = ot_value_dims(v.h.get());
                     return std::vector<int64_t>(d, d + ot_value_rank(v.h.get()));
                   })
      // a writable view of the memory, valid as long as this object lives
      .def("memory",
           [](const PyValue& v) {
             return nb::steal<nb::object>(
                 PyMemoryView_FromMemory(static_cast<char*>(ot_value_data(v.h.get())),
                                         Py_ssize_t(ot_value_bytes(v.h.get())), PyBUF_WRITE));
           })
      .def("copy_to",
           [](const PyValue& v, nb::object buffer) {
             Py_buffer view;
             if (PyObject_GetBuffer(buffer.ptr(), &view, PyBUF_WRITABLE) != 0)
               throw nb::python_error();
             size_t n = ot_value_bytes(v.h.get());
             if (size_t(view.len) == n && n) memcpy(view.buf, ot_value_data(v.h.get()), n);
             PyBuffer_Release(&view);
           })
      .def("strings",
           [](const PyValue& v) {
             nb::list out;
             for (size_t k = 0; k < ot_value_count(v.h.get()); ++k) {
               size_t n = 0;
               const char* s = ot_value_string(v.h.get(), k, &n);
               out.append(nb::bytes(s, n));
             }
             return out;
           })
      .def("items",
           [](const PyValue& v) {
             nb::list out;
             for (size_t k = 0; k < ot_value_count(v.h.get()); ++k) {
               ot_value* item = nullptr;
               ok(ot_value_item(v.h.get(), k, &item));
               out.append(nb::cast(PyValue(item)));
             }
             return out;
           })
      .def("keys",
           [](const PyValue& v) {
             nb::list out;
             for (size_t k = 0; k < ot_value_count(v.h.get()); ++k) {
               int64_t i = 0;
               const char* s = nullptr;
               if (ot_value_key(v.h.get(), k, &i, &s))
                 out.append(i);
               else
                 out.append(std::string(s));
             }
             return out;
           })
      .def("sparse_parts", [](const PyValue& v) {
        ot_value *values = nullptr, *indices = nullptr;
        ok(ot_value_sparse_parts(v.h.get(), &values, &indices));
        return nb::make_tuple(PyValue(values), PyValue(indices));
      });
  m.def("tensor", &tensor, "dtype"_a, "dims"_a, "buffer"_a);
  m.def("strings", &strings, "dims"_a, "items"_a);
  m.def("sequence", &sequence, "items"_a, "elem"_a = 0);
  m.def("int_map", &int_map);
  m.def("string_map", &string_map);
  m.def("none", [] {
    ot_value* v = nullptr;
    ok(ot_value_none(&v));
    return PyValue(v);
  });
}

void bind_model(nb::module_& m) {
  nb::class_<PyModel>(m, "Model")
      .def("save",
           [](const PyModel& s, const std::string& path) {
             released([&] { return ot_model_save(s.h.get(), path.c_str()); });
           })
      .def("export",
           [](const PyModel& s, const std::string& path) {
             released([&] { return ot_model_export(s.h.get(), path.c_str()); });
           })
      .def(
          "bytes",
          [](const PyModel& s, bool inference_only) {
            ot_text* t = nullptr;
            released([&] { return ot_model_bytes(s.h.get(), inference_only, &t); });
            return take(t);
          },
          "inference_only"_a = false)
      .def("info",
           [](const PyModel& s) {
             ot_text* t = nullptr;
             ok(ot_model_info(s.h.get(), &t));
             return take(t);
           })
      .def("initializer",
           [](const PyModel& s, const std::string& name) {
             ot_value* v = nullptr;
             ok(ot_model_initializer(s.h.get(), name.c_str(), &v));
             return PyValue(v);
           })
      .def("set_initializer",
           [](PyModel& s, const std::string& name, const PyValue& v) {
             ok(ot_model_set_initializer(s.h.get(), name.c_str(), v.h.get()));
           })
      .def("prepare",
           [](const PyModel& s, const std::string& recipe) {
             ot_model* out = nullptr;
             released([&] { return ot_prepare(s.h.get(), recipe.c_str(), &out); });
             return PyModel(out);
           })
      .def(
          "gradients",
          [](const PyModel& s, const std::vector<std::string>& names,
             const std::vector<const PyValue*>& inputs, std::optional<std::vector<std::string>> of,
             const std::vector<const PyValue*>& cotangents, const std::vector<std::string>& wrt,
             int threads) {
            Names in(names), w(wrt), o(of ? *of : std::vector<std::string>());
            std::vector<ot_value*> values = handles(inputs), cot = handles(cotangents),
                                   out(wrt.size(), nullptr);
            ot_options opt = options(threads, 0);
            released([&] {
              return ot_gradients(s.h.get(), in.p.size(), in.p.data(), values.data(), o.p.size(),
                                  of ? o.p.data() : nullptr, cot.empty() ? nullptr : cot.data(),
                                  w.p.size(), w.p.data(), &opt, out.data());
            });
            return wrap(out);
          },
          "names"_a, "inputs"_a, "of"_a.none(), "cotangents"_a, "wrt"_a, "threads"_a = 0);
  m.def("load", [](const std::string& path) {
    ot_model* out = nullptr;
    released([&] { return ot_model_load(path.c_str(), &out); });
    return PyModel(out);
  });
  m.def(
      "load_bytes",
      [](nb::bytes data, std::optional<std::string> base) {
        ot_model* out = nullptr;
        const char* p = data.c_str();
        size_t n = data.size();
        released([&] { return ot_model_load_bytes(p, n, base ? base->c_str() : nullptr, &out); });
        return PyModel(out);
      },
      "data"_a, "base_dir"_a.none() = nb::none());
  m.def("parse", [](const std::string& text) {
    ot_model* out = nullptr;
    ok(ot_model_parse(text.c_str(), &out));
    return PyModel(out);
  });
  m.def("check_file", [](const std::string& path) {
    ot_text* t = nullptr;
    released([&] { return ot_check_file(path.c_str(), &t); });
    return take(t);
  });
  m.def("check_bytes", [](nb::bytes data) {
    ot_text* t = nullptr;
    const char* p = data.c_str();
    size_t n = data.size();
    released([&] { return ot_check_bytes(p, n, nullptr, &t); });
    return take(t);
  });
}

void bind_runners(nb::module_& m) {
  m.def("resume", [](const std::string& path, int threads) {
    ot_options o = options(threads, 0);
    ot_trainer* t = nullptr;
    ok(ot_trainer_resume(path.c_str(), &o, &t));
    PyTrainer p;
    p.h.reset(t);
    return p;
  });
  nb::class_<PySession>(m, "Session")
      .def(
          "__init__",
          [](PySession* self, const PyModel& model, int threads) {
            new (self) PySession;
            ot_options o = options(threads, 0);
            ot_session* s = nullptr;
            ok(ot_session_create(model.h.get(), &o, &s));
            self->h.reset(s);
          },
          "model"_a, "threads"_a = 0)
      .def_prop_ro("output_names",
                   [](const PySession& s) {
                     std::vector<std::string> names;
                     for (size_t k = 0; k < ot_session_output_count(s.h.get()); ++k)
                       names.push_back(ot_session_output_name(s.h.get(), k));
                     return names;
                   })
      .def(
          "run",
          [](PySession& s, const std::vector<std::string>& names,
             const std::vector<const PyValue*>& inputs,
             std::optional<std::vector<std::string>> outputs) {
            Names in(names), out_names(outputs ? *outputs : std::vector<std::string>());
            std::vector<ot_value*> values = handles(inputs);
            std::vector<ot_value*> out(
                outputs ? outputs->size() : ot_session_output_count(s.h.get()), nullptr);
            released([&] {
              return ot_session_run(s.h.get(), in.p.size(), in.p.data(), values.data(),
                                    out_names.p.size(), outputs ? out_names.p.data() : nullptr,
                                    out.data());
            });
            return wrap(out);
          },
          "names"_a, "inputs"_a, "outputs"_a.none() = nb::none());
  nb::class_<PyTrainer>(m, "Trainer")
      .def(
          "__init__",
          [](PyTrainer* self, const PyModel& model, uint64_t seed, int threads) {
            new (self) PyTrainer;
            ot_options o = options(threads, seed);
            ot_trainer* t = nullptr;
            ok(ot_trainer_create(model.h.get(), &o, &t));
            self->h.reset(t);
          },
          "model"_a, "seed"_a = 0, "threads"_a = 0)
      .def("initialize",
           [](PyTrainer& t) { released([&] { return ot_trainer_initialize(t.h.get()); }); })
      // the loss, or None when the feeds need feed_lists (step_values)
      .def("step",
           [](PyTrainer& t, nb::handle feeds, int which, uint64_t n) -> nb::object {
             if (!t.binding) t.binding = std::make_unique<StepBinding>(t.h.get());
             ot_status status = OT_OK;
             double loss = 0;
             if (!t.binding->run(feeds.ptr(), which, n, status, loss)) return nb::none();
             ok(status);
             return nb::float_(loss);
           })
      .def("step_values",
           [](PyTrainer& t, const std::vector<std::string>& names,
              const std::vector<const PyValue*>& inputs, int which, uint64_t n) {
             Names in(names);
             std::vector<ot_value*> values = handles(inputs);
             double loss = 0;
             for (uint64_t k = 0; k < n; ++k)
               released([&] {
                 return ot_trainer_step(t.h.get(), in.p.size(), in.p.data(), values.data(), which,
                                        &loss);
               });
             return loss;
           })
      .def("output_names",
           [](const PyTrainer& t) {
             nb::list out;
             for (size_t k = 0; k < ot_trainer_output_count(t.h.get()); ++k)
               out.append(nb::make_tuple(std::string(ot_trainer_output_name(t.h.get(), k)),
                                         ot_trainer_output_is_state(t.h.get(), k) != 0));
             return out;
           })
      .def("output",
           [](const PyTrainer& t, size_t k) {
             ot_value* v = nullptr;
             ok(ot_trainer_output(t.h.get(), k, &v));
             return PyValue(v);
           })
      .def("state_names",
           [](const PyTrainer& t) {
             ot_text* text = nullptr;
             ok(ot_trainer_state_names(t.h.get(), &text));
             return take(text);
           })
      .def("get",
           [](const PyTrainer& t, const std::string& name) {
             ot_value* v = nullptr;
             ok(ot_trainer_get(t.h.get(), name.c_str(), &v));
             return PyValue(v);
           })
      .def("set", [](PyTrainer& t, const std::string& name,
                     const PyValue& v) { ok(ot_trainer_set(t.h.get(), name.c_str(), v.h.get())); })
      .def_prop_rw(
          "rate",
          [](const PyTrainer& t) {
            double r = 0;
            ok(ot_trainer_rate(t.h.get(), &r));
            return r;
          },
          [](PyTrainer& t, double r) { ok(ot_trainer_set_rate(t.h.get(), r)); })
      .def_prop_ro("step_count",
                   [](const PyTrainer& t) { return ot_trainer_step_count(t.h.get()); })
      .def(
          "fit",
          [](PyTrainer& t, const std::vector<std::string>& names,
             const std::vector<const PyValue*>& columns,
             const std::vector<std::string>& valid_names,
             const std::vector<const PyValue*>& valid_columns, const std::string& options,
             nb::object on_epoch) {
            Names n(names), vn(valid_names);
            std::vector<ot_value*> c = handles(columns), vc = handles(valid_columns);
            ot_text* result = nullptr;
            // an exception in the callback stops the training and is raised afterwards
            struct Context {
              nb::object call;
              PyObject *type = nullptr, *value = nullptr, *trace = nullptr;
            } context{on_epoch};
            auto callback = [](void* p, const char* json) -> int {
              nb::gil_scoped_acquire gil;
              auto* x = static_cast<Context*>(p);
              try {
                return PyErr_CheckSignals() != 0 ||
                       (!x->call.is_none() && nb::cast<bool>(x->call(nb::str(json))));
              } catch (nb::python_error& e) {
                e.restore();
                PyErr_Fetch(&x->type, &x->value, &x->trace);
                return 1;
              }
            };
            released([&] {
              return ot_trainer_fit(t.h.get(), n.p.size(), n.p.data(), c.data(), vn.p.size(),
                                    vn.p.data(), vc.data(), options.c_str(), callback, &context,
                                    &result);
            });
            nb::bytes out = take(result);
            if (context.type) {
              PyErr_Restore(context.type, context.value, context.trace);
              throw nb::python_error();
            }
            return out;
          },
          "names"_a, "columns"_a, "valid_names"_a, "valid_columns"_a, "options"_a,
          "on_epoch"_a.none())
      .def("evaluate",
           [](PyTrainer& t, const std::vector<std::string>& names,
              const std::vector<const PyValue*>& columns, int64_t batch) {
             Names n(names);
             std::vector<ot_value*> c = handles(columns);
             ot_text* result = nullptr;
             released([&] {
               return ot_trainer_evaluate(t.h.get(), n.p.size(), n.p.data(), c.data(), batch,
                                          &result);
             });
             return take(result);
           })
      .def("save",
           [](const PyTrainer& t, const std::string& path) {
             released([&] { return ot_trainer_save(t.h.get(), path.c_str()); });
           })
      .def("model", [](const PyTrainer& t) {
        ot_model* out = nullptr;
        released([&] { return ot_trainer_model(t.h.get(), &out); });
        return PyModel(out);
      });
}

}  // namespace

NB_MODULE(_native, m) {
  nb::set_leak_warnings(false);
  m.def("version", &ot_version, "The library's version.");
  bind_values(m);
  bind_model(m);
  bind_runners(m);
}
