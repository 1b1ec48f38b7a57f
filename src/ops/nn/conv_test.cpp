// Convolutions: values, gradients by finite differences, and the same bits for any thread count.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/conv/conv_general.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {

struct Case {
  Shape x, w;
  std::vector<int64_t> strides, dilations, pads;
  int64_t group = 1;
  const char* auto_pad = nullptr;
};

std::vector<Case> cases() {
  return {{{2, 3, 5}, {4, 3, 3}, {}, {}, {}, 1, nullptr},
          {{1, 2, 6}, {4, 1, 3}, {2}, {2}, {1, 2}, 2, nullptr},
          {{2, 2, 5, 4}, {3, 2, 3, 2}, {2, 1}, {}, {1, 0, 2, 1}, 1, nullptr},
          {{1, 4, 6, 6}, {4, 1, 3, 3}, {1, 2}, {1, 2}, {1, 1, 1, 1}, 4, nullptr},
          {{1, 2, 5, 5}, {2, 2, 3, 3}, {2, 2}, {}, {}, 1, "SAME_UPPER"},
          {{1, 2, 6, 5}, {2, 2, 3, 2}, {2, 2}, {}, {}, 1, "SAME_LOWER"},
          {{1, 2, 3, 4, 3}, {2, 2, 2, 2, 2}, {1, 2, 1}, {}, {0, 1, 0, 1, 0, 0}, 1, nullptr},
          {{2, 1, 4, 4}, {1, 1, 1, 1}, {}, {}, {}, 1, "VALID"}};
}

OpCase conv(const Case& c, bool bias) {
  OpCase o("Conv", 11);
  if (!c.strides.empty()) o.attr("strides", c.strides);
  if (!c.dilations.empty()) o.attr("dilations", c.dilations);
  if (!c.pads.empty()) o.attr("pads", c.pads);
  if (c.auto_pad) o.attr("auto_pad", std::string(c.auto_pad));
  o.attr("group", c.group);
  o.input(random_tensor(c.x)).input(random_tensor(c.w, -1, 1, 2));
  if (bias) o.input(random_tensor({c.w[0]}, -1, 1, 3));
  return o;
}

}  // namespace

TEST(Conv, Example) {
  Tensor x = Tensor::vector<float>({0, 1, 2, 3, 4, 5, 6, 7, 8}).reshaped({1, 1, 3, 3});
  Tensor w = Tensor::vector<float>({1, 1, 1, 1}).reshaped({1, 1, 2, 2});
  OpCase("Conv", 22)
      .input(x)
      .input(w)
      .expect(Tensor::vector<float>({8, 12, 20, 24}).reshaped({1, 1, 2, 2}));
}

TEST(Conv, Gradients) {
  for (const Case& c : cases())
    for (bool bias : {false, true}) conv(c, bias).check_grad();
}

TEST(Conv, SixteenBits) {
  Tensor x = random_tensor({1, 2, 4, 4}, -1, 1, 1, DType::kFloat16),
         w = random_tensor({2, 2, 3, 3}, -1, 1, 2, DType::kFloat16);
  EXPECT_EQ(OpCase("Conv", 11).input(x).input(w).run()[0].dtype(), DType::kFloat16);
}

TEST(Conv, EmptyBatch) {
  Tensor y = OpCase("Conv", 11)
                 .input(random_tensor({0, 2, 4, 4}))
                 .input(random_tensor({3, 2, 3, 3}))
                 .run()[0];
  EXPECT_EQ(y.shape(), (Shape{0, 3, 2, 2}));
}

TEST(Conv, BadAttributesAreErrors) {
  auto with = [](const char* key, std::vector<int64_t> v) {
    OpCase("Conv", 11)
        .attr(key, v)
        .input(random_tensor({1, 2, 4, 4}))
        .input(random_tensor({2, 2, 3, 3}))
        .run();
  };
  EXPECT_THROW(with("strides", {0, 1}), Error);
  EXPECT_THROW(with("strides", {1}), Error);
  EXPECT_THROW(with("dilations", {1, -1}), Error);
  EXPECT_THROW(with("dilations", {int64_t(1) << 62, 1}), Error);
  EXPECT_THROW(with("pads", {0, 0, 0, -9}), Error);
  EXPECT_THROW(with("kernel_shape", {2, 2}), Error);
  EXPECT_THROW(OpCase("Conv", 11)
                   .attr("group", int64_t(0))
                   .input(random_tensor({1, 2, 4, 4}))
                   .input(random_tensor({2, 2, 3, 3}))
                   .run(),
               Error);
}

