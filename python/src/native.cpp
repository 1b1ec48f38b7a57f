// The Python module onnxtrain._native: thin bindings over the public C API. Arrays cross without a
// copy on the way in; the friendly classes are in Python.
#include "native.hpp"

namespace otpy {

void raise(ot_status status) {
  ot_error_info e = ot_last_error();
  const std::string code = e.code;
  nb::object cls = nb::module_::import_("onnxtrain.errors").attr("for_status")(int(status), code);
  nb::object error = cls(std::string(e.message), code, std::string(e.hint));
  PyErr_SetObject(cls.ptr(), error.ptr());
  throw nb::python_error();
}

nb::bytes take(ot_text* t) {
  nb::bytes b(ot_text_data(t), ot_text_size(t));
  ot_text_free(t);
  return b;
}

}  // namespace otpy

NB_MODULE(_native, m) {
  nanobind::set_leak_warnings(false);
  m.def("version", &ot_version, "The library's version.");
  m.def("optimizers", &ot_optimizers, "The optimizers' records, as JSON.");
  m.def("missing_words", &ot_missing_words, "Texts for a missing number in tables, as JSON.");
  m.def("functions", &ot_functions, "The functions of domain ai.onnxtrain, as JSON.");
  otpy::bind_values(m);
  otpy::bind_model(m);
  otpy::bind_graphs(m);
  otpy::bind_session(m);
  otpy::bind_trainer(m);
  otpy::bind_fallback(m);
  otpy::bind_tokenizer(m);
}
