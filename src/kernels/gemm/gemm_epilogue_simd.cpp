// What happens to a finished tile of C while it is in the first-level cache: bias, residual,
// activation, multiplication by an activation's gradient.
#include "kernels/common/targets.hpp"
#include "kernels/gemm/gemm_simd.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemm_epilogue_simd.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
// after highway.h
#include "kernels/common/loops-inl.hpp"
#include "kernels/common/packs-inl.hpp"
#include "kernels/common/vmath-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace onnxtrain::simd {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

using vm::mul;
using vm::Pack;

template <Activation A, int N>
HWY_INLINE Pack<N> activate(const Pack<N>& x) {
  if constexpr (A == Activation::kRelu)  // NaN stays NaN
    return select(vm::below(x, 0.0f), vm::set(0.0f), x);
  if constexpr (A == Activation::kGelu) return vm::gelu(x);
  if constexpr (A == Activation::kGeluTanh) return vm::gelu_tanh(x);
  if constexpr (A == Activation::kSigmoid) return vm::sigmoid(x);
  if constexpr (A == Activation::kTanh) return vm::tanh(x);
  if constexpr (A == Activation::kSilu) return vm::silu(x);
  return x;
}

template <Activation A, int N>
HWY_INLINE Pack<N> times_gradient(const Pack<N>& g, const Pack<N>& s) {
  if constexpr (A == Activation::kRelu) return select(vm::above(s, 0.0f), g, vm::set(0.0f));
  if constexpr (A == Activation::kGelu) return mul(g, vm::gelu_grad(s));
  if constexpr (A == Activation::kGeluTanh) return mul(g, vm::gelu_tanh_grad(s));
  if constexpr (A == Activation::kSigmoid)
    return mul(g, mul(s, nfma(s, vm::set(1.0f), vm::set(1.0f))));
  if constexpr (A == Activation::kTanh) return mul(g, nfma(s, s, vm::set(1.0f)));
  if constexpr (A == Activation::kSilu) return mul(g, vm::silu_grad(s));
  return g;
}

// N vectors of row i from column j on, up to the activation.
template <int N, class Io>
HWY_INLINE Pack<N> sum(Io io, const float* c, int64_t i, int64_t j, const TileEpilogue& e) {
  Pack<N> v = vm::load_pack<N>(io, c);
  if (e.bias_col) v = add(v, vm::load_pack<N>(io, e.bias_col + j));
  if (e.bias_row) v = add(v, hn::Set(D(), e.bias_row[i]));
  if (e.residual) v = add(v, vm::load_pack<N>(io, e.residual + i * e.ld_residual + j));
  if (e.pre) vm::store_pack(io, v, e.pre + i * e.ld_pre + j);
  return v;
}

// c = f(sum, saved): two rows of two vectors side by side where there are so many.
template <bool kSaved, class F>
HWY_INLINE void each(int64_t m, int64_t n, float* c, int64_t ldc, const TileEpilogue& e, F f) {
  const int64_t lanes = int64_t(hn::Lanes(D()));
  auto load_saved = [&]([[maybe_unused]] auto io, auto size, [[maybe_unused]] int64_t i,
                        [[maybe_unused]] int64_t j) HWY_ATTR {
    constexpr int kSize = decltype(size)::value;
    if constexpr (kSaved) return vm::load_pack<kSize>(io, e.saved + i * e.ld_saved + j);
    return Pack<kSize>();
  };
  int64_t i = 0;
  for (; n == 2 * lanes && i + 2 <= m; i += 2, c += 2 * ldc) {
    const WholeIo io;
    const Pack<4> v = join(sum<2>(io, c, i, 0, e), sum<2>(io, c + ldc, i + 1, 0, e));
    Pack<2> lo, hi;
    const Pack<4> s =
        join(load_saved(io, PackSize<2>(), i, 0), load_saved(io, PackSize<2>(), i + 1, 0));
    split(f(v, s), &lo, &hi);
    vm::store_pack(io, lo, c);
    vm::store_pack(io, hi, c + ldc);
  }
  for (; i < m; ++i, c += ldc) {
    each_pack<4>(n, [&](auto io, auto size, int64_t j) HWY_ATTR {
      constexpr int kSize = decltype(size)::value;
      vm::store_pack(io, f(sum<kSize>(io, c + j, i, j, e), load_saved(io, size, i, j)), c + j);
    });
  }
}

template <Activation A>
void with_act(int64_t m, int64_t n, float* c, int64_t ldc, const TileEpilogue& e) {
  each<false>(m, n, c, ldc, e, [](const auto& v, const auto&) HWY_ATTR { return activate<A>(v); });
}
template <Activation A>
void with_grad(int64_t m, int64_t n, float* c, int64_t ldc, const TileEpilogue& e) {
  each<true>(m, n, c, ldc, e,
             [](const auto& v, const auto& s) HWY_ATTR { return times_gradient<A>(v, s); });
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
