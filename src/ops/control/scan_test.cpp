// Scan: values and gradients; version 8 with its batch.
#include <gtest/gtest.h>

#include "onnx/onnx.hpp"
#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

TEST(Scan, ValuesAndGradient) {
  const char* g = R"(
    g (double[2] h, double[3,2] x, double[2,3] z, double[2] w) => (double[2] last, double[3,2] all, double[2,3] other) {
      last, all, other = Scan <num_scan_inputs = 2, scan_input_axes = [0, 1], scan_input_directions = [0, 1],
                               scan_output_axes = [0, 1], scan_output_directions = [1, 0],
        body = b (double[2] s, double[2] a, double[2] c) => (double[2] t, double[2] u, double[2] v) {
          p = Mul(s, w)
          q = Add(p, a)
          t = Sin(q)
          u = Mul(t, c)
          v = Mul(a, c)
        }> (h, x, z)
    })";
  Feeds f = {
      {"h", vary({2}, 1)}, {"x", vary({3, 2}, 2)}, {"z", vary({2, 3}, 3)}, {"w", vary({2}, 4)}};
  check_text_grad(g, f, {"h", "x", "z", "w"});
}

TEST(Scan, Version8HasABatch) {
  auto m = std::make_shared<Model>(parse_model(R"(<ir_version: 3, opset_import: ["" : 8]>
    g (float[2,1] h, float[2,3,1] x) => (float[2,1] last, float[2,3,1] all) {
      last, all = Scan <num_scan_inputs = 1,
        body = b (float[1] s, float[1] a) => (float[1] t, float[1] u) { t = Add(s, a) u = Identity(t) }> (, h, x)
    })",
                                               all_ops()));
  Tensor h = Tensor::vector<float>({0, 10}).reshaped({2, 1}),
         x = Tensor::vector<float>({1, 2, 3, 4, 5, 6}).reshaped({2, 3, 1});
  auto result = [&](size_t k) {
    return std::get<Tensor>(Session(m).run({{"h", h}, {"x", x}})[k].second).to_doubles();
  };
  EXPECT_EQ(result(1), (std::vector<double>{1, 3, 6, 14, 19, 25}));
  EXPECT_EQ(result(0), (std::vector<double>{6, 25}));
}

TEST(Scan, Values) {
  const char* g = R"(
    g (double[1] h, double[3,1] x) => (double[1] last, double[3,1] all) {
      last, all = Scan <num_scan_inputs = 1,
        body = b (double[1] s, double[1] a) => (double[1] t, double[1] u) { t = Add(s, a) u = Identity(t) }> (h, x)
    })";
  Feeds f = {{"h", doubles({10})}, {"x", doubles({1, 2, 3}, {3, 1})}};
  EXPECT_EQ(text_output(g, f, 0), (std::vector<double>{16}));
  EXPECT_EQ(text_output(g, f, 1), (std::vector<double>{11, 13, 16}));
}

}  // namespace onnxtrain::testing
