// The LSTM cell over vectors.
#include "kernels/simd/lstm.hpp"

#include "kernels/simd/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/lstm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// after highway.h
#include "kernels/simd/loops-inl.hpp"
#include "kernels/simd/vmath-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using vm::D;
using vm::V;

void cell(const float* x, const float* z, float* h, float* c, float* save, int64_t n) {
  each_vector(n, [&](auto io, int64_t j) HWY_ATTR {
    const V i = vm::sigmoid(hn::Add(io.load(x + j), io.load(z + j)));
    const V o = vm::sigmoid(hn::Add(io.load(x + n + j), io.load(z + n + j)));
    const V f = vm::sigmoid(hn::Add(io.load(x + 2 * n + j), io.load(z + 2 * n + j)));
    const V g = vm::tanh(hn::Add(io.load(x + 3 * n + j), io.load(z + 3 * n + j)));
    const V before = io.load(c + j);
    const V after = hn::MulAdd(f, before, hn::Mul(i, g));
    const V t = vm::tanh(after);
    if (save) {
      io.store(i, save + j);
      io.store(o, save + n + j);
      io.store(f, save + 2 * n + j);
      io.store(g, save + 3 * n + j);
      io.store(io.load(h + j), save + 4 * n + j);
      io.store(before, save + 5 * n + j);
      io.store(after, save + 6 * n + j);
      io.store(t, save + 7 * n + j);
    }
    io.store(after, c + j);
    io.store(hn::Mul(t, o), h + j);
  });
}

void cell_grad(const float* save, const float* dh, float* dc, float* dz, int64_t n) {
  const V one = hn::Set(D(), 1.0f);
  each_vector(n, [&](auto io, int64_t j) HWY_ATTR {
    const V i = io.load(save + j), o = io.load(save + n + j), f = io.load(save + 2 * n + j),
            g = io.load(save + 3 * n + j), before = io.load(save + 5 * n + j),
            t = io.load(save + 7 * n + j), d = io.load(dh + j);
    // the slopes of sigmoid and tanh, from their values
    auto rise = [&](V y) HWY_ATTR { return hn::Mul(y, hn::Sub(one, y)); };
    const V all = hn::MulAdd(hn::Mul(d, o), hn::NegMulAdd(t, t, one), io.load(dc + j));
    io.store(hn::Mul(hn::Mul(all, g), rise(i)), dz + j);
    io.store(hn::Mul(hn::Mul(d, t), rise(o)), dz + n + j);
    io.store(hn::Mul(hn::Mul(all, before), rise(f)), dz + 2 * n + j);
    io.store(hn::Mul(hn::Mul(all, i), hn::NegMulAdd(g, g, one)), dz + 3 * n + j);
    io.store(hn::Mul(all, f), dc + j);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxtrain::simd {
HWY_EXPORT(cell);
HWY_EXPORT(cell_grad);

void lstm_cell(const float* x, const float* z, float* h, float* c, float* save, int64_t n) {
  HWY_DYNAMIC_DISPATCH(cell)(x, z, h, c, save, n);
}
void lstm_cell_grad(const float* save, const float* dh, float* dc, float* dz, int64_t n) {
  HWY_DYNAMIC_DISPATCH(cell_grad)(save, dh, dc, dz, n);
}

}  // namespace onnxtrain::simd
#endif
