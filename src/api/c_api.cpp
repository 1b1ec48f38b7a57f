// The C API over the inner library.
#include "core/version.hpp"
#include "onnxtrain/onnxtrain.h"

const char* ot_version(void) { return onnxtrain::version(); }
