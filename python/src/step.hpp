// Trainer.step without detours: arrays of a dict straight to the library's slots.
#pragma once
#include <nanobind/nanobind.h>

#include <vector>

#include "onnxtrain/onnxtrain.h"

// Names of a trainer's inputs as interned strings, and what a call needs; made once per trainer.
class StepBinding {
 public:
  explicit StepBinding(const ot_trainer* t);
  ~StepBinding();
  StepBinding(const StepBinding&) = delete;
  StepBinding& operator=(const StepBinding&) = delete;

  // The arrays of one call, held while it lives. Needs the GIL at both ends.
  class Use {
   public:
    Use(StepBinding& b, PyObject* feeds);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    // false: the feeds need the general way (lists, other element types, copies), or another thread
    // is stepping this trainer.
    bool ready() const { return ready_; }
    const ot_array* arrays() const { return b_.arrays_.data(); }

   private:
    bool fill(PyObject* feeds);
    StepBinding& b_;
    bool owner_, ready_;
  };

 private:
  std::vector<PyObject*> names_;
  std::vector<Py_buffer> buffers_;
  std::vector<char> held_;
  std::vector<ot_array> arrays_;
  bool busy_ = false;
};
