// Values: tensors, strings, sequences, maps.
#include "native.hpp"

namespace otpy {

namespace {

// A tensor over memory of a Python object that supports the buffer protocol (contiguous).
PyValue tensor(int dtype, const std::vector<int64_t>& dims, const nb::object& buffer) {
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

}  // namespace

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
           [](const PyValue& v, const nb::object& buffer) {
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

}  // namespace otpy
