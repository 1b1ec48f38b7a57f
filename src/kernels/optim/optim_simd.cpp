// The updates of optim.hpp over one chunk, per instruction set, and their distribution to threads.
#include <algorithm>
#include <cmath>

#include "kernels/common/targets.hpp"
#include "kernels/optim/optim.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/optim/optim_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// after highway.h
#include "kernels/common/loops-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;
using Chunk = OptimList::Chunk;

template <class T>
HWY_INLINE V set(T v) {
  return hn::Set(D(), float(v));
}

void sgd_chunk(const OptimTensor& t, const Chunk& c, const SgdStep& s) {
  const V lr = set(s.lr), decay = set(s.decay), gs = set(s.grad_scale);
  each_vector(c.end - c.begin, [&](auto io, int64_t j) HWY_ATTR {
    const int64_t i = c.begin + j;
    const V x = io.load(t.x + i);
    const V g = hn::MulAdd(decay, x, hn::Mul(io.load(t.g + i), gs));
    io.store(hn::NegMulAdd(lr, g, x), t.x + i);
  });
}

void momentum_chunk(const OptimTensor& t, const Chunk& c, const MomentumStep& s) {
  const V lr = set(s.lr), decay = set(s.decay), gs = set(s.grad_scale), keep = set(s.keep),
          take = set(s.take), look = set(s.look);
  const bool nesterov = s.look != 0, fresh = s.keep == 0;  // fresh: the state may be anything
  each_vector(c.end - c.begin, [&](auto io, int64_t j) HWY_ATTR {
    const int64_t i = c.begin + j;
    const V x = io.load(t.x + i);
    const V g = hn::MulAdd(decay, x, hn::Mul(io.load(t.g + i), gs));
    const V taken = hn::Mul(take, g);
    const V v = fresh ? taken : hn::MulAdd(keep, io.load(t.state[0] + i), taken);
    io.store(v, t.state[0] + i);
    const V d = nesterov ? hn::MulAdd(look, v, g) : v;
    io.store(hn::NegMulAdd(lr, d, x), t.x + i);
  });
}

void adam_chunk(const OptimTensor& t, const Chunk& c, const AdamStep& s) {
  const V step = set(s.step), b1 = set(1 - s.beta1), b2 = set(s.beta2), c2 = set(1 - s.beta2),
          root = set(s.root), eps = set(s.epsilon), decay = set(s.decay), pre = set(s.pre),
          post = set(s.post), gs = set(s.grad_scale);
  each_vector(c.end - c.begin, [&](auto io, int64_t j) HWY_ATTR {
    const int64_t i = c.begin + j;
    V x = io.load(t.x + i);
    const V g = hn::MulAdd(decay, x, hn::Mul(io.load(t.g + i), gs));
    x = hn::Mul(x, pre);
    V m = io.load(t.state[0] + i), v = io.load(t.state[1] + i);
    m = hn::MulAdd(b1, hn::Sub(g, m), m);
    v = hn::MulAdd(hn::Mul(c2, g), g, hn::Mul(b2, v));
    io.store(m, t.state[0] + i);
    io.store(v, t.state[1] + i);
    if (s.amsgrad) {
      v = hn::Max(v, io.load(t.state[2] + i));
      io.store(v, t.state[2] + i);
    }
    const V d = hn::Div(m, hn::MulAdd(hn::Sqrt(v), root, eps));
    io.store(hn::Mul(hn::NegMulAdd(step, d, x), post), t.x + i);
  });
}

void adagrad_chunk(const OptimTensor& t, const Chunk& c, const AdagradStep& s) {
  const V lr = set(s.lr), eps = set(s.epsilon), decay = set(s.decay), gs = set(s.grad_scale);
  each_vector(c.end - c.begin, [&](auto io, int64_t j) HWY_ATTR {
    const int64_t i = c.begin + j;
    const V x = io.load(t.x + i);
    const V g = hn::MulAdd(decay, x, hn::Mul(io.load(t.g + i), gs));
    const V h = hn::MulAdd(g, g, io.load(t.state[0] + i));
    io.store(h, t.state[0] + i);
    io.store(hn::NegMulAdd(lr, hn::Div(g, hn::Add(hn::Sqrt(h), eps)), x), t.x + i);
  });
}

