// ConvTranspose: values against an example, gradients.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(ConvTranspose, Example) {
  Tensor x = Tensor::vector<float>({0, 1, 2, 3}).reshaped({1, 1, 2, 2});
  Tensor w = Tensor::vector<float>({1, 1, 1, 1}).reshaped({1, 1, 2, 2});
  OpCase("ConvTranspose", 11)
      .input(x)
      .input(w)
      .expect(Tensor::vector<float>({0, 1, 1, 2, 6, 4, 2, 5, 3}).reshaped({1, 1, 3, 3}));
}

// Strides larger than windows: the size is that of the strides, zeros come on both sides (as the
// reference evaluator has them).
TEST(ConvTranspose, SameWithLargeStrides) {
  auto same = [](const char* mode, int64_t stride, const std::vector<float>& w,
                 const std::vector<float>& want) {
    OpCase("ConvTranspose", 11)
        .attr("auto_pad", std::string(mode))
        .attr("strides", std::vector<int64_t>{stride})
        .input(Tensor::vector<float>({1, 2}).reshaped({1, 1, 2}))
        .input(Tensor::vector<float>(w).reshaped({1, 1, int64_t(w.size())}))
        .expect(Tensor::vector<float>(want).reshaped({1, 1, int64_t(want.size())}));
  };
  same("SAME_UPPER", 3, {1, 2}, {0, 1, 2, 0, 2, 4});
  same("SAME_LOWER", 3, {1, 2}, {1, 2, 0, 2, 4, 0});
  same("SAME_UPPER", 4, {1, 2}, {0, 1, 2, 0, 0, 2, 4, 0});
  same("SAME_LOWER", 4, {1, 2}, {0, 1, 2, 0, 0, 2, 4, 0});
  same("SAME_UPPER", 4, {1}, {0, 0, 1, 0, 0, 0, 2, 0});
}

TEST(ConvTranspose, Gradients) {
  using I = std::vector<int64_t>;
  auto base = [](const Shape& x, Shape w, int64_t group = 1) {
    OpCase c("ConvTranspose", 11);
    c.attr("group", group).input(random_tensor(x)).input(random_tensor(w, -1, 1, 2));
    c.input(random_tensor({w[1] * group}, -1, 1, 3));
    return c;
  };
  base({2, 2, 4}, {2, 3, 3}).attr("strides", I{2}).check_grad();
  base({1, 4, 3, 3}, {4, 1, 3, 2}, 2)
      .attr("strides", I{2, 1})
      .attr("pads", I{1, 0, 0, 1})
      .check_grad();
  base({1, 2, 3, 3}, {2, 2, 3, 3})
      .attr("strides", I{3, 2})
      .attr("output_padding", I{2, 1})
      .check_grad();
  base({1, 2, 3, 3}, {2, 2, 2, 2}).attr("dilations", I{2, 3}).check_grad();
  base({1, 2, 3, 3}, {2, 2, 3, 3})
      .attr("strides", I{3, 2})
      .attr("output_shape", I{10, 8})
      .check_grad();
  base({1, 2, 3, 3}, {2, 2, 3, 3})
      .attr("strides", I{2, 2})
      .attr("auto_pad", std::string("SAME_UPPER"))
      .check_grad();
  base({1, 2, 3, 3}, {2, 2, 3, 3})
      .attr("strides", I{2, 2})
      .attr("auto_pad", std::string("SAME_LOWER"))
      .check_grad();
  for (const char* mode : {"SAME_UPPER", "SAME_LOWER"})  // no window reaches the first columns
    base({2, 4, 3, 2}, {4, 3, 1, 2})
        .attr("strides", I{4, 5})
        .attr("auto_pad", std::string(mode))
        .check_grad();
  base({1, 1, 2, 2}, {1, 1, 1, 1})
      .attr("strides", I{1, 2})
      .attr("output_shape", I{5, 7})
      .check_grad();
  base({1, 2, 2, 3, 2}, {2, 1, 2, 2, 2}).attr("strides", I{2, 1, 2}).check_grad();
}

}  // namespace onnxtrain::testing
