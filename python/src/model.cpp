// Models: files, initializers, prepare, gradients.
#include "native.hpp"

namespace otpy {

namespace {

void bind_steps(nb::class_<PyModel>& c) {
  c.def("make_step",
        [](const PyModel& s, int which, const std::string& options) {
          ot_model* step = nullptr;
          ot_text* manifest = nullptr;
          released(
              [&] { return ot_make_step(s.h.get(), which, options.c_str(), &step, &manifest); });
          return nb::make_tuple(nb::cast(PyModel(step)), take(manifest));
        })
      .def("export_step",
           [](const PyModel& s, int which, const std::string& options, const std::string& path) {
             ot_text* report = nullptr;
             released([&] {
               return ot_export_step(s.h.get(), which, options.c_str(), path.c_str(), &report);
             });
             return take(report);
           })
      .def("export_whole",
           [](const PyModel& s, const std::string& options, const std::string& path) {
             ot_text* report = nullptr;
             released([&] {
               return ot_export_whole(s.h.get(), options.c_str(), path.c_str(), &report);
             });
             return take(report);
           });
}

// target: its values, or null.
PyModel prepared(const PyModel& s, const std::string& recipe, const PyValue* target) {
  ot_model* out = nullptr;
  const char* r = recipe.c_str();
  released([&] {
    return target ? ot_prepare_for(s.h.get(), r, target->h.get(), &out)
                  : ot_prepare(s.h.get(), r, &out);
  });
  return PyModel(out);
}

// Rows that go in and come out.
void bind_rows(nb::class_<PyModel>& c) {
  c.def("adapt",
        [](const PyModel& s, const std::string& input, const PyValue& array) {
          ot_value* v = nullptr;
          released([&] { return ot_model_adapt(s.h.get(), input.c_str(), array.h.get(), &v); });
          return PyValue(v);
        })
      .def("unlike",
           [](const PyModel& s, const std::string& input, const PyValue& rows) {
             ot_text* t = nullptr;
             released([&] { return ot_model_unlike(s.h.get(), input.c_str(), rows.h.get(), &t); });
             return take(t);
           })
      .def("output_meaning", [](const PyModel& s, const std::string& output,
                                const std::vector<int64_t>& dims, size_t names) {
        ot_text* t = nullptr;
        const int64_t none = 0;
        ok(ot_model_output_meaning(s.h.get(), output.c_str(), dims.size(),
                                   dims.empty() ? &none : dims.data(), names, &t));
        return take(t);
      });
}

void bind_class(nb::module_& m) {
  nb::class_<PyModel> c(m, "Model");
  bind_steps(c);
  bind_rows(c);
  c.def("save",
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
      .def("weights",
           [](const PyModel& s, const std::string& recipe) {
             ot_text* t = nullptr;
             released([&] { return ot_model_weights(s.h.get(), recipe.c_str(), &t); });
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
      .def("prepare", prepared, "recipe"_a, "target"_a.none() = nb::none())
      .def(
          "gradients",
          [](const PyModel& s, const std::vector<std::string>& names,
             const std::vector<const PyValue*>& inputs, std::optional<std::vector<std::string>> of,
             const std::vector<const PyValue*>& cotangents, const std::vector<std::string>& wrt,
             int threads, const Limits& limits) {
            Names in(names), w(wrt), o(of ? *of : std::vector<std::string>());
            std::vector<ot_value*> values = handles(inputs), cot = handles(cotangents),
                                   out(wrt.size(), nullptr);
            ot_options opt = options(threads, 0, limits);
            released([&] {
              return ot_gradients(s.h.get(), in.p.size(), in.p.data(), values.data(), o.p.size(),
                                  of ? o.p.data() : nullptr, cot.empty() ? nullptr : cot.data(),
                                  w.p.size(), w.p.data(), &opt, out.data());
            });
            return wrap(out);
          },
          "names"_a, "inputs"_a, "of"_a.none(), "cotangents"_a, "wrt"_a, "threads"_a, "limits"_a);
}

}  // namespace

void bind_model(nb::module_& m) {
  bind_class(m);
  m.def(
      "load",
      [](const std::string& path, bool mapped) {
        ot_model* out = nullptr;
        released([&] {
          return mapped ? ot_model_load_mapped(path.c_str(), &out)
                        : ot_model_load(path.c_str(), &out);
        });
        return PyModel(out);
      },
      "path"_a, "mapped"_a = false);
  m.def(
      "load_bytes",
      [](const nb::bytes& data, const std::optional<std::string>& base) {
        ot_model* out = nullptr;
        const char* p = data.c_str();
        size_t n = data.size();
        released([&] { return ot_model_load_bytes(p, n, base ? base->c_str() : nullptr, &out); });
        return PyModel(out);
      },
      "data"_a, "base_dir"_a.none() = nb::none());
  m.def(
      "new",
      [](const std::string& kind, const std::vector<std::string>& names,
         const std::vector<const PyValue*>& arrays, const std::string& options) {
        Names n(names);
        std::vector<ot_value*> raw = handles(arrays);
        ot_model* out = nullptr;
        ot_text* notes = nullptr;
        released([&] {
          ot_dataset* data = nullptr;
          ot_status s = OT_OK;
          if (!raw.empty()) s = ot_dataset_arrays(raw.size(), n.p.data(), raw.data(), &data);
          if (s == OT_OK) s = ot_model_new(kind.c_str(), data, options.c_str(), &out, &notes);
          ot_dataset_free(data);
          return s;
        });
        return std::make_tuple(nb::cast(PyModel(out)), take(notes));
      },
      "kind"_a, "names"_a, "arrays"_a, "options"_a);
  m.def("column_numbers", [](const std::string& name, const std::string& word,
                             const std::vector<std::string>& texts) {
    std::vector<const char*> raw;
    for (const std::string& t : texts) raw.push_back(t.c_str());
    std::vector<double> found(texts.size());
    ok(ot_column_numbers(name.c_str(), word.c_str(), raw.size(), raw.data(), found.data()));
    return found;
  });
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
  m.def("check_bytes", [](const nb::bytes& data) {
    ot_text* t = nullptr;
    const char* p = data.c_str();
    size_t n = data.size();
    released([&] { return ot_check_bytes(p, n, nullptr, &t); });
    return take(t);
  });
}

}  // namespace otpy
