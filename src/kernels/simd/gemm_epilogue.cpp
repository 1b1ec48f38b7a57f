// What happens to a finished tile of C while it is in the first-level cache: bias, residual,
// activation, multiplication by an activation's gradient.
#include "kernels/simd/gemm_kernels.hpp"
#include "kernels/simd/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/gemm_epilogue.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// after highway.h
#include "kernels/simd/loops-inl.hpp"
#include "kernels/simd/vmath-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

template <Activation A>
HWY_INLINE V activate(V x) {
  if constexpr (A == Activation::kRelu) return vm::relu(x);
  if constexpr (A == Activation::kGelu) return vm::gelu(x);
  if constexpr (A == Activation::kGeluTanh) return vm::gelu_tanh(x);
  if constexpr (A == Activation::kSigmoid) return vm::sigmoid(x);
  if constexpr (A == Activation::kTanh) return vm::tanh(x);
  if constexpr (A == Activation::kSilu) return vm::silu(x);
  return x;
}

template <Activation A>
HWY_INLINE V times_gradient(V g, V s) {
  const V one = hn::Set(D(), 1.0f);
  if constexpr (A == Activation::kRelu) return hn::IfThenElseZero(s > hn::Zero(D()), g);
  if constexpr (A == Activation::kGelu) return hn::Mul(g, vm::gelu_grad(s));
  if constexpr (A == Activation::kGeluTanh) return hn::Mul(g, vm::gelu_tanh_grad(s));
  if constexpr (A == Activation::kSigmoid) return hn::Mul(g, hn::Mul(s, hn::Sub(one, s)));
  if constexpr (A == Activation::kTanh) return hn::Mul(g, hn::NegMulAdd(s, s, one));
  if constexpr (A == Activation::kSilu) return hn::Mul(g, vm::silu_grad(s));
  return g;
}

template <class Io, class F>
HWY_INLINE void one(Io io, float* c, int64_t i, int64_t j, const TileEpilogue& e, F f) {
  V v = io.load(c);
  if (e.bias_col) v = hn::Add(v, io.load(e.bias_col + j));
  if (e.bias_row) v = hn::Add(v, hn::Set(D(), e.bias_row[i]));
  if (e.residual) v = hn::Add(v, io.load(e.residual + i * e.ld_residual + j));
  if (e.pre) io.store(v, e.pre + i * e.ld_pre + j);
  io.store(f(io, v, i, j), c);
}

template <class F>
HWY_INLINE void each(int64_t m, int64_t n, float* c, int64_t ldc, const TileEpilogue& e, F f) {
  for (int64_t i = 0; i < m; ++i) {
    each_vector(n, [&](auto io, int64_t j) HWY_ATTR { one(io, c + i * ldc + j, i, j, e, f); });
  }
}

template <Activation A>
void with_act(int64_t m, int64_t n, float* c, int64_t ldc, const TileEpilogue& e) {
  each(m, n, c, ldc, e, [](auto, V v, int64_t, int64_t) { return activate<A>(v); });
}
template <Activation A>
void with_grad(int64_t m, int64_t n, float* c, int64_t ldc, const TileEpilogue& e) {
  each(m, n, c, ldc, e, [&](auto io, V v, int64_t i, int64_t j) {
    return times_gradient<A>(v, io.load(e.saved + i * e.ld_saved + j));
  });
}

void epilogue(int64_t m, int64_t n, float* c, int64_t ldc, const TileEpilogue& e) {
  using A = Activation;
  TileEpilogue rest = e;
  if (e.act != A::kNone || e.grad == A::kNone) {
    switch (e.act) {
      case A::kNone:
        with_act<A::kNone>(m, n, c, ldc, e);
        break;
      case A::kRelu:
        with_act<A::kRelu>(m, n, c, ldc, e);
        break;
      case A::kGelu:
        with_act<A::kGelu>(m, n, c, ldc, e);
        break;
      case A::kGeluTanh:
        with_act<A::kGeluTanh>(m, n, c, ldc, e);
        break;
      case A::kSigmoid:
        with_act<A::kSigmoid>(m, n, c, ldc, e);
        break;
      case A::kTanh:
        with_act<A::kTanh>(m, n, c, ldc, e);
        break;
      case A::kSilu:
        with_act<A::kSilu>(m, n, c, ldc, e);
        break;
    }
    rest.bias_col = rest.bias_row = rest.residual = nullptr;
    rest.pre = nullptr;
  }
  switch (e.grad) {
    case A::kNone:
      break;
    case A::kRelu:
      with_grad<A::kRelu>(m, n, c, ldc, rest);
      break;
    case A::kGelu:
      with_grad<A::kGelu>(m, n, c, ldc, rest);
      break;
    case A::kGeluTanh:
      with_grad<A::kGeluTanh>(m, n, c, ldc, rest);
      break;
    case A::kSigmoid:
      with_grad<A::kSigmoid>(m, n, c, ldc, rest);
      break;
    case A::kTanh:
      with_grad<A::kTanh>(m, n, c, ldc, rest);
      break;
    case A::kSilu:
      with_grad<A::kSilu>(m, n, c, ldc, rest);
      break;
  }
}

EpilogueKernel get_epilogue() { return epilogue; }

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxtrain::simd {
HWY_EXPORT(get_epilogue);
EpilogueKernel gemm_epilogue() { return HWY_DYNAMIC_DISPATCH(get_epilogue)(); }
}  // namespace onnxtrain::simd
#endif
