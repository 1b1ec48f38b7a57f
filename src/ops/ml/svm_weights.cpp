// The weights of support vector machines that can be trained: coefficients, rho, support vectors.
#include <algorithm>

#include "ops/ml/svm_attributes.hpp"

namespace onnxtrain::ops {

namespace {

Tensor table(const std::vector<float>& v, int64_t rows) {
  return Tensor::vector<float>(v).reshaped({rows, int64_t(v.size()) / rows});
}

}  // namespace

std::vector<std::pair<std::string, Tensor>> read_svm_regressor(const Node& n, int64_t features) {
  std::vector<float> w = n.floats("coefficients"), rho = n.floats("rho"),
                     vectors = n.floats("support_vectors");
  const int64_t supports = n.i("n_supports", 0), count = supports > 0 ? supports : features;
  if (n.i("one_class", 0) != 0 || rho.empty()) return {};  // a step: no gradient
  if (count < 1 || int64_t(w.size()) != count) return {};
  if (supports > 0 && (vectors.empty() || int64_t(vectors.size()) % supports)) return {};
  std::vector<std::pair<std::string, Tensor>> out = {{"coefficients", table(w, count)},
                                                     {"rho", table({rho[0]}, 1)}};
  if (supports > 0) out.emplace_back("support_vectors", table(vectors, supports));
  return out;
}

std::vector<std::pair<std::string, Tensor>> read_svm_classifier(const Node& n, int64_t) {
  std::vector<float> w = n.floats("coefficients"), rho = n.floats("rho"),
                     vectors = n.floats("support_vectors");
  const int64_t labels = labels_of(n, "classlabels_ints", "classlabels_strings").count();
  int64_t supports = 0;
  for (int64_t v : n.ints("vectors_per_class")) supports += v;
  // probabilities by coupling pairs stay as they are; so do labels that follow other rules
  if (!n.floats("prob_a").empty() || labels < 2 || rho.empty() || w.empty()) return {};
  if (rho.size() == 1 && std::all_of(w.begin(), w.end(), [](float f) { return f >= 0; })) return {};
  const int64_t pairs = labels * (labels - 1) / 2;
  if (supports == 0) {
    if (rho.size() == 1 && labels == 2) return {};
    if (int64_t(w.size()) % labels) return {};
    return {{"coefficients", table(w, labels)}, {"rho", table({rho[0]}, 1)}};
  }
  if (int64_t(w.size()) != (labels - 1) * supports || int64_t(rho.size()) < pairs) return {};
  if (vectors.empty() || int64_t(vectors.size()) % supports) return {};
  rho.resize(size_t(pairs));
  return {{"coefficients", table(w, labels - 1)},
          {"rho", table(rho, 1)},
          {"support_vectors", table(vectors, supports)}};
}

void write_svm(Node& n, const std::vector<Tensor>& values) {
  const char* names[] = {"coefficients", "rho", "support_vectors"};
  for (size_t k = 0; k < values.size() && k < 3; ++k) {
    std::vector<float> v = n.floats(names[k]);  // rho may have more entries than are read
    const float* trained = values[k].as<float>();
    const size_t count = std::min(v.size(), size_t(values[k].size()));
    std::copy(trained, trained + count, v.begin());
    n.attrs[names[k]] = std::move(v);
  }
  std::vector<float> w = n.floats("coefficients");
  if (n.op == "SVMClassifier" && n.floats("rho").size() == 1 &&
      std::all_of(w.begin(), w.end(), [](float f) { return f >= 0; }))
    model_error("OT1169",
                cat(n.label(),
                    ": no trained coefficient is negative, and the operator gives such "
                    "coefficients another meaning"),
                "train with a smaller learning rate");
}

}  // namespace onnxtrain::ops
