// Attributes of SVMRegressor and SVMClassifier, checked.
#include "ops/ml/svm_attributes.hpp"

#include <algorithm>

namespace onnxtrain::ops {

namespace {

[[noreturn]] void bad(const std::string& what) { model_error("OT1161", what); }

Svm common(const Node& n, const TensorType& x) {
  check_number(x.dtype, n.op.c_str());
  Svm s;
  s.x = rows_of(x.shape, n.op.c_str());
  std::string k = n.s("kernel_type", "LINEAR");
  if (k == "LINEAR")
    s.kernel = KernelType::kLinear;
  else if (k == "POLY")
    s.kernel = KernelType::kPoly;
  else if (k == "RBF")
    s.kernel = KernelType::kRbf;
  else if (k == "SIGMOID")
    s.kernel = KernelType::kSigmoid;
  else
    bad(cat("kernel_type '", k, "' is unknown"));
  std::vector<float> params = n.floats("kernel_params");
  if (!params.empty()) {
    if (params.size() < 3) bad(cat("kernel_params has ", params.size(), " entries, expected 3"));
    s.gamma = params[0];
    s.coef0 = params[1];
    s.degree = params[2];
  }
  s.coefficients = n.floats("coefficients");
  s.vectors = n.floats("support_vectors");
  s.rho = n.floats("rho");
  s.post = post_of(n);
  if (s.coefficients.empty() || s.rho.empty()) bad("coefficients or rho are missing");
  s.all_positive = *std::min_element(s.coefficients.begin(), s.coefficients.end()) >= 0;
  return s;
}

void check_vectors(const Svm& s) {
  if (s.supports > 0 && (int64_t(s.vectors.size()) % s.supports ||
                         int64_t(s.vectors.size()) / s.supports != s.x.features))
    bad(cat(s.vectors.size(), " numbers in support_vectors do not make ", s.supports,
            " vectors of ", s.x.features));
}

}  // namespace

Svm svm_regressor_of(const Node& n, const TensorType& x) {
  Svm s = common(n, x);
  s.supports = n.i("n_supports", 0);
  s.one_class = n.i("one_class", 0) != 0;
  if (s.supports < 0) bad("n_supports is negative");
  check_vectors(s);
  if (s.supports == 0) s.kernel = KernelType::kLinear;
  int64_t need = s.supports > 0 ? s.supports : s.x.features;
  if (int64_t(s.coefficients.size()) < need)
    bad(cat(s.coefficients.size(), " coefficients, expected ", need));
  return s;
}

Svm svm_classifier_of(const Node& n, const TensorType& x) {
  Svm s = common(n, x);
  s.labels = labels_of(n, "classlabels_ints", "classlabels_strings");
  s.classes = std::max<int64_t>(1, s.labels.count());
  s.per_class = n.ints("vectors_per_class");
  for (int64_t v : s.per_class) {
    if (v < 0 || v > (int64_t(1) << 40)) bad(cat("vectors_per_class has ", v));
    s.starts.push_back(s.supports);
    s.supports += v;
  }
  check_vectors(s);
  s.prob_a = n.floats("prob_a");
  s.prob_b = n.floats("prob_b");
  if (s.supports == 0) {
    s.kernel = KernelType::kLinear;
    if (int64_t(s.coefficients.size()) != s.classes * s.x.features)
      bad(cat(s.coefficients.size(), " coefficients for ", s.classes, " classes and ", s.x.features,
              " features"));
    return s;
  }
  int64_t pairs = s.classes * (s.classes - 1) / 2;
  if (int64_t(s.per_class.size()) != s.classes)
    bad("vectors_per_class has not one entry per class");
  if (int64_t(s.coefficients.size()) != (s.classes - 1) * s.supports)
    bad(cat(s.coefficients.size(), " coefficients for ", s.classes, " classes and ", s.supports,
            " support vectors"));
  if (int64_t(s.rho.size()) < pairs) bad(cat(s.rho.size(), " entries in rho, expected ", pairs));
  if (!s.prob_a.empty() && (int64_t(s.prob_a.size()) < pairs || int64_t(s.prob_b.size()) < pairs))
    bad("prob_a and prob_b have not one entry per pair of classes");
  return s;
}

namespace {

int64_t score_count(const Svm& s) {
  if (s.supports == 0 || !s.prob_a.empty()) return s.classes;
  return s.classes * (s.classes - 1) / 2;
}
}  // namespace

int64_t svm_columns(const Svm& s) {
  int64_t n = score_count(s);
  return n == 1 && s.rho.size() == 1 && s.labels.count() == 2 && s.post != Post::kProbit ? 2 : n;
}

}  // namespace onnxtrain::ops
