// FusedBatchNorm: batch normalisation, then an addition and an activation, on channels-last tensors
// in one pass over memory; FusedBatchNormGrad: all of it backwards in two. Made by the pass
// fuse_norm after differentiation; never written to files.
#include "ops/common/cost.hpp"
#include "ops/norm/channels_last_norm_kernel.hpp"

namespace onnxtrain::ops {

namespace {

simd::NormActivation activation_of(const Node& n) {
  std::string act = n.s("act", "");
  simd::NormActivation a;
  if (act == "Relu") a.kind = simd::NormAct::kRelu;
  if (act == "Clip") a = {simd::NormAct::kClip, n.f("low", 0), n.f("high", 0)};
  return a;
}

void fill(ChannelNorm& c, const Prepare& p, int x) {
  const Node& n = p.node();
  c.shape = norm_shape(p.in(x).shape);
  c.epsilon = n.f("epsilon", 1e-5f);
  c.momentum = n.f("momentum", 0.9f);
  c.train = n.i("train", 1) != 0;
  c.act = activation_of(n);
  c.saves_inverse = true;
}

void shape(ShapeCtx& c) {
  c.set(0, c.dtype(0), c.shape(0));
  for (int k = 1; k <= 4; ++k) c.set(k, c.dtype(1), c.shape(1));
}
void grad_shape(ShapeCtx& c) {
  c.set(0, c.dtype(1), c.shape(1));
  c.set(1, c.dtype(2), c.shape(2));
  c.set(2, c.dtype(2), c.shape(2));
  c.set(3, c.dtype(1), c.shape(1));
}

std::string refuses(const Prepare& p) { return channel_norm_refuses(p, 0); }
std::string grad_refuses(const Prepare& p) { return channel_norm_refuses(p, 1); }

Kernel make(Prepare& p) {
  ChannelNorm c;
  fill(c, p, 0);
  return channel_norm_kernel(p, c);
}

// (dy, x, scale, bias, mean, inverse, y?) -> dx, dscale, dbias, dz
Kernel make_grad(Prepare& p) {
  ChannelNormGrad c;
  fill(c, p, 1);
  c.bias = 3, c.mean = 4, c.inverse = 5, c.dz = 3;
  if (p.has(6)) c.y = 6;
  return channel_norm_grad_kernel(p, c);
}

// The statistics need all of x before it is read again; the sums of the gradient all of dy and x.
Cost cost(const Prepare& p) {
  Cost c = cost_per_element<8>(p);
  c.bytes += double(p.in(0).size()) * double(sizeof(float));
  return c;
}
Cost cost_grad(const Prepare& p) {
  Cost c = cost_per_element<10>(p);
  c.bytes += 2.0 * double(p.in(1).size()) * double(sizeof(float));
  return c;
}

}  // namespace

void register_fused_batch_norm(OpTable& t) {
  t.add({.name = "FusedBatchNorm",
         .domain = std::string(kOwnDomain),
         .shape = shape,
         .impls = {{"simd", refuses, make}},
         .no_grad = "it is made after differentiation",
         .in_place = {{0, 0}, {5, 0}},
         .cost = cost});
  t.add({.name = "FusedBatchNormGrad",
         .domain = std::string(kOwnDomain),
         .shape = grad_shape,
         .impls = {{"simd", grad_refuses, make_grad}},
         .no_grad = "it is made after differentiation",
         .in_place = {{0, 0}, {0, 3}, {1, 0}},
         .cost = cost_grad});
}

}  // namespace onnxtrain::ops
