// Values and gradients of Einsum.
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

}  // namespace onnxtrain::testing
