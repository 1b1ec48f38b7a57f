// report.html of a run: one file that needs no network. Curves as inline SVG, the table of epochs,
// the confusion matrix, the slowest operators, the data card and the settings.
#pragma once
#include <string>

#include "run/folder.hpp"

namespace onnxtrain::run {

std::string run_report(const Folder& run);

}  // namespace onnxtrain::run
