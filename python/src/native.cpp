// The Python module onnxtrain._native: thin bindings over the public API.
#include <nanobind/nanobind.h>

#include "onnxtrain/onnxtrain.h"

NB_MODULE(_native, m) { m.def("version", &ot_version, "The library's version."); }
