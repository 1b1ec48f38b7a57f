// A model's graphs: the structure as JSON, tensors by number.
#include "native.hpp"

namespace otpy {

namespace {

struct PyGraphs {
  explicit PyGraphs(ot_graphs* g) : h(g) {}
  ot::detail::Handle<ot_graphs, ot_graphs_free> h;
};

}  // namespace

void bind_graphs(nb::module_& m) {
  nb::class_<PyGraphs>(m, "Graphs")
      .def("json",
           [](const PyGraphs& s) {
             size_t n = 0;
             const char* p = ot_graphs_json(s.h.get(), &n);
             return nb::bytes(p, n);
           })
      .def("tensor", [](const PyGraphs& s, size_t index) {
        ot_value* v = nullptr;
        ok(ot_graphs_tensor(s.h.get(), index, &v));
        return PyValue(v);
      });
  m.def(
      "graphs",
      [](const PyModel& s, std::optional<std::vector<std::string>> kept) {
        Names names(kept ? *kept : std::vector<std::string>());
        static const char* const none = nullptr;
        const char* const* p = !kept ? nullptr : names.p.empty() ? &none : names.p.data();
        ot_graphs* out = nullptr;
        released([&] { return ot_model_graphs(s.h.get(), names.p.size(), p, &out); });
        return PyGraphs(out);
      },
      "model"_a, "kept"_a.none() = nb::none());
}

}  // namespace otpy
