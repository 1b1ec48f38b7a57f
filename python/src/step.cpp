// Buffers of numpy arrays as step inputs.
#include "step.hpp"

namespace {

// ONNX's number of a native, single-character buffer format; 0: not one of them.
int dtype_of(const char* format, Py_ssize_t size) {
  if (!format || !format[0] || format[1]) return 0;
  switch (format[0]) {
    case 'f':
      return 1;
    case 'd':
      return 11;
    case 'e':
      return 10;
    case '?':
      return 9;
    case 'b':
      return 3;
    case 'B':
      return 2;
    case 'h':
      return 5;
    case 'H':
      return 4;
    case 'i':
    case 'l':
    case 'q':
      return size == 8 ? 7 : size == 4 ? 6 : 0;
    case 'I':
    case 'L':
    case 'Q':
      return size == 8 ? 13 : size == 4 ? 12 : 0;
    default:
      return 0;
  }
}

static_assert(sizeof(Py_ssize_t) == sizeof(int64_t));

}  // namespace

StepBinding::StepBinding(const ot_trainer* t) {
  size_t n = ot_trainer_input_count(t);
  for (size_t k = 0; k < n; ++k)
    names_.push_back(PyUnicode_InternFromString(ot_trainer_input_name(t, k)));
  buffers_.resize(n);
  held_.assign(n, 0);
  arrays_.resize(n);
}

StepBinding::~StepBinding() {
  for (PyObject* p : names_) Py_XDECREF(p);
}

StepBinding::Use::Use(StepBinding& b, PyObject* feeds) : b_(b), owner_(!b.busy_), ready_(false) {
  if (!owner_) return;
  b_.busy_ = true;
  ready_ = PyDict_CheckExact(feeds) && fill(feeds);
}

StepBinding::Use::~Use() {
  if (!owner_) return;
  for (size_t k = 0; k < b_.held_.size(); ++k)
    if (b_.held_[k]) {
      PyBuffer_Release(&b_.buffers_[k]);
      b_.held_[k] = 0;
    }
  b_.busy_ = false;
}

bool StepBinding::Use::fill(PyObject* feeds) {
  Py_ssize_t found = 0;
  for (size_t k = 0; k < b_.names_.size(); ++k) {
    b_.arrays_[k] = {};
    PyObject* x = PyDict_GetItemWithError(feeds, b_.names_[k]);
    if (!x) {
      if (PyErr_Occurred()) PyErr_Clear();
      continue;
    }
    ++found;
    Py_buffer& b = b_.buffers_[k];
    if (PyObject_GetBuffer(x, &b, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS) != 0) {
      PyErr_Clear();
      return false;
    }
    b_.held_[k] = 1;
    int dtype = dtype_of(b.format, b.itemsize);
    if (!dtype || !b.buf) return false;
    b_.arrays_[k] = {dtype, b.ndim, reinterpret_cast<const int64_t*>(b.shape), b.buf};
  }
  // other names (a fed state variable, a wrong one) are for the general way
  return found == PyDict_Size(feeds);
}
