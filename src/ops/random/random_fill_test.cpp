// Random tensors: moments, seeds, types.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {
std::pair<double, double> moments(const Tensor& t) {
  std::vector<double> v = t.to_doubles();
  double sum = 0, sq = 0;
  for (double d : v) sum += d, sq += d * d;
  double mean = sum / double(v.size());
  return {mean, std::sqrt(sq / double(v.size()) - mean * mean)};
}
OpCase shaped(const char* op) {
  return OpCase(op, 22).attr("shape", std::vector<int64_t>{100, 500});
}
}  // namespace

TEST(Random, Moments) {
  auto [mean, dev] = moments(shaped("RandomNormal").attr("mean", 2.f).attr("scale", 3.f).run()[0]);
  EXPECT_NEAR(mean, 2, 0.05);
  EXPECT_NEAR(dev, 3, 0.05);
  auto [middle, spread] =
      moments(shaped("RandomUniform").attr("low", -1.f).attr("high", 3.f).run()[0]);
  EXPECT_NEAR(middle, 1, 0.03);
  EXPECT_NEAR(spread, 4 / std::sqrt(12.0), 0.03);
  Tensor p = random_tensor({200, 100}, 0.3, 0.3);
  EXPECT_NEAR(
      moments(OpCase("Bernoulli", 15).attr("dtype", int64_t(DType::kInt64)).input(p).run()[0])
          .first,
      0.3, 0.02);
}

TEST(Random, SeedAndType) {
  Tensor a = shaped("RandomNormal").attr("seed", 1.f).run()[0],
         b = shaped("RandomNormal").attr("seed", 1.f).run()[0];
  Tensor c = shaped("RandomNormal").attr("seed", 2.f).run()[0];
  EXPECT_EQ(a.to_doubles(), b.to_doubles());
  EXPECT_NE(a.to_doubles(), c.to_doubles());
  Tensor h = OpCase("RandomUniformLike", 22)
                 .attr("dtype", int64_t(DType::kFloat16))
                 .input(random_tensor({4, 2}))
                 .run()[0];
  EXPECT_EQ(h.dtype(), DType::kFloat16);
  EXPECT_EQ(h.shape(), (Shape{4, 2}));
  Tensor like = OpCase("RandomNormalLike", 22)
                    .attr("mean", -5.f)
                    .attr("scale", 0.5f)
                    .input(random_tensor({100, 100}))
                    .run()[0];
  EXPECT_EQ(like.shape(), (Shape{100, 100}));
  EXPECT_NEAR(moments(like).first, -5, 0.03);
  EXPECT_NEAR(moments(like).second, 0.5, 0.03);
}

TEST(Random, Multinomial) {
  // log-probabilities of 0.25 and 0.75 up to a constant
  Tensor x = Tensor::vector<float>({1.f, 1.f + std::log(3.f)}).reshaped({1, 2});
  Tensor y = OpCase("Multinomial", 7).attr("sample_size", int64_t(20000)).input(x).run()[0];
  EXPECT_EQ(y.dtype(), DType::kInt32);
  EXPECT_NEAR(moments(y).first, 0.75, 0.02);
}

}  // namespace onnxtrain::testing
