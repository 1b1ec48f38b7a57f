// Softmax family and the losses over it.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Softmax, Values) {
  Tensor x = Tensor::vector<float>({0, 0, 1000, 1000}).reshaped({2, 2});
  OpCase("Softmax", 13)
      .input(x)
      .expect(Tensor::vector<float>({.5f, .5f, .5f, .5f}).reshaped({2, 2}));
  OpCase("Softmax", 13)
      .attr("axis", int64_t(0))
      .input(x)
      .expect(Tensor::vector<float>({0, 0, 1, 1}).reshaped({2, 2}));
  OpCase("Softmax", 11)
      .attr("axis", int64_t(0))
      .input(x)
      .expect(Tensor::vector<float>({0, 0, .5f, .5f}).reshaped({2, 2}));
  OpCase("Hardmax", 13)
      .input(Tensor::vector<float>({1, 3, 3, 2}))
      .expect(Tensor::vector<float>({0, 1, 0, 0}));
}

TEST(Softmax, Gradients) {
  for (const char* op : {"Softmax", "LogSoftmax"})
    for (int version : {11, 13})
      for (int64_t axis : {0, 1, 2, -1})
        OpCase(op, version).attr("axis", axis).input(random_tensor({2, 3, 4})).check_grad();
  OpCase("Softmax", 13).input(Tensor(DType::kFloat, {0, 3})).check_grad();
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
