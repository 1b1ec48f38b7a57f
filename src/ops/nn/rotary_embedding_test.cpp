// RotaryEmbedding: gradients in all forms; values are in the ONNX suite.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(RotaryEmbedding, Gradients) {
  Tensor ids = Tensor::vector<int64_t>({0, 3, 2, 1, 1, 4}).reshaped({2, 3});
  for (int64_t interleaved : {0, 1})
    for (int64_t rotated : {0, 2}) {
      int64_t half = rotated ? rotated / 2 : 2;
      auto with = [&](OpCase c) {
        return c.attr("interleaved", interleaved).attr("rotary_embedding_dim", rotated);
      };
      with(OpCase("RotaryEmbedding", 23))
          .input(random_tensor({2, 2, 3, 4}))
          .input(random_tensor({5, half}, -1, 1, 2))
          .input(random_tensor({5, half}, -1, 1, 3))
          .constant(ids)
          .check_grad();
      with(OpCase("RotaryEmbedding", 23))
          .attr("num_heads", int64_t(2))
          .input(random_tensor({2, 3, 8}))
          .input(random_tensor({2, 3, half}, -1, 1, 2))
          .input(random_tensor({2, 3, half}, -1, 1, 3))
          .check_grad();
      with(OpCase("RotaryEmbedding", 23))
          .input(random_tensor({2, 2, 3, 4}))
          .constant(random_tensor({5, half}, -1, 1, 2, DType::kFloat))
          .constant(random_tensor({5, half}, -1, 1, 3))
          .constant(ids)
          .check_grad();
    }
}

TEST(RotaryEmbedding, PositionsAreChecked) {
  OpCase c("RotaryEmbedding", 23);
  c.input(random_tensor({1, 1, 1, 2}))
      .input(random_tensor({3, 1}))
      .input(random_tensor({3, 1}))
      .input(Tensor::vector<int64_t>({3}).reshaped({1, 1}));
  EXPECT_THROW(c.run(), Error);
}

}  // namespace onnxtrain::testing