// oneDNN, or what a build has in its place, against the loops by definition, with batch chunks, a
// shorter last chunk and channel parts.
TEST(GeneralConv, SameAsDefinitionForAnyThreadCount) {
  struct P {
    int64_t n, g, ic, oc, size, k, s;
  };
  for (P q : {P{7, 1, 16, 24, 20, 3, 1}, P{1, 1, 32, 64, 28, 3, 2}, P{1, 32, 32, 32, 40, 3, 1},
              P{33, 1, 8, 8, 12, 3, 1}, P{2, 4, 16, 32, 30, 5, 2}, P{1, 1, 64, 64, 30, 1, 1},
              P{3, 1, 3, 10, 31, 7, 2}, P{4, 1, 64, 64, 9, 3, 1}}) {
    kernels::ConvShape s;
    int64_t pad = q.k / 2, out = (q.size + 2 * pad - q.k) / q.s + 1;
    s.window = {{q.size, q.size}, {out, out}, {q.k, q.k}, {q.s, q.s},
                {1, 1},           {pad, pad}, {pad, pad}};
    s.batch = q.n, s.groups = q.g, s.in_channels = q.ic, s.out_channels = q.oc;
    Tensor x = random_tensor({q.n, q.ic, q.size, q.size}),
           w = random_tensor({q.oc, q.ic / q.g, q.k, q.k}, -1, 1, 2);
    Tensor dy = random_tensor({q.n, q.oc, out, out}, -1, 1, 3), b = random_tensor({q.oc}, -1, 1, 4);
    for (auto pass : {ConvPass::kForward, ConvPass::kInputGradient, ConvPass::kWeightGradient}) {
      bool forward = pass == ConvPass::kForward;
      Shape shape = forward ? dy.shape() : pass == ConvPass::kInputGradient ? x.shape() : w.shape();
      Tensor want(DType::kFloat, shape), first;
      ThreadPool two(2);
      if (forward)
        kernels::conv_ref(s, x.as<float>(), w.as<float>(), b.as<float>(), want.as<float>(), two);
      else if (pass == ConvPass::kInputGradient)
        kernels::conv_grad_x_ref<float>(s, dy.as<float>(), w.as<float>(), nullptr, want.as<float>(),
                                        two);
      else
        kernels::conv_grad_w_ref(s, dy.as<float>(), x.as<float>(), want.as<float>(), two);
      for (int threads : {1, 2, 4}) {
        ThreadPool pool(threads);
        std::string why;
        auto plan = general::ConvPlan::make(s, pass, forward, false, threads, &why);
        ASSERT_TRUE(plan) << why;
        std::shared_ptr<void> area = allocate(plan->workspace());
        Tensor got(DType::kFloat, shape);
        plan->run({x.as<float>(), w.as<float>(), forward ? b.as<float>() : nullptr, dy.as<float>(),
                   got.as<float>()},
                  area.get(), pool);
        double scale = 0;
        for (double v : want.to_doubles()) scale = std::max(scale, std::fabs(v));
        for (int64_t i = 0; i < got.size(); ++i)
          ASSERT_NEAR(got.as<float>()[i], want.as<float>()[i], 2e-5 * scale) << plan->describe();
        if (!first.defined()) first = got;
        ASSERT_EQ(std::memcmp(first.data(), got.data(), got.bytes()), 0) << plan->describe();
      }
    }
  }
}

namespace {

// [1,channels,length] -> [1,length,channels], or back
Tensor turned(const Tensor& t) {
  const int64_t rows = t.shape()[1], columns = t.shape()[2];
  Tensor out(DType::kFloat, {1, columns, rows});
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      out.as<float>()[c * rows + r] = t.as<float>()[r * columns + c];
  return out;
}

kernels::ConvShape line(int64_t channels, int64_t length, int64_t kernel) {
  kernels::ConvShape s;
  s.window = {{length}, {length}, {kernel}, {1}, {1}, {kernel / 2}, {kernel / 2}};
  s.batch = s.groups = 1, s.in_channels = s.out_channels = channels;
  return s;
}

}  // namespace

// One sequence with channels last is cut into blocks of its length. They take the weights in one
// format, and none may be left with oneDNN's reference (networks that make sound from spectra).
TEST(GeneralConv, BlocksOfALineAreFastAndRight) {
  for (int64_t channels : {16, 24, 32, 64, 128})
    for (int64_t length : {64, 300, 512, 1024, 2048})
      for (int64_t kernel : {3, 7, 11}) {
        const kernels::ConvShape s = line(channels, length, kernel);
        std::string why;
        for (auto pass : {ConvPass::kInputGradient, ConvPass::kWeightGradient}) {
          auto plan = general::ConvPlan::make(s, pass, false, true, 2, &why);
          if (plan) {
            EXPECT_EQ(plan->describe().find("ref"), std::string::npos) << plan->describe();
          }
        }
        auto plan = general::ConvPlan::make(s, ConvPass::kForward, true, true, 2, &why);
        ASSERT_TRUE(plan) << why;
        EXPECT_EQ(plan->describe().find("ref"), std::string::npos)
            << channels << " channels, length " << length << ", kernel " << kernel << ": "
            << plan->describe();
        if (channels * length > 64 * 512) continue;
        Tensor x = random_tensor({1, channels, length}),
               w = random_tensor({channels, channels, kernel}, -1, 1, 2),
               b = random_tensor({channels}, -1, 1, 3), want(DType::kFloat, x.shape()),
               got(DType::kFloat, {1, length, channels});
        ThreadPool pool(2);
        kernels::conv_ref(s, x.as<float>(), w.as<float>(), b.as<float>(), want.as<float>(), pool);
        std::shared_ptr<void> area = allocate(plan->workspace());
        const Tensor last = turned(x);
        plan->run({last.as<float>(), w.as<float>(), b.as<float>(), nullptr, got.as<float>()},
                  area.get(), pool);
        const Tensor right = turned(want);
        for (int64_t i = 0; i < got.size(); ++i)
          ASSERT_NEAR(got.as<float>()[i], right.as<float>()[i], 2e-5 * std::sqrt(channels * kernel))
              << plan->describe();
      }
}

}  // namespace onnxtrain::testing
