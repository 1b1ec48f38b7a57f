// Values and gradients of SVMRegressor and SVMClassifier.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {
OpCase svm_op(const char* op, int version = 1) {
  return OpCase(op, version, std::string(kMlDomain));
}
}  // namespace

TEST(Svm, RegressorValues) {
  // sum of coefficient * <vector, x> + rho
  svm_op("SVMRegressor")
      .attr("coefficients", std::vector<float>{2, -1})
      .attr("support_vectors", std::vector<float>{1, 0, 0, 3})
      .attr("n_supports", int64_t(2))
      .attr("rho", std::vector<float>{5})
      .input(floats({1, 1, 2, 0}, {2, 2}))
      .expect(floats({4, 9}, {2, 1}));
  // exp(-gamma |x - vector|^2)
  svm_op("SVMRegressor")
      .attr("kernel_type", std::string("RBF"))
      .attr("kernel_params", std::vector<float>{0.5f, 0, 0})
      .attr("coefficients", std::vector<float>{2})
      .attr("support_vectors", std::vector<float>{1, 1})
      .attr("n_supports", int64_t(1))
      .attr("rho", std::vector<float>{1})
      .input(floats({1, 1, 1, 3}, {2, 2}))
      .expect(floats({3, 1 + 2 * std::exp(-2.f)}, {2, 1}));
}

TEST(Svm, ClassifierValues) {
  // no support vectors: a linear score for each class
  svm_op("SVMClassifier")
      .outputs(2)
      .attr("coefficients", std::vector<float>{1, 0, 0, 1, -1, -1})
      .attr("rho", std::vector<float>{0})
      .attr("classlabels_ints", Ints{4, 5, 6})
      .input(floats({3, 1, -2, -3}, {2, 2}))
      .expect(floats({3, 1, -4, -2, -3, 5}, {2, 3}), 1);
}

TEST(Svm, RegressorGradients) {
  for (const char* kernel : {"LINEAR", "POLY", "RBF", "SIGMOID"})
    svm_op("SVMRegressor")
        .attr("kernel_type", std::string(kernel))
        .attr("kernel_params", std::vector<float>{0.5f, 0.25f, 2})
        .attr("coefficients", std::vector<float>{2, -1})
        .attr("support_vectors", std::vector<float>{1, 0.5f, -0.25f, 0.75f})
        .attr("n_supports", int64_t(2))
        .attr("rho", std::vector<float>{0.5f})
        .input(random_tensor({3, 2}))
        .check_grad({}, 1e-2, 2e-3);
}

TEST(Svm, BadAttributes) {
  EXPECT_THROW(svm_op("SVMRegressor")
                   .attr("coefficients", std::vector<float>{1})
                   .attr("rho", std::vector<float>{1})
                   .attr("n_supports", int64_t(1))
                   .attr("support_vectors", std::vector<float>{1})
                   .input(random_tensor({2, 3}))
                   .run(),
               Error);
}

}  // namespace onnxtrain::testing
