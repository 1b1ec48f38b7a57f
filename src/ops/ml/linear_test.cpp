// Values and gradients of LinearRegressor and LinearClassifier.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {
OpCase linear_op(const char* op, int version = 1) {
  return OpCase(op, version, std::string(kMlDomain));
}
}  // namespace

// Outputs are float32 whatever the input: differences are taken with a wide step.
TEST(MlLinear, RegressorGradients) {
  std::vector<float> w = {1, -2, 0.5f, 3, 0.25f, -1};
  for (const char* post : {"NONE", "LOGISTIC", "SOFTMAX"})
    linear_op("LinearRegressor")
        .attr("coefficients", w)
        .attr("targets", int64_t(2))
        .attr("post_transform", std::string(post))
        .input(random_tensor({4, 3}))
        .check_grad({}, 1e-2, 2e-3);
}

TEST(MlLinear, Values) {
  linear_op("LinearRegressor")
      .attr("coefficients", std::vector<float>{1, 2, 3, 4})
      .attr("intercepts", std::vector<float>{10, 20})
      .attr("targets", int64_t(2))
      .input(floats({1, 1, 2, 0}, {2, 2}))
      .expect(floats({13, 27, 12, 26}, {2, 2}));
  linear_op("LinearClassifier")
      .outputs(2)
      .attr("coefficients", std::vector<float>{1, 0, 0, 1, -1, -1})
      .attr("intercepts", std::vector<float>{0, 0, 1})
      .attr("classlabels_ints", Ints{7, 8, 9})
      .input(floats({2, 1, -3, 0}, {2, 2}))
      .expect(ints({7, 9}), 0)
      .expect(floats({2, 1, -2, -3, 0, 4}, {2, 3}), 1);
}

TEST(MlLinear, ClassifierGradients) {
  for (const char* post : {"NONE", "LOGISTIC", "SOFTMAX"})
    linear_op("LinearClassifier")
        .outputs(2)
        .attr("coefficients", std::vector<float>{1, 0.5f, -1, 0.25f, -0.5f, 2})
        .attr("intercepts", std::vector<float>{0.1f, 0.2f, 0.3f})
        .attr("classlabels_ints", Ints{7, 8, 9})
        .attr("post_transform", std::string(post))
        .input(random_tensor({3, 2}))
        .check_grad({}, 1e-2, 2e-3);
}

TEST(MlLinear, BadAttributes) {
  EXPECT_THROW(linear_op("LinearRegressor")
                   .attr("coefficients", std::vector<float>{1, 2})
                   .input(random_tensor({2, 3}))
                   .run(),
               Error);
}

}  // namespace onnxtrain::testing
