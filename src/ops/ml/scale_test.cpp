// Values and gradients of Scaler, Normalizer, Binarizer and Imputer.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {
OpCase scale_op(const char* op, int version = 1) {
  return OpCase(op, version, std::string(kMlDomain));
}
}  // namespace

// Outputs are float32 whatever the input: differences are taken with a wide step.
TEST(MlScale, Gradients) {
  scale_op("Scaler")
      .attr("scale", std::vector<float>{2, -1, 3})
      .attr("offset", std::vector<float>{1})
      .input(random_tensor({2, 3}))
      .check_grad({}, 1e-2, 2e-3);
  for (const char* norm : {"MAX", "L1", "L2"})
    scale_op("Normalizer")
        .attr("norm", std::string(norm))
        .input(random_tensor({3, 4}, 0.3, 1))
        .check_grad({}, 1e-2, 2e-3);
  scale_op("Imputer")
      .attr("imputed_value_floats", std::vector<float>{5})
      .attr("replaced_value_float", 7.f)
      .input(random_tensor({2, 3}))
      .check_grad();
}

TEST(MlScale, Values) {
  scale_op("Scaler")
      .attr("scale", std::vector<float>{2, 10})
      .attr("offset", std::vector<float>{1, 3})
      .input(floats({1, 2, 3, 4}, {2, 2}))
      .expect(floats({0, -10, 4, 10}, {2, 2}));
  Tensor x = floats({3, -4, 0, 0}, {2, 2});
  auto norm = [&](const char* kind) {
    return scale_op("Normalizer").attr("norm", std::string(kind)).input(x);
  };
  norm("L2").expect(floats({0.6f, -0.8f, 0, 0}, {2, 2}));
  norm("L1").expect(floats({3 / 7.f, -4 / 7.f, 0, 0}, {2, 2}));
  scale_op("Binarizer")
      .attr("threshold", 0.5f)
      .input(floats({0.4f, 0.5f, 0.6f}))
      .expect(floats({0, 0, 1}));
  scale_op("Imputer")
      .attr("imputed_value_floats", std::vector<float>{8, 9})
      .attr("replaced_value_float", NAN)
      .input(floats({NAN, 2, 3, NAN}, {2, 2}))
      .expect(floats({8, 2, 3, 9}, {2, 2}));
}

TEST(MlScale, BadAttributes) {
  EXPECT_THROW(
      scale_op("Normalizer").attr("norm", std::string("L3")).input(random_tensor({2, 3})).run(),
      Error);
  EXPECT_THROW(
      scale_op("Scaler").attr("scale", std::vector<float>{1, 2}).input(random_tensor({2, 3})).run(),
      Error);
}

}  // namespace onnxtrain::testing