void lion_chunk(const OptimTensor& t, const Chunk& c, const LionStep& s) {
  const V lr = set(s.lr), b1 = set(s.beta1), c1 = set(1 - s.beta1), b2 = set(s.beta2),
          c2 = set(1 - s.beta2), pre = set(1 - s.lr * s.decay), gs = set(s.grad_scale);
  const V one = set(1.0f), zero = hn::Zero(D());
  each_vector(c.end - c.begin, [&](auto io, int64_t j) HWY_ATTR {
    const int64_t i = c.begin + j;
    const V x = hn::Mul(io.load(t.x + i), pre), g = hn::Mul(io.load(t.g + i), gs);
    const V m = io.load(t.state[0] + i);
    const V u = hn::MulAdd(c1, g, hn::Mul(b1, m));
    const V sign = hn::Sub(hn::IfThenElseZero(u > zero, one), hn::IfThenElseZero(u < zero, one));
    io.store(hn::MulAdd(c2, g, hn::Mul(b2, m)), t.state[0] + i);
    // a NaN gradient must not pass as "no change"
    io.store(hn::NegMulAdd(lr, hn::IfThenElse(hn::IsNaN(u), u, sign), x), t.x + i);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxtrain::simd {
HWY_EXPORT(sgd_chunk);
HWY_EXPORT(momentum_chunk);
HWY_EXPORT(adam_chunk);
HWY_EXPORT(adagrad_chunk);
HWY_EXPORT(lion_chunk);

namespace {
constexpr int64_t kChunk = 8192;
// Small chunks go together in one task, so that many little tensors cost little.
constexpr int64_t kTask = 16384;

template <class Step, class F>
void for_chunks(ThreadPool& pool, const OptimList& list, const Step& step, F kernel) {
  auto one = [&](int64_t i) {
    const OptimList::Chunk& c = list.chunk(i);
    kernel(list.tensors()[size_t(c.tensor)], c, step);
  };
  const int64_t chunks = list.chunks();
  int64_t total = 0;
  for (const OptimTensor& t : list.tensors()) total += t.n;
  if (total <= kTask) {
    for (int64_t i = 0; i < chunks; ++i) one(i);
    return;
  }
  const int64_t grain = std::max<int64_t>(1, chunks * kTask / total);
  parallel_for(pool, chunks, grain, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) one(i);
  });
}
}  // namespace

OptimList::OptimList(std::vector<OptimTensor> tensors) : tensors_(std::move(tensors)) {
  for (size_t t = 0; t < tensors_.size(); ++t) {
    for (int64_t b = 0; b < tensors_[t].n; b += kChunk) {
      chunks_.push_back({int64_t(t), b, std::min(tensors_[t].n, b + kChunk)});
    }
  }
}

void update(ThreadPool& pool, const OptimList& list, const SgdStep& step) {
  for_chunks(pool, list, step, HWY_DYNAMIC_DISPATCH(sgd_chunk));
}
void update(ThreadPool& pool, const OptimList& list, const MomentumStep& step) {
  for_chunks(pool, list, step, HWY_DYNAMIC_DISPATCH(momentum_chunk));
}
void update(ThreadPool& pool, const OptimList& list, const AdamStep& step) {
  for_chunks(pool, list, step, HWY_DYNAMIC_DISPATCH(adam_chunk));
}
void update(ThreadPool& pool, const OptimList& list, const AdagradStep& step) {
  for_chunks(pool, list, step, HWY_DYNAMIC_DISPATCH(adagrad_chunk));
}
void update(ThreadPool& pool, const OptimList& list, const LionStep& step) {
  for_chunks(pool, list, step, HWY_DYNAMIC_DISPATCH(lion_chunk));
}

void update(const OptimTensor& tensor, const SgdStep& step) {
  HWY_DYNAMIC_DISPATCH(sgd_chunk)(tensor, {0, 0, tensor.n}, step);
}
void update(const OptimTensor& tensor, const AdagradStep& step) {
  HWY_DYNAMIC_DISPATCH(adagrad_chunk)(tensor, {0, 0, tensor.n}, step);
}

AdamStep adam_step(double lr, double beta1, double beta2, double epsilon, double weight_decay,
                   bool decoupled, double t) {
  AdamStep s;
  s.beta1 = beta1;
  s.beta2 = beta2;
  s.epsilon = float(epsilon);
  s.step = float(lr / (1 - std::pow(beta1, t)));
  s.root = float(1 / std::sqrt(1 - std::pow(beta2, t)));
  if (decoupled) {
    s.pre = float(1 - lr * weight_decay);
  } else {
    s.decay = float(weight_decay);
  }
  return s;
}

AdamStep onnx_adam_step(double lr, int64_t t, double alpha, double beta, double epsilon,
                        double norm, double norm_post) {
  AdamStep s;
  s.beta1 = alpha;
  s.beta2 = beta;
  s.epsilon = float(epsilon);
  s.decay = float(norm);
  s.post = float(1 - norm_post);
  const double adjusted =
      t > 0 ? lr * std::sqrt(1 - std::pow(beta, double(t))) / (1 - std::pow(alpha, double(t))) : lr;
  s.step = float(adjusted);
  return s;
}

}  // namespace onnxtrain::simd
#endif
