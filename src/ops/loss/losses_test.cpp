// Values and gradients of SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Loss, Values) {
  const float l = std::log(2.f);
  Tensor even = floats({0, 0, 3, 3}, {2, 2});
  OpCase("SoftmaxCrossEntropyLoss", 13)
      .input(even)
      .input(ints({0, 1}))
      .expect(Tensor::scalar<float>(l));
  OpCase("SoftmaxCrossEntropyLoss", 13)
      .attr("reduction", std::string("none"))
      .input(even)
      .input(ints({0, 1}))
      .expect(floats({l, l}));
  Tensor x = floats({1, 2, 3, 5}, {2, 2}), w = floats({1, 3});
  OpCase("NegativeLogLikelihoodLoss", 13)
      .input(x)
      .input(ints({1, 0}))
      .expect(Tensor::scalar<float>(-2.5f));
  // weights 3 and 1: (-2 * 3 - 3) / 4
  OpCase("NegativeLogLikelihoodLoss", 13)
      .input(x)
      .input(ints({1, 0}))
      .input(w)
      .expect(Tensor::scalar<float>(-2.25f));
}

TEST(Loss, BothAtOnce) {
  // the gradient of the mean: (p - target) / rows, times dloss
  OpCase("SoftmaxCrossEntropyBoth", 1, std::string(kOwnDomain))
      .outputs(2)
      .attr("dloss", 4.0f)
      .input(floats({0, 0, 3, 3}, {2, 2}))
      .input(ints({0, 1}))
      .expect(Tensor::scalar<float>(std::log(2.f)), 0)
      .expect(floats({-1, 1, 1, -1}, {2, 2}), 1);
}

TEST(Loss, Gradients) {
  Tensor w = Tensor::vector<float>({0.5f, 2, 1});
  for (const char* op : {"SoftmaxCrossEntropyLoss", "NegativeLogLikelihoodLoss"})
    for (const char* reduction : {"none", "sum", "mean"}) {
      auto base = [&] { return OpCase(op, 13).attr("reduction", std::string(reduction)); };
      base().input(random_tensor({4, 3})).input(ints({0, 2, 1, 2})).check_grad();
      base().input(random_tensor({4, 3})).input(ints({0, 2, 1, 2})).constant(w).check_grad();
      base()
          .attr("ignore_index", int64_t(2))
          .input(random_tensor({4, 3}))
          .input(ints({0, 2, 1, 2}))
          .constant(w)
          .check_grad();
      base()
          .attr("ignore_index", int64_t(-1))
          .input(random_tensor({2, 3, 2}))
          .input(ints({0, 2, -1, 2}).reshaped({2, 2}))
          .check_grad();
      base()
          .input(random_tensor({2, 3, 1, 2}))
          .input(random_ints({2, 1, 2}, 0, 3))
          .constant(w)
          .check_grad();
      base()
          .attr("ignore_index", int64_t(1))
          .input(random_tensor({2, 3}))
          .input(ints({1, 1}))
          .check_grad();
    }
  OpCase("SoftmaxCrossEntropyLoss", 13)
      .outputs(2)
      .input(random_tensor({4, 3}))
      .input(ints({0, 2, 1, 2}))
      .check_grad();
  OpCase("SoftmaxCrossEntropyLoss", 13)
      .outputs(2)
      .skip_output(0)
      .input(random_tensor({4, 3}))
      .input(ints({0, 2, 1, 2}))
      .check_grad();
}

TEST(Loss, EverythingIgnoredIsZero) {
  OpCase("SoftmaxCrossEntropyLoss", 13)
      .attr("ignore_index", int64_t(1))
      .input(random_tensor({2, 3}))
      .input(ints({1, 1}))
      .expect(Tensor::scalar<float>(0));
}

TEST(Loss, BadLabelIsADataError) {
  for (int64_t bad : {-1, 3}) {
    try {
      OpCase("SoftmaxCrossEntropyLoss", 13)
          .input(random_tensor({2, 3}))
          .input(ints({0, bad}))
          .run();
      FAIL();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "OT2104");
    }
  }
}

}  // namespace onnxtrain::testing
