// Einsum, Det, CumSum, CumProd, PRelu, quantized GEMMs.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Einsum, ValuesAndGradients) {
  struct {
    const char* equation;
    std::vector<Shape> shapes;
  } cases[] = {{"ij,jk->ik", {{2, 3}, {3, 4}}},
               {"ij,jk", {{2, 3}, {3, 4}}},
               {"bij,bjk->bik", {{2, 2, 3}, {2, 3, 2}}},
               {"...ij,...jk->...ik", {{2, 1, 2, 3}, {3, 3, 2}}},
               {"ij->ji", {{2, 3}}},
               {"ij->i", {{2, 3}}},
               {"ii->i", {{3, 3}}},
               {"ii", {{3, 3}}},
               {"...ii->...i", {{2, 3, 3}}},
               {"i,i", {{3}, {3}}},
               {"i,j->ij", {{3}, {2}}},
               {"ij,kj->ki", {{2, 3}, {4, 3}}},
               {"bhqd,bhkd->bhqk", {{1, 2, 3, 2}, {1, 2, 4, 2}}},
               {"bqhd,bkhd->bhqk", {{1, 3, 2, 2}, {1, 4, 2, 2}}},
               {"ij,jk,kl->il", {{2, 3}, {3, 2}, {2, 2}}},
               {"ij,k->i", {{2, 3}, {4}}},
               {" a b , b -> a ", {{2, 3}, {3}}},
               {"ij,ij->ij", {{2, 3}, {2, 3}}},
               {"ijj,k->ik", {{2, 3, 3}, {2}}},
               {"->", {{}}}};
  for (const auto& c : cases) {
    OpCase o("Einsum", 12);
    o.attr("equation", std::string(c.equation));
    uint64_t seed = 1;
    for (const Shape& s : c.shapes) o.input(random_tensor(s, -1, 1, seed++));
    o.check_grad();
  }
  Tensor a = Tensor::vector<float>({1, 2, 3, 4}).reshaped({2, 2});
  OpCase("Einsum", 12)
      .attr("equation", std::string("ij,jk->ki"))
      .input(a)
      .input(a)
      .expect(Tensor::vector<float>({7, 15, 10, 22}).reshaped({2, 2}));
  for (const char* bad : {"ij,jk->ii", "ij", "i1,jk->ik", "ij,jk->iz", "i..j,jk->ik"})
    EXPECT_THROW(OpCase("Einsum", 12).attr("equation", std::string(bad)).input(a).input(a).run(),
                 Error)
        << bad;
}

TEST(Det, ValuesAndGradients) {
  OpCase("Det", 22)
      .input(Tensor::vector<float>({1, 2, 3, 4}).reshaped({2, 2}))
      .expect(Tensor::scalar<float>(-2));
  OpCase("Det", 22).input(random_tensor({2, 3, 3})).check_grad();
  OpCase("Det", 22).input(random_tensor({1, 1})).check_grad();
  OpCase("Det", 22)
      .input(Tensor::vector<float>({1, 2, 3, 2, 4, 6, 1, 0, 1}).reshaped({3, 3}))
      .check_grad();
}

TEST(Cumulative, ValuesAndGradients) {
  Tensor x = Tensor::vector<float>({1, 2, 3}), axis = Tensor::scalar<int64_t>(0);
  OpCase("CumSum", 14).input(x).constant(axis).expect(Tensor::vector<float>({1, 3, 6}));
  OpCase("CumSum", 14)
      .attr("exclusive", int64_t(1))
      .attr("reverse", int64_t(1))
      .input(x)
      .input(axis)
      .expect(Tensor::vector<float>({5, 3, 0}));
  for (const char* op : {"CumSum", "CumProd"})
    for (int64_t exclusive : {0, 1})
      for (int64_t reverse : {0, 1})
        for (int64_t a : {0, -1}) {
          OpCase(op, 26)
              .attr("exclusive", exclusive)
              .attr("reverse", reverse)
              .input(random_tensor({3, 4}, 0.5, 2))
              .constant(Tensor::scalar<int64_t>(a))
              .check_grad();
          OpCase(op, 26)
              .attr("exclusive", exclusive)
              .attr("reverse", reverse)
              .input(Tensor::vector<float>({2, 0, 3, 0, 5, 1, 2, 0, 4}).reshaped({3, 3}))
              .constant(Tensor::scalar<int32_t>(int32_t(a)))
              .check_grad();
        }
}

TEST(PRelu, Gradients) {
  Tensor x = Tensor::vector<float>({-2, -1, -0.5f, 0.5f, 1, 2, 3, -3, -4, 4, 0.3f, -0.3f})
                 .reshaped({2, 3, 2});
  for (Shape s : {Shape{}, Shape{1}, Shape{2}, Shape{3, 1}, Shape{2, 3, 2}, Shape{1, 3, 1}})
    OpCase("PRelu", 16).input(x).input(random_tensor(s, 0.1, 1)).check_grad();
  OpCase("PRelu", 6).input(x).input(random_tensor({3}, 0.1, 1)).check_grad();
  OpCase("PRelu", 6).input(x).input(random_tensor({1}, 0.1, 1)).check_grad();
}

TEST(MatMulInteger, Values) {
  Tensor a = Tensor::vector<uint8_t>({11, 7, 3, 10, 6, 2}).reshaped({2, 3}),
         b = Tensor::vector<uint8_t>({1, 4, 2, 5, 3, 6}).reshaped({3, 2});
  OpCase("MatMulInteger", 10)
      .input(a)
      .input(b)
      .input(Tensor::vector<uint8_t>({12}))
      .input(Tensor::vector<uint8_t>({0}))
      .expect(Tensor::vector<int32_t>({-38, -83, -44, -98}).reshaped({2, 2}));
}

}  // namespace onnxtrain::testing
