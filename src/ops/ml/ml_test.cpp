// Gradients of the smooth operators of ai.onnx.ml; maps; bad attributes. Values are compared with
// onnxruntime in tests/conformance/test_ml_reference.py.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {
OpCase ml(const char* op, int version = 1) { return OpCase(op, version, std::string(kMlDomain)); }
// outputs are float32 whatever the input: differences are taken with a wide step
constexpr double kEps = 1e-2, kTol = 2e-3;
}  // namespace

TEST(Ml, Gradients) {
  std::vector<float> w = {1, -2, 0.5f, 3, 0.25f, -1};
  for (const char* post : {"NONE", "LOGISTIC", "SOFTMAX"})
    ml("LinearRegressor")
        .attr("coefficients", w)
        .attr("targets", int64_t(2))
        .attr("post_transform", std::string(post))
        .input(random_tensor({4, 3}))
        .check_grad({}, kEps, kTol);
  ml("Scaler")
      .attr("scale", std::vector<float>{2, -1, 3})
      .attr("offset", std::vector<float>{1})
      .input(random_tensor({2, 3}))
      .check_grad({}, kEps, kTol);
  for (const char* norm : {"MAX", "L1", "L2"})
    ml("Normalizer")
        .attr("norm", std::string(norm))
        .input(random_tensor({3, 4}, 0.3, 1))
        .check_grad({}, kEps, kTol);
  ml("Imputer")
      .attr("imputed_value_floats", std::vector<float>{5})
      .attr("replaced_value_float", 7.f)
      .input(random_tensor({2, 3}))
      .check_grad();
  ml("ArrayFeatureExtractor")
      .input(random_tensor({2, 5}))
      .constant(Tensor::vector<int64_t>({4, 0, 4}))
      .check_grad();
  ml("FeatureVectorizer")
      .attr("inputdimensions", std::vector<int64_t>{2, 1})
      .input(random_tensor({2, 3}))
      .input(random_tensor({2, 1}, -1, 1, 5))
      .check_grad({}, kEps, kTol);
}

TEST(Ml, BadAttributes) {
  auto refused = [](const OpCase& c) { EXPECT_THROW(c.run(), Error); };
  refused(ml("LinearRegressor")
              .attr("coefficients", std::vector<float>{1, 2})
              .input(random_tensor({2, 3})));
  refused(ml("Normalizer").attr("norm", std::string("L3")).input(random_tensor({2, 3})));
  refused(
      ml("ArrayFeatureExtractor").input(random_tensor({2, 3})).input(Tensor::vector<int64_t>({3})));
  refused(ml("SVMRegressor")
              .attr("coefficients", std::vector<float>{1})
              .attr("rho", std::vector<float>{1})
              .attr("n_supports", int64_t(1))
              .attr("support_vectors", std::vector<float>{1})
              .input(random_tensor({2, 3})));
  refused(ml("Scaler").attr("scale", std::vector<float>{1, 2}).input(random_tensor({2, 3})));
}

}  // namespace onnxtrain::testing
