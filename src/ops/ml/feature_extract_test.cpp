// Values and gradients of ArrayFeatureExtractor and FeatureVectorizer.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {
OpCase feature_op(const char* op, int version = 1) {
  return OpCase(op, version, std::string(kMlDomain));
}
}  // namespace

// Outputs are float32 whatever the input: differences are taken with a wide step.
TEST(MlFeatures, Gradients) {
  feature_op("ArrayFeatureExtractor")
      .input(random_tensor({2, 5}))
      .constant(Tensor::vector<int64_t>({4, 0, 4}))
      .check_grad();
  feature_op("FeatureVectorizer")
      .attr("inputdimensions", std::vector<int64_t>{2, 1})
      .input(random_tensor({2, 3}))
      .input(random_tensor({2, 1}, -1, 1, 5))
      .check_grad({}, 1e-2, 2e-3);
}

TEST(MlFeatures, Values) {
  feature_op("ArrayFeatureExtractor")
      .input(floats({1, 2, 3, 4, 5, 6}, {2, 3}))
      .input(ints({2, 0}))
      .expect(floats({3, 1, 6, 4}, {2, 2}));
  feature_op("FeatureVectorizer")
      .attr("inputdimensions", Ints{2, 1})
      .input(floats({1, 2, 3, 4}, {2, 2}))
      .input(floats({5, 6}, {2, 1}))
      .expect(floats({1, 2, 5, 3, 4, 6}, {2, 3}));
  EXPECT_THROW(
      feature_op("ArrayFeatureExtractor").input(random_tensor({2, 3})).input(ints({3})).run(),
      Error);
}

}  // namespace onnxtrain::testing
