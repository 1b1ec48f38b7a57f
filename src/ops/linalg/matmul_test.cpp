// Values and gradients of MatMul and FusedMatMul.
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

TEST(FusedMatMul, Values) {
  Tensor a = floats({1, 2, 3, 4}, {2, 2}), b = floats({1, 0, 1, 1}, {2, 2});
  OpCase("FusedMatMul", 1, std::string(kOwnDomain))
      .attr("transA", int64_t(1))
      .attr("alpha", 2.0f)
      .input(a)
      .input(b)
      .expect(floats({8, 6, 12, 8}, {2, 2}));
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

}  // namespace onnxtrain::testing
