// An engine that is a Python object: begin(model, step), step(feeds) -> loss, state() -> [(name,
// value)], undo() -> bool, evaluate(feeds) -> (why not or None, [(name, value)])
// (onnxtrain/engines/driver.py).
#pragma once
#include "native.hpp"

namespace otpy {

struct PyEngine {
  nb::object engine;
  std::string text;  // of the last failure
  ot_engine functions();
};

}  // namespace otpy
