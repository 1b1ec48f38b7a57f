// Convolution problems for kernel tests: random operands in both orders, the three passes by
// definition in any precision, and distances.
#pragma once
#include <cmath>
#include <cstring>

#include "kernels/conv/conv_pass.hpp"
#include "kernels/conv/conv_ref.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

inline constexpr ConvPass kPasses[] = {ConvPass::kForward, ConvPass::kInputGradient,
                                       ConvPass::kWeightGradient};

struct ConvCase {
  int64_t batch, in, out, groups;
  std::vector<int64_t> size, kernel, strides, dilations, begin, end;

  kernels::ConvShape shape() const {
    kernels::ConvShape s;
    s.batch = batch, s.in_channels = in, s.out_channels = out, s.groups = groups;
    kernels::Window& w = s.window;
    w.in = size, w.kernel = kernel, w.strides = strides, w.dilations = dilations;
    w.pads_begin = begin, w.pads_end = end;
    for (size_t d = 0; d < size.size(); ++d)
      w.out.push_back(
          (size[d] + begin[d] + end[d] - (kernel[d] - 1) * dilations[d] - 1) / strides[d] + 1);
    return s;
  }
};

struct ConvOperandsCase {
  kernels::ConvShape s;
  Tensor x, w, y, bias;  // y: the gradient in the backward passes; x, y in ONNX's order
  explicit ConvOperandsCase(const ConvCase& c) : s(c.shape()) {
    Shape xs{s.batch, s.in_channels}, ys{s.batch, s.out_channels},
        ws{s.out_channels, s.in_per_group()};
    xs.insert(xs.end(), s.window.in.begin(), s.window.in.end());
    ys.insert(ys.end(), s.window.out.begin(), s.window.out.end());
    ws.insert(ws.end(), s.window.kernel.begin(), s.window.kernel.end());
    x = random_tensor(xs);
    y = random_tensor(ys, -1, 1, 2);
    w = random_tensor(ws, -1, 1, 3);
    bias = random_tensor({s.out_channels}, -1, 1, 4);
  }
  size_t result_size(ConvPass p) const {
    return size_t((p == ConvPass::kForward ? y : p == ConvPass::kInputGradient ? x : w).size());
  }
  int64_t result_channels(ConvPass p) const {
    return p == ConvPass::kForward ? s.out_channels : s.in_channels;
  }
};

// [N,C,pixels] -> [N,pixels,C], or back.
inline std::vector<float> turned(const float* from, int64_t batch, int64_t channels, int64_t pixels,
                                 bool back = false) {
  std::vector<float> r(size_t(batch * channels * pixels));
  for (int64_t i = 0; i < batch; ++i)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t p = 0; p < pixels; ++p) {
        int64_t first = (i * channels + c) * pixels + p, last = (i * pixels + p) * channels + c;
        r[size_t(back ? first : last)] = from[back ? last : first];
      }
  return r;
}

// By the definition, in T; in ONNX's order. bias: of the forward pass.
template <class T>
std::vector<double> conv_defined(const ConvOperandsCase& p, ConvPass pass, bool bias = false) {
  auto list = [](const Tensor& t) {
    std::vector<double> d = t.to_doubles();
    return std::vector<T>(d.begin(), d.end());
  };
  std::vector<T> x = list(p.x), w = list(p.w), y = list(p.y), b = list(p.bias);
  std::vector<T> r(p.result_size(pass));
  ThreadPool one(1);
  if (pass == ConvPass::kForward)
    kernels::conv_ref<T>(p.s, x.data(), w.data(), bias ? b.data() : nullptr, r.data(), one);
  else if (pass == ConvPass::kInputGradient)
    kernels::conv_grad_x_ref<T>(p.s, y.data(), w.data(), nullptr, r.data(), one);
  else
    kernels::conv_grad_w_ref<T>(p.s, y.data(), x.data(), r.data(), one);
  return {r.begin(), r.end()};
}

// A kernel, run(a, b, bias, out, workspace, pool), channels last unless said; the result in ONNX's
// order.
template <class Plan>
std::vector<float> conv_planned(const ConvOperandsCase& p, ConvPass pass, Plan& plan, int threads,
                                bool bias = false, bool last = true) {
  auto list = [&](const Tensor& t, int64_t channels, int64_t pixels) {
    return last ? turned(t.as<float>(), p.s.batch, channels, pixels)
                : std::vector<float>(t.as<float>(), t.as<float>() + t.size());
  };
  std::vector<float> x = list(p.x, p.s.in_channels, p.s.window.in_size()),
                     y = list(p.y, p.s.out_channels, p.s.window.out_size());
  std::vector<float> out(p.result_size(pass), 777.0f);  // everything must be written
  std::shared_ptr<void> workspace = allocate(plan.workspace());
  std::memset(workspace.get(), 0xff, plan.workspace());  // NaN
  ThreadPool pool(threads);
  plan.run(pass == ConvPass::kForward ? x.data() : y.data(),
           pass == ConvPass::kWeightGradient ? x.data() : p.w.as<float>(),
           bias && pass == ConvPass::kForward ? p.bias.as<float>() : nullptr, out.data(),
           workspace.get(), pool);
  if (pass == ConvPass::kWeightGradient || !last) return out;
  int64_t pixels = pass == ConvPass::kForward ? p.s.window.out_size() : p.s.window.in_size();
  return turned(out.data(), p.s.batch, p.result_channels(pass), pixels, true);
}

// In the 2-norm, relative to want.
template <class A>
double distance(const std::vector<A>& got, const std::vector<double>& want) {
  double error = 0, size = 0;
  for (size_t i = 0; i < want.size(); ++i) {
    error += std::pow(double(got[i]) - want[i], 2);
    size += want[i] * want[i];
  }
  return std::sqrt(error / size);
}

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace onnxtrain::testing
