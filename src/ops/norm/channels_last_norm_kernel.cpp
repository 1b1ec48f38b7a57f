// Composes the passes of kernels/norm/channels_last_norm.
#include "ops/norm/channels_last_norm_kernel.hpp"

#include <cmath>

namespace onnxtrain::ops {

simd::NormShape norm_shape(const Shape& s) {
  int64_t channels = s.back();
  return {num_elements(s) / std::max<int64_t>(1, channels), channels};
}

std::string channel_norm_refuses(const Prepare& p, int x) {
  for (int i = 0; i < p.inputs(); ++i)
    if (p.has(i) && p.in(i).dtype != DType::kFloat) return "only for float";
  const Shape& s = p.in(x).shape;
  if (!is_channels_last(p.node()) && s.size() != 2) return "channels are not last";
  return num_elements(s) == 0 ? "empty" : "";
}

namespace {

float inverse_of(float var, float epsilon) { return 1.0f / std::sqrt(var + epsilon); }

// Scratch: `count` vectors of one float per channel after the sums of the chunks.
size_t scratch_bytes(const simd::NormShape& s, int64_t count) {
  return (s.workspace() + 63) / 64 * 64 + size_t(count * s.channels) * sizeof(float);
}
float* vectors(const simd::NormShape& s, void* workspace) {
  return reinterpret_cast<float*>(static_cast<char*>(workspace) + (s.workspace() + 63) / 64 * 64);
}

}  // namespace

Kernel channel_norm_kernel(Prepare& p, const ChannelNorm& n) {
  bool residual = p.has(5), want[5];
  for (int k = 0; k < 5; ++k) want[k] = p.wants(k);
  p.workspace = scratch_bytes(n.shape, 4);
  return [n, residual, want](const Run& r) {
    int64_t channels = n.shape.channels;
    float *mean = vectors(n.shape, r.workspace), *var = mean + channels, *a = var + channels,
          *b = a + channels;
    const float *x = r.in<float>(0), *scale = r.in<float>(1), *bias = r.in<float>(2),
                *old_mean = r.in<float>(3), *old_var = r.in<float>(4);
    if (n.train) simd::norm_statistics(*r.pool, n.shape, x, r.workspace, mean, var);
    for (int64_t c = 0; c < channels; ++c) {
      float m = n.train ? mean[c] : old_mean[c], v = n.train ? var[c] : old_var[c];
      float inverse = inverse_of(v, n.epsilon);
      float run_mean = old_mean[c] * n.momentum + m * (1 - n.momentum);
      float run_var = old_var[c] * n.momentum + v * (1 - n.momentum);
      a[c] = scale[c] * inverse;
      b[c] = bias[c] - m * a[c];
      if (want[1]) r.out<float>(1)[c] = run_mean;
      if (want[2]) r.out<float>(2)[c] = run_var;
      if (want[3]) r.out<float>(3)[c] = m;
      if (want[4]) r.out<float>(4)[c] = n.saves_inverse ? inverse : v;
    }
    simd::norm_apply(*r.pool, n.shape, x, a, b, residual ? r.in<float>(5) : nullptr, n.act,
                     r.out<float>(0));
  };
}

Kernel channel_norm_grad_kernel(Prepare& p, const ChannelNormGrad& n) {
  bool want[5];
  for (int k = 0; k < 5; ++k) want[k] = p.wants(k);
  p.workspace = scratch_bytes(n.shape, 8);
  return [n, want](const Run& r) {
    int64_t channels = n.shape.channels;
    float *mean = vectors(n.shape, r.workspace), *inverse = mean + channels,
          *a = inverse + channels, *b = a + channels, *sum = b + channels, *dot = sum + channels,
          *q = dot + channels, *shift = q + channels;
    const float *scale = r.in<float>(2), *x = r.in<float>(1);
    if (n.mean < 0) simd::norm_statistics(*r.pool, n.shape, x, r.workspace, mean, inverse);
    for (int64_t c = 0; c < channels; ++c) {
      if (n.mean >= 0) mean[c] = r.in<float>(n.mean)[c];
      if (n.inverse >= 0)
        inverse[c] = r.in<float>(n.inverse)[c];
      else
        inverse[c] = inverse_of(n.var >= 0 ? r.in<float>(n.var)[c] : inverse[c], n.epsilon);
      a[c] = scale[c] * inverse[c];
      b[c] = n.bias >= 0 ? r.in<float>(n.bias)[c] - mean[c] * a[c] : 0;
    }
    simd::NormGrad g;
    g.dy = r.in<float>(0), g.x = x, g.y = n.y >= 0 ? r.in<float>(n.y) : nullptr;
    g.a = a, g.b = b, g.mean = mean, g.act = n.act;
    float* dz = n.dz >= 0 && want[n.dz] ? r.out<float>(n.dz) : nullptr;
    simd::norm_grad_sums(*r.pool, n.shape, g, r.workspace, dz, sum, dot);
    float m = float(n.shape.rows);
    for (int64_t c = 0; c < channels; ++c) {
      float d = dot[c] * inverse[c];
      if (want[1]) r.out<float>(1)[c] = d;
      if (want[2]) r.out<float>(2)[c] = sum[c];
      if (n.dmean >= 0 && want[n.dmean]) r.out<float>(n.dmean)[c] = -sum[c] * a[c];
      if (n.dvar >= 0 && want[n.dvar]) r.out<float>(n.dvar)[c] = -0.5f * d * a[c] * inverse[c];
      q[c] = n.train ? -a[c] * d * inverse[c] / m : 0;
      shift[c] = n.train ? -a[c] * sum[c] / m - q[c] * mean[c] : 0;
    }
    if (!want[0]) return;
    if (dz) g.dy = dz, g.act.kind = simd::NormAct::kNone;
    simd::norm_grad_apply(*r.pool, n.shape, g, q, shift, r.out<float>(0));
  };
}

}  // namespace onnxtrain::ops
