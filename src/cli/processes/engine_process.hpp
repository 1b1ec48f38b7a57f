// `train --engine NAME[:DEVICE]`: the steps are made by a Python process
// (onnxtrain/engines/serve.py); the loop stays here. A crash there ends the run with an error; the
// last checkpoint is whole.
#pragma once
#include <memory>
#include <string>

#include "run/engine.hpp"

namespace onnxtrain::cli {

// Starts the process and waits until it is ready; an engine or device that is not there is an error
// that says what is.
std::unique_ptr<run::Engine> start_engine(const std::string& spec, int threads);

}  // namespace onnxtrain::cli
