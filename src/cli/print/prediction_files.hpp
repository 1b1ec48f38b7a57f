// Predictions as csv, npz, npy and JSON.
#pragma once
#include <string>

#include "run/predict.hpp"

namespace onnxtrain::cli {

// A header, then one line per row: the file of an image, the predicted class when there are
// classes, then the columns of every output. Those of the main output are named by class; those of
// others begin with the output's name.
std::string csv_text(const run::Predictions& p, char separator);

// {"rows": 2, "outputs": {"logits": [[...]]}, "prediction": [...], "classes": [...]}
std::string json_text(const run::Predictions& p);
// The same without the values: shapes, and where they were saved.
std::string json_summary(const run::Predictions& p, const std::string& saved);

// One array per output; texts beside them: "file" and "prediction", where no output is called so.
void write_predictions_npz(const std::string& path, const run::Predictions& p);

}  // namespace onnxtrain::cli
