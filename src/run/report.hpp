// report.html of a run: one file that needs no network. Curves as inline SVG, the table of epochs,
// the confusion matrix, the slowest operators, the data card and the settings.
#pragma once
#include <string>

#include "run/run_folder.hpp"

namespace onnxtrain {

std::string run_report(const RunFolder& run);

}  // namespace onnxtrain
