// Optimizer updates of many tensors in one pass over memory, threaded over fixed chunks of their
// concatenation; element-wise, so results never depend on the number of threads.
#pragma once
#include <cstdint>
#include <vector>

#include "core/threads.hpp"

namespace onnxtrain::simd {

// One tensor: value, gradient and the optimizer's state (unused slots null).
struct OptimTensor {
  float* x = nullptr;
  const float* g = nullptr;
  float* state[3] = {nullptr, nullptr, nullptr};
  int64_t n = 0;
};

// A list of tensors cut into chunks; made once, allocates nothing afterwards.
class OptimList {
 public:
  OptimList() = default;
  explicit OptimList(std::vector<OptimTensor> tensors);
  const std::vector<OptimTensor>& tensors() const { return tensors_; }
  int64_t chunks() const { return int64_t(chunks_.size()); }
  struct Chunk {
    int64_t tensor, begin, end;
  };
  const Chunk& chunk(int64_t i) const { return chunks_[size_t(i)]; }

 private:
  std::vector<OptimTensor> tensors_;
  std::vector<Chunk> chunks_;
};

// Every gradient is first multiplied by grad_scale (clipping, loss scaling).

// g += decay*x; v = keep*v + take*g; x -= lr * (look ? g + look*v : v). state[0] = v.
// PyTorch's SGD: keep = momentum (0 on the first step), take = 1 - dampening (1 on the first),
// look = nesterov ? momentum : 0. ONNX Momentum: keep = alpha, take = T > 0 ? beta : 1,
// look = nesterov ? alpha : 0, decay = norm_coefficient.
struct MomentumStep {
  float lr = 0, keep = 0, take = 1, look = 0, decay = 0, grad_scale = 1;
};
// x -= lr * (g + decay*x)
struct SgdStep {
  float lr = 0, decay = 0, grad_scale = 1;
};

// g += decay*x; x *= pre; m += (1-beta1)*(g-m); v = beta2*v + (1-beta2)*g^2;
// x -= step * m / (sqrt(v)*root + epsilon); x *= post. state = m, v (and max of v with amsgrad).
struct AdamStep {
  double beta1 = 0.9, beta2 = 0.999;  // double: 1 - beta must not be rounded
  float step = 0, root = 1, epsilon = 1e-8f;
  float decay = 0, pre = 1, post = 1, grad_scale = 1;
  bool amsgrad = false;
};
// PyTorch's Adam (decoupled = false) and AdamW (true) at step t = 1, 2, ...
AdamStep adam_step(double lr, double beta1, double beta2, double epsilon, double weight_decay,
                   bool decoupled, double t);
// ONNX Adam with the operator's T, norm_coefficient and norm_coefficient_post.
AdamStep onnx_adam_step(double lr, int64_t t, double alpha, double beta, double epsilon,
                        double norm, double norm_post);

// g += decay*x; h += g^2; x -= lr * g / (sqrt(h) + epsilon). state[0] = h.
// ONNX: lr = R / (1 + T*decay_factor).
struct AdagradStep {
  float lr = 0, epsilon = 1e-10f, decay = 0, grad_scale = 1;
};

// x *= 1 - lr*decay; x -= lr * sign(beta1*m + (1-beta1)*g); m = beta2*m + (1-beta2)*g. state = m.
struct LionStep {
  double lr = 0, beta1 = 0.9, beta2 = 0.99, decay = 0;
  float grad_scale = 1;
};

void update(ThreadPool& pool, const OptimList& list, const SgdStep& step);
void update(ThreadPool& pool, const OptimList& list, const MomentumStep& step);
void update(ThreadPool& pool, const OptimList& list, const AdamStep& step);
void update(ThreadPool& pool, const OptimList& list, const AdagradStep& step);
void update(ThreadPool& pool, const OptimList& list, const LionStep& step);

// One tensor by the calling thread alone; the same bits as above.
void update(const OptimTensor& tensor, const SgdStep& step);
void update(const OptimTensor& tensor, const AdagradStep& step);

}  // namespace onnxtrain::simd
