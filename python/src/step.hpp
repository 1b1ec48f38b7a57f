// Trainer.step without detours: arrays of a dict straight to the library's slots.
#pragma once
#include <nanobind/nanobind.h>

#include <vector>

#include "onnxtrain/onnxtrain.h"

// Names of a trainer's inputs as interned strings, and what a call needs.
class StepBinding {
 public:
  explicit StepBinding(ot_trainer* t);
  ~StepBinding();
  StepBinding(const StepBinding&) = delete;
  // n steps; false when the feeds need the general way (lists, other element types, copies).
  bool run(PyObject* feeds, int which, uint64_t n, ot_status& status, double& loss);

 private:
  bool fill(PyObject* feeds);
  void release();
  ot_trainer* trainer_;
  std::vector<PyObject*> names_;
  std::vector<Py_buffer> buffers_;
  std::vector<char> held_;
  std::vector<ot_array> arrays_;
  bool busy_ = false;
};
