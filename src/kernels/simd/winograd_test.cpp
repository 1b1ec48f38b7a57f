// Winograd's convolution and both gradients against the definition in double: as exact as a direct
// sum, over odd sizes, any padding and channel counts that fill no vector; the same bits for any
// thread count.
#include "kernels/simd/winograd.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {

struct Case {
  int64_t batch, in, out, h, w, top, left, bottom, right;
};

std::vector<Case> cases() {
  return {{2, 16, 16, 8, 8, 1, 1, 1, 1},   {1, 37, 21, 13, 11, 1, 1, 1, 1},
          {4, 19, 70, 7, 9, 0, 0, 0, 0},   {2, 17, 130, 9, 8, 2, 0, 1, 2},
          {1, 24, 16, 16, 16, 3, 3, 3, 3}, {32, 64, 33, 4, 4, 1, 1, 1, 1},
          {1, 300, 18, 12, 12, 1, 1, 1, 1}};
}

kernels::ConvShape shape_of(const Case& c) {
  kernels::ConvShape s;
  s.batch = c.batch, s.in_channels = c.in, s.out_channels = c.out;
  kernels::Window& w = s.window;
  w.in = {c.h, c.w}, w.kernel = {3, 3}, w.strides = w.dilations = {1, 1};
  w.pads_begin = {c.top, c.left}, w.pads_end = {c.bottom, c.right};
  w.out = {c.h + c.top + c.bottom - 2, c.w + c.left + c.right - 2};
  return s;
}

Tensor turned(const Tensor& t, bool back) {
  int64_t n = t.shape()[0], channels = back ? t.shape()[3] : t.shape()[1];
  int64_t pixels = t.size() / n / channels;
  Tensor r(DType::kFloat, t.shape());
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t p = 0; p < pixels; ++p) {
        int64_t first = (i * channels + c) * pixels + p, last = (i * pixels + p) * channels + c;
        r.as<float>()[back ? first : last] = t.as<float>()[back ? last : first];
      }
  return r;
}

double distance(const Tensor& got, const std::vector<double>& want) {
  double error = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += std::pow(double(got.as<float>()[i]) - want[i], 2);
    size += want[i] * want[i];
  }
  return std::sqrt(error / size);
}

struct Problem {
  kernels::ConvShape s;
  Tensor x, w, y, bias;  // y: the gradient in the backward passes
  explicit Problem(const Case& c) : s(shape_of(c)) {
    x = random_tensor({s.batch, s.in_channels, s.window.in[0], s.window.in[1]});
    y = random_tensor({s.batch, s.out_channels, s.window.out[0], s.window.out[1]}, -1, 1, 2);
    w = random_tensor({s.out_channels, s.in_channels, 3, 3}, -1, 1, 3);
    bias = random_tensor({s.out_channels}, -1, 1, 4);
  }
};

enum class Pass { kForward, kGradX, kGradW };

// By the definition, in T; activations in ONNX's order.
template <class T>
std::vector<double> defined(const Problem& p, Pass pass) {
  auto list = [](const Tensor& t) {
    std::vector<double> d = t.to_doubles();
    return std::vector<T>(d.begin(), d.end());
  };
  std::vector<T> x = list(p.x), w = list(p.w), y = list(p.y), b = list(p.bias);
  ThreadPool one(1);
  std::vector<T> r(pass == Pass::kForward ? y.size() : pass == Pass::kGradX ? x.size() : w.size());
  if (pass == Pass::kForward)
    kernels::conv_ref<T>(p.s, x.data(), w.data(), b.data(), r.data(), one);
  else if (pass == Pass::kGradX)
    kernels::conv_grad_x_ref<T>(p.s, y.data(), w.data(), nullptr, r.data(), one);
  else
    kernels::conv_grad_w_ref<T>(p.s, y.data(), x.data(), r.data(), one);
  return {r.begin(), r.end()};
}

Tensor by_winograd(const Problem& p, Pass pass, int threads, bool fixed) {
  ThreadPool pool(threads);
  Tensor x = turned(p.x, false), y = turned(p.y, false);
  if (pass == Pass::kGradW) {
    simd::WinogradGradW plan(p.s);
    std::shared_ptr<void> workspace = allocate(plan.workspace());
    Tensor dw(DType::kFloat, p.w.shape());
    plan.run(y.as<float>(), x.as<float>(), dw.as<float>(), workspace.get(), pool);
    return dw;
  }
  bool forward = pass == Pass::kForward;
  simd::Winograd plan(p.s, !forward, threads);
  if (fixed) plan.fix_weights(p.w.as<float>());
  std::shared_ptr<void> workspace = allocate(plan.workspace());
  const Shape& like = forward ? p.y.shape() : p.x.shape();
  Tensor out(DType::kFloat, {like[0], like[2], like[3], like[1]});
  plan.run((forward ? x : y).as<float>(), fixed ? nullptr : p.w.as<float>(),
           forward ? p.bias.as<float>() : nullptr, out.as<float>(), workspace.get(), pool);
  Tensor r = turned(out, true);
  return r;
}

}  // namespace

TEST(Winograd, RoundsLikeTheDefinition) {
  for (const Case& c : cases()) {
    Problem p(c);
    ASSERT_TRUE(simd::winograd_fits(p.s));
    for (Pass pass : {Pass::kForward, Pass::kGradX, Pass::kGradW}) {
      std::vector<double> want = defined<double>(p, pass), direct = defined<float>(p, pass);
      Tensor once(DType::kFloat, {int64_t(direct.size())});
      for (size_t i = 0; i < direct.size(); ++i) once.as<float>()[i] = float(direct[i]);
      Tensor got = by_winograd(p, pass, 1, false);
      ASSERT_EQ(size_t(got.size()), want.size());
      EXPECT_LT(distance(got, want), 2.5 * distance(once, want))
          << c.in << " -> " << c.out << ", pass " << int(pass);
      EXPECT_LT(distance(got, want), 1e-6);
    }
  }
}

TEST(Winograd, SameBitsForAnyThreadCountAndFixedWeights) {
  for (const Case& c : cases()) {
    Problem p(c);
    for (Pass pass : {Pass::kForward, Pass::kGradX, Pass::kGradW}) {
      Tensor first = by_winograd(p, pass, 1, false);
      for (int threads : {1, 2, 4}) {
        Tensor got = by_winograd(p, pass, threads, pass != Pass::kGradW);
        EXPECT_EQ(std::memcmp(first.as<float>(), got.as<float>(), size_t(got.size()) * 4), 0);
      }
    }
  }
}

TEST(Winograd, OnlyWhereItApplies) {
  kernels::ConvShape s = shape_of(cases()[0]);
  auto with = [&](auto change) {
    kernels::ConvShape other = s;
    change(other);
    return simd::winograd_fits(other);
  };
  EXPECT_TRUE(simd::winograd_fits(s));
  EXPECT_FALSE(with([](auto& o) { o.groups = 2; }));
  EXPECT_FALSE(with([](auto& o) { o.window.strides = {1, 2}; }));
  EXPECT_FALSE(with([](auto& o) { o.window.dilations = {2, 1}; }));
  EXPECT_FALSE(with([](auto& o) { o.window.kernel = {3, 1}; }));
  EXPECT_FALSE(with([](auto& o) { o.in_channels = 3; }));
}

}  // namespace onnxtrain::testing
