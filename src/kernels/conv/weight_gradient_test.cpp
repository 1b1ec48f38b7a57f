// The channels-last weight gradient against the definition, and the same bits for any thread count.
#include "kernels/conv/weight_gradient.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {

struct Case {
  int64_t batch, in, out;
  std::vector<int64_t> size, kernel, strides, dilations, begin, end;
};

kernels::ConvShape shape_of(const Case& c) {
  kernels::ConvShape s;
  s.batch = c.batch, s.in_channels = c.in, s.out_channels = c.out;
  kernels::Window& w = s.window;
  w.in = c.size, w.kernel = c.kernel, w.strides = c.strides, w.dilations = c.dilations;
  w.pads_begin = c.begin, w.pads_end = c.end;
  for (size_t d = 0; d < c.size.size(); ++d)
    w.out.push_back((c.size[d] + c.begin[d] + c.end[d] - (c.kernel[d] - 1) * c.dilations[d] - 1) /
                        c.strides[d] +
                    1);
  return s;
}

std::vector<Case> cases() {
  return {{2, 8, 6, {7}, {3}, {1}, {1}, {1}, {1}},
          {3, 19, 37, {9, 11}, {3, 2}, {2, 1}, {1, 2}, {1, 0}, {0, 2}},
          {4, 33, 16, {5, 4}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},
          {1, 16, 24, {4, 5, 6}, {2, 3, 3}, {1, 2, 1}, {1, 1, 2}, {0, 1, 2}, {1, 1, 2}},
          {5, 64, 21, {16, 16}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},  // in place
          {5, 21, 64, {16, 15}, {1, 1}, {1, 1}, {1, 1}, {0, 0}, {0, 0}},  // in place, swapped
          {2, 13, 130, {16, 16}, {1, 1}, {2, 2}, {1, 1}, {0, 0}, {0, 0}},
          {1, 64, 70, {150, 90}, {3, 3}, {1, 1}, {1, 1}, {1, 1}, {1, 1}},  // chunks of rows
          {2, 12, 8, {2, 2}, {5, 5}, {1, 1}, {1, 1}, {4, 4}, {4, 4}}};     // taps outside
}

std::vector<float> turned(const Tensor& t, int64_t channels) {
  int64_t n = t.shape()[0], pixels = t.size() / n / channels;
  std::vector<float> r(size_t(t.size()));
  for (int64_t i = 0; i < n; ++i)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t p = 0; p < pixels; ++p)
        r[size_t((i * pixels + p) * channels + c)] = t.as<float>()[(i * channels + c) * pixels + p];
  return r;
}

}  // namespace

TEST(ConvGradW, AgainstTheDefinition) {
  for (const Case& k : cases()) {
    kernels::ConvShape s = shape_of(k);
    ASSERT_TRUE(simd::ConvGradW::fits(s));
    Shape xs{s.batch, s.in_channels}, ys{s.batch, s.out_channels};
    for (int64_t d : s.window.in) xs.push_back(d);
    for (int64_t d : s.window.out) ys.push_back(d);
    Tensor x = random_tensor(xs), dy = random_tensor(ys, -1, 1, 2);
    size_t size = size_t(s.out_channels * s.in_channels * s.window.taps());
    std::vector<double> want(size), xd = x.to_doubles(), dyd = dy.to_doubles();
    ThreadPool one(1);
    kernels::conv_grad_w_ref<double>(s, dyd.data(), xd.data(), want.data(), one);
    std::vector<float> xl = turned(x, s.in_channels), dyl = turned(dy, s.out_channels), first;
    for (int threads : {1, 2, 4}) {
      ThreadPool pool(threads);
      simd::ConvGradW plan(s);
      std::shared_ptr<void> workspace = allocate(plan.workspace());
      std::vector<float> got(size);
      plan.run(dyl.data(), xl.data(), got.data(), workspace.get(), pool);
      double scale = std::sqrt(double(s.batch * s.window.out_size()));
      for (size_t i = 0; i < size; ++i) ASSERT_NEAR(got[i], want[i], 2e-6 * scale) << i;
      if (first.empty()) first = got;
      EXPECT_EQ(std::memcmp(first.data(), got.data(), size * sizeof(float)), 0);
    }
  }
}

}  // namespace onnxtrain::testing
