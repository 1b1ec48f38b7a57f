// Scores of classes become probabilities.
#include <algorithm>
#include <cmath>

#include "run/predict.hpp"

namespace onnxtrain::run {

namespace {

void to_probabilities(PredictedOutput& o) {
  if (o.to_probabilities == "none") return;
  std::vector<double> v = o.rows.to_doubles();
  const int64_t rows = o.rows.rank() ? o.rows.shape()[0] : 1;
  const size_t width = rows > 0 ? v.size() / size_t(rows) : 0;
  for (size_t at = 0; at < v.size(); at += width) {
    if (o.to_probabilities == "sigmoid") {
      for (size_t k = at; k < at + width; ++k) v[k] = 1 / (1 + std::exp(-v[k]));
      continue;
    }
    const double most = *std::max_element(v.begin() + long(at), v.begin() + long(at + width));
    double sum = 0;
    for (size_t k = at; k < at + width; ++k) sum += v[k] = std::exp(v[k] - most);
    for (size_t k = at; k < at + width; ++k) v[k] /= sum;
  }
  Tensor out(DType::kFloat, o.rows.shape());
  std::transform(v.begin(), v.end(), out.as<float>(), [](double x) { return float(x); });
  o.rows = std::move(out);
  if (o.threshold) o.threshold = 0.5;
}

}  // namespace

void make_probabilities(Predictions& p) {
  bool any = false;
  for (PredictedOutput& o : p.outputs) {
    if (o.to_probabilities.empty() || !dtype_is_float(o.rows.dtype())) continue;
    to_probabilities(o);
    any = true;
  }
  if (!any)
    usage_error("OT0038",
                cat("output '", p.outputs[p.main].name,
                    "' holds no scores of classes: --proba does not apply"),
                "remove --proba: the numbers are written as they are");
}

}  // namespace onnxtrain::run
