// Values and gradients of MatMul, FusedMatMul and Gemm.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(MatMul, Values) {
  Tensor a = Tensor::vector<float>({1, 2, 3, 4}).reshaped({2, 2}),
         v = Tensor::vector<float>({1, 10});
  OpCase("MatMul", 13)
      .input(a)
      .input(a)
      .expect(Tensor::vector<float>({7, 10, 15, 22}).reshaped({2, 2}));
  OpCase("MatMul", 13).input(a).input(v).expect(Tensor::vector<float>({21, 43}));
  OpCase("MatMul", 13).input(v).input(a).expect(Tensor::vector<float>({31, 42}));
  OpCase("MatMul", 13).input(v).input(v).expect(Tensor::scalar<float>(101));
  Tensor i = Tensor::vector<int32_t>({1, 2, 3, 4}).reshaped({2, 2});
  OpCase("MatMul", 13)
      .input(i)
      .input(i)
      .expect(Tensor::vector<int32_t>({7, 10, 15, 22}).reshaped({2, 2}));
  OpCase("MatMul", 13)
      .input(Tensor(DType::kFloat, {2, 0}))
      .input(Tensor(DType::kFloat, {0, 1}))
      .expect(Tensor::vector<float>({0, 0}).reshaped({2, 1}));
}

TEST(MatMul, Gradients) {
  struct {
    Shape a, b;
  } cases[] = {{{2, 3}, {3, 4}},
               {{3}, {3, 4}},
               {{2, 3}, {3}},
               {{3}, {3}},
               {{2, 2, 3}, {3, 4}},
               {{2, 2, 3}, {2, 3, 2}},
               {{2, 1, 2, 3}, {3, 3, 2}},
               {{2, 3}, {2, 3, 2}},
               {{2, 2, 3}, {3}},
               {{3}, {2, 3, 2}},
               {{0, 3}, {3, 2}},
               {{1, 2, 3}, {2, 3, 1}}};
  for (const auto& c : cases)
    OpCase("MatMul", 13).input(random_tensor(c.a)).input(random_tensor(c.b, -1, 1, 2)).check_grad();
}

TEST(FusedMatMul, Gradients) {
  for (int64_t ta : {0, 1})
    for (int64_t tb : {0, 1})
      for (bool batched : {false, true}) {
        Shape a = ta ? Shape{3, 2} : Shape{2, 3}, b = tb ? Shape{4, 3} : Shape{3, 4};
        if (batched) a.insert(a.begin(), 2);
        for (bool both : {false, true}) {
          if (both) b.insert(b.begin(), 2);
          OpCase("FusedMatMul", 1, std::string(kOwnDomain))
              .attr("transA", ta)
              .attr("transB", tb)
              .attr("alpha", 0.5f)
              .input(random_tensor(a))
              .input(random_tensor(b, -1, 1, 2))
              .check_grad();
          if (!batched) break;
        }
      }
}

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
      for (Shape c : {Shape{}, Shape{4}, Shape{2, 1}, Shape{2, 4}, Shape{1, 4}})
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
