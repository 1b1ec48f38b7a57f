// Values and gradients of Gemm.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Gemm, Values) {
  Tensor a = Tensor::vector<float>({1, 2, 3, 4}).reshaped({2, 2});
  Tensor want = Tensor::vector<float>({14.5f, 21, 30.5f, 45}).reshaped({2, 2});
  OpCase("Gemm", 13)
      .input(a)
      .input(a)
      .input(Tensor::vector<float>({1, 2}))
      .attr("alpha", 2.0f)
      .attr("beta", 0.5f)
      .expect(want);
  OpCase("Gemm", 13)
      .input(a)
      .input(a)
      .input(Tensor::vector<float>({1, 2}))
      .expect(Tensor::vector<float>({8, 12, 16, 24}).reshaped({2, 2}));
  OpCase("Gemm", 13)
      .input(a)
      .input(a)
      .input(Tensor::vector<float>({1, 2}).reshaped({2, 1}))
      .expect(Tensor::vector<float>({8, 11, 17, 24}).reshaped({2, 2}));
  OpCase("Gemm", 13)
      .input(a)
      .input(a)
      .input(Tensor::scalar<float>(1))
      .expect(Tensor::vector<float>({8, 11, 16, 23}).reshaped({2, 2}));
  OpCase("Gemm", 13)
      .input(Tensor(DType::kFloat, {2, 0}))
      .input(Tensor(DType::kFloat, {0, 2}))
      .input(a)
      .expect(a);
}

TEST(Gemm, Gradients) {
  for (int64_t ta : {0, 1})
    for (int64_t tb : {0, 1})
      for (const Shape& c : {Shape{}, Shape{4}, Shape{2, 1}, Shape{2, 4}, Shape{1, 4}})
        OpCase("Gemm", 13)
            .attr("transA", ta)
            .attr("transB", tb)
            .attr("alpha", 0.5f)
            .attr("beta", 1.5f)
            .input(random_tensor(ta ? Shape{3, 2} : Shape{2, 3}))
            .input(random_tensor(tb ? Shape{4, 3} : Shape{3, 4}, -1, 1, 2))
            .input(random_tensor(c, -1, 1, 3))
            .check_grad();
  OpCase("Gemm", 11)
      .input(random_tensor({2, 3}))
      .input(random_tensor({3, 4}, -1, 1, 2))
      .check_grad();
}

}  // namespace onnxtrain::testing
