// Pools of channels-last float tensors and their gradients: vectors go along the channels. Ties and
// NaN of the maximum as in kernels/pool/pool_ref.hpp: the first largest element, or the first NaN.
#pragma once
#include <vector>

#include "core/threads.hpp"
#include "kernels/common/window.hpp"

namespace onnxtrain::simd {

class ChannelPool {
 public:
  ChannelPool(const kernels::Window& w, int64_t batch, int64_t channels);

  void max(ThreadPool& pool, const float* x, float* y) const;
  void max_grad(ThreadPool& pool, const float* dy, const float* x, float* dx) const;
  // counts: what each output position divides by
  void average(ThreadPool& pool, const float* counts, const float* x, float* y) const;
  void average_grad(ThreadPool& pool, const float* counts, const float* dy, float* dx) const;

  // One image, channels [begin, end): where the taps of output o lie in the input, in order.
  struct Taps {
    const int64_t* first;  // [outputs + 1]
    const int64_t* at;
    int64_t outputs, inputs, channels;
  };

 private:
  Taps taps() const;
  // f(image, first channel, end)
  template <class F>
  void for_parts(ThreadPool& pool, F f) const;

  int64_t batch_, channels_, inputs_;
  std::vector<int64_t> first_, at_;
};

}  // namespace onnxtrain::simd
