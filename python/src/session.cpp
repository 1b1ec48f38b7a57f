// Sessions: inference.
#include "native.hpp"

namespace otpy {

namespace {

struct PySession {
  ot::detail::Handle<ot_session, ot_session_free> h;
  Guard guard;
};

}  // namespace

void bind_session(nb::module_& m) {
  nb::class_<PySession>(m, "Session")
      .def(
          "__init__",
          [](PySession* self, const PyModel& model, int threads, const Limits& limits) {
            new (self) PySession;
            ot_options o = options(threads, 0, limits);
            ot_session* s = nullptr;
            released([&] { return ot_session_create(model.h.get(), &o, &s); });
            self->h.reset(s);
          },
          "model"_a, "threads"_a, "limits"_a)
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
            s.guard.released([&] {
              return ot_session_run(s.h.get(), in.p.size(), in.p.data(), values.data(),
                                    out_names.p.size(), outputs ? out_names.p.data() : nullptr,
                                    out.data());
            });
            return wrap(out);
          },
          "names"_a, "inputs"_a, "outputs"_a.none() = nb::none());
}

}  // namespace otpy
