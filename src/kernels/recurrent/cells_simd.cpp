// The cells of recurrent layers over vectors.
#include "kernels/common/targets.hpp"
#include "kernels/recurrent/cells.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/recurrent/cells_simd.cpp"
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
using vm::add;
using vm::D;
using vm::fma;
using vm::mul;
using vm::Pack;
using vm::sub;
using vm::V;

constexpr int kTogether = 2;  // vectors side by side

// Input of gate k at unit j.
template <int N, class Io>
HWY_INLINE Pack<N> gate(Io io, const CellRow& r, int64_t k, int64_t j) {
  return add(vm::load_pack<N>(io, r.x + k * r.x_stride + j),
             vm::load_pack<N>(io, r.z + k * r.z_stride + j));
}
template <int N, class Io>
HWY_INLINE void keep(Io io, const CellRow& r, int64_t k, int64_t j, const Pack<N>& v) {
  vm::store_pack(io, v, r.save + k * r.save_stride + j);
}

constexpr float kFar = 87.0f;  // exp of less is no normal number
// e: exp(-|x|)
template <int N>
HWY_INLINE Pack<N> sigmoid_from(const Pack<N>& x, const Pack<N>& e) {
  return div(select(vm::below(x, 0.0f), e, vm::set(1.0f)), add(e, vm::set(1.0f)));
}
template <int N>
HWY_INLINE Pack<N> sigmoid(const Pack<N>& x) {
  Pack<N> n;
  const Pack<N> e = vm::exp_reduced(neg(vm::at_most(abs(x), kFar)), &n);
  return sigmoid_from(x, mul(add(e, vm::set(1.0f)), pow2(n)));
}
// sigmoid(a) and tanh(b): one exponential for both
template <int N>
HWY_INLINE void sigmoid_tanh(const Pack<N>& a, const Pack<N>& b, Pack<N>* s, Pack<N>* t) {
  Pack<2 * N> n;
  const Pack<2 * N> e = vm::exp_reduced(
      join(neg(vm::at_most(abs(a), kFar)), mul(vm::at_most(abs(b), 10.0f), vm::set(-2.0f))), &n);
  const Pack<2 * N> power = pow2(n);
  Pack<N> ea, eb, pa, pb;
  split(e, &ea, &eb);
  split(power, &pa, &pb);
  *s = sigmoid_from(a, mul(add(ea, vm::set(1.0f)), pa));
  const Pack<N> m = fma(pb, eb, sub(pb, vm::set(1.0f)));
  *t = copy_sign(div(m, add(m, vm::set(2.0f))), b);
}

// The new state of the units from j on.
template <int N, class Io>
HWY_INLINE void put_state(Io io, const CellRow& r, int64_t j, const Pack<N>& h) {
  vm::store_pack(io, h, r.h + j);
  if (r.y) vm::store_pack(io, h, r.y + j);
}

HWY_INLINE void lstm_row(const CellRow& r) {
  each_pack<kTogether>(r.n, [&](auto io, auto size, int64_t j) HWY_ATTR {
    constexpr int N = decltype(size)::value;
    Pack<N> i, f, o, g;
    split(sigmoid(join(gate<N>(io, r, 0, j), gate<N>(io, r, 2, j))), &i, &f);
    sigmoid_tanh(gate<N>(io, r, 1, j), gate<N>(io, r, 3, j), &o, &g);
    const Pack<N> before = vm::load_pack<N>(io, r.c + j);
    const Pack<N> after = fma(f, before, mul(i, g));
    const Pack<N> t = vm::tanh(after);
    if (r.save) {
      keep(io, r, 0, j, i);
      keep(io, r, 1, j, o);
      keep(io, r, 2, j, f);
      keep(io, r, 3, j, g);
      keep(io, r, 4, j, vm::load_pack<N>(io, r.h_before + j));
      keep(io, r, 5, j, before);
      keep(io, r, 6, j, after);
      keep(io, r, 7, j, t);
    }
    vm::store_pack(io, after, r.c + j);
    put_state(io, r, j, mul(t, o));
  });
}

// (1 - z) g + z h
template <int N>
HWY_INLINE Pack<N> mix(const Pack<N>& z, const Pack<N>& g, const Pack<N>& h) {
  return fma(z, sub(h, g), g);
}

HWY_INLINE void gru_row(const CellRow& r, const float* bias) {
  each_pack<kTogether>(r.n, [&](auto io, auto size, int64_t j) HWY_ATTR {
    constexpr int N = decltype(size)::value;
    Pack<N> z, reset;
    split(sigmoid(join(gate<N>(io, r, 0, j), gate<N>(io, r, 1, j))), &z, &reset);
    const Pack<N> part =
        add(vm::load_pack<N>(io, r.z + 2 * r.z_stride + j), vm::load_pack<N>(io, bias + j));
    const Pack<N> g = vm::tanh(fma(reset, part, vm::load_pack<N>(io, r.x + 2 * r.x_stride + j)));
    const Pack<N> before = vm::load_pack<N>(io, r.h_before + j);
    if (r.save) {
      keep(io, r, 0, j, z);
      keep(io, r, 1, j, reset);
      keep(io, r, 2, j, g);
      keep(io, r, 3, j, before);
      keep(io, r, 4, j, part);
    }
    put_state(io, r, j, mix(z, g, before));
  });
}

HWY_INLINE void gru_gates_row(const CellRow& r) {
  each_pack<kTogether>(r.n, [&](auto io, auto size, int64_t j) HWY_ATTR {
    constexpr int N = decltype(size)::value;
    Pack<N> z, open;
    split(sigmoid(join(gate<N>(io, r, 0, j), gate<N>(io, r, 1, j))), &z, &open);
    const Pack<N> before = vm::load_pack<N>(io, r.h_before + j), seen = mul(open, before);
    vm::store_pack(io, z, r.c + j);
    vm::store_pack(io, seen, r.reset + j);
    if (r.save) {
      keep(io, r, 0, j, z);
      keep(io, r, 1, j, open);
      keep(io, r, 3, j, before);
      keep(io, r, 4, j, seen);
    }
  });
}

HWY_INLINE void gru_state_row(const CellRow& r) {
  each_pack<kTogether>(r.n, [&](auto io, auto size, int64_t j) HWY_ATTR {
    constexpr int N = decltype(size)::value;
    const Pack<N> g = vm::tanh(
        add(vm::load_pack<N>(io, r.x + 2 * r.x_stride + j), vm::load_pack<N>(io, r.z + j)));
    if (r.save) keep(io, r, 2, j, g);
    put_state(io, r, j,
              mix(vm::load_pack<N>(io, r.c + j), g, vm::load_pack<N>(io, r.h_before + j)));
  });
}

template <bool kRelu>
HWY_INLINE void rnn_row(const CellRow& r) {
  each_pack<2 * kTogether>(r.n, [&](auto io, auto size, int64_t j) HWY_ATTR {
    constexpr int N = decltype(size)::value;
    const Pack<N> a = gate<N>(io, r, 0, j);
    const Pack<N> y = kRelu ? select(vm::below(a, 0.0f), vm::set(0.0f), a) : vm::tanh(a);
    if (r.save) {
      keep(io, r, 0, j, y);
      keep(io, r, 1, j, vm::load_pack<N>(io, r.h_before + j));
    }
    put_state(io, r, j, y);
  });
}

void lstm(const CellRow* rows, int64_t count) {
  for (int64_t i = 0; i < count; ++i) lstm_row(rows[i]);
}
void gru(const CellRow* rows, int64_t count, const float* bias) {
  for (int64_t i = 0; i < count; ++i) gru_row(rows[i], bias);
}
void gru_first(const CellRow* rows, int64_t count) {
  for (int64_t i = 0; i < count; ++i) gru_gates_row(rows[i]);
}
void gru_second(const CellRow* rows, int64_t count) {
  for (int64_t i = 0; i < count; ++i) gru_state_row(rows[i]);
}
void rnn_tanh(const CellRow* rows, int64_t count) {
  for (int64_t i = 0; i < count; ++i) rnn_row<false>(rows[i]);
}
void rnn_relu(const CellRow* rows, int64_t count) {
  for (int64_t i = 0; i < count; ++i) rnn_row<true>(rows[i]);
}

// The slopes of sigmoid and tanh, from their values.
HWY_INLINE V sigmoid_slope(V y) { return hn::Mul(y, hn::Sub(vm::set(1.0f), y)); }
HWY_INLINE V tanh_slope(V y) { return hn::NegMulAdd(y, y, vm::set(1.0f)); }
template <class Io>
HWY_INLINE V saved(Io io, const CellGradRow& r, int64_t k, int64_t j) {
  return io.load(r.save + k * r.save_stride + j);
}
template <class Io>
HWY_INLINE void put(Io io, const CellGradRow& r, int64_t k, int64_t j, V v) {
  io.store(v, r.dz + k * r.dz_stride + j);
}

// The gradient of the new state.
template <class Io>
HWY_INLINE V arriving(Io io, const CellGradRow& r, int64_t j) {
  V d = io.load(r.dh + j);
  if (r.sent) d = hn::Add(d, io.load(r.sent + j));
  if (r.dy) d = hn::Add(d, io.load(r.dy + j));
  return d;
}

void lstm_grad(const CellGradRow& r) {
  each_vector(r.n, [&](auto io, int64_t j) HWY_ATTR {
    const V i = saved(io, r, 0, j), o = saved(io, r, 1, j), f = saved(io, r, 2, j),
            g = saved(io, r, 3, j), before = saved(io, r, 5, j), t = saved(io, r, 7, j),
            d = arriving(io, r, j);
    const V all = hn::MulAdd(hn::Mul(d, o), tanh_slope(t), io.load(r.dc + j));
    put(io, r, 0, j, hn::Mul(hn::Mul(all, g), sigmoid_slope(i)));
    put(io, r, 1, j, hn::Mul(hn::Mul(d, t), sigmoid_slope(o)));
    put(io, r, 2, j, hn::Mul(hn::Mul(all, before), sigmoid_slope(f)));
    put(io, r, 3, j, hn::Mul(hn::Mul(all, i), tanh_slope(g)));
    io.store(hn::Mul(all, f), r.dc + j);
    io.store(hn::Zero(D()), r.dh + j);
  });
}

template <bool kResetFirst>
void gru_grad(const CellGradRow& r) {
  each_vector(r.n, [&](auto io, int64_t j) HWY_ATTR {
    const V z = saved(io, r, 0, j), reset = saved(io, r, 1, j), g = saved(io, r, 2, j),
            before = saved(io, r, 3, j), d = arriving(io, r, j);
    const V dg = hn::Mul(hn::Mul(d, hn::Sub(vm::set(1.0f), z)), tanh_slope(g));
    put(io, r, 0, j, hn::Mul(hn::Mul(d, hn::Sub(before, g)), sigmoid_slope(z)));
    put(io, r, 2, j, dg);
    if constexpr (!kResetFirst)
      put(io, r, 1, j, hn::Mul(hn::Mul(dg, saved(io, r, 4, j)), sigmoid_slope(reset)));
    put(io, r, 3, j, kResetFirst ? dg : hn::Mul(dg, reset));
    io.store(hn::Mul(d, z), r.dh + j);
  });
}

void gru_grad_reset(const CellGradRow& r, const float* back) {
  each_vector(r.n, [&](auto io, int64_t j) HWY_ATTR {
    const V reset = saved(io, r, 1, j), before = saved(io, r, 3, j), d = io.load(back + j);
    put(io, r, 1, j, hn::Mul(hn::Mul(d, before), sigmoid_slope(reset)));
    io.store(hn::MulAdd(d, reset, io.load(r.dh + j)), r.dh + j);
  });
}

template <bool kRelu>
void rnn_grad(const CellGradRow& r) {
  each_vector(r.n, [&](auto io, int64_t j) HWY_ATTR {
    const V y = saved(io, r, 0, j), d = arriving(io, r, j);
    put(io, r, 0, j, kRelu ? hn::IfThenElseZero(y > hn::Zero(D()), d) : hn::Mul(d, tanh_slope(y)));
    io.store(hn::Zero(D()), r.dh + j);
  });
}

void rnn_tanh_grad(const CellGradRow& r) { rnn_grad<false>(r); }
void rnn_relu_grad(const CellGradRow& r) { rnn_grad<true>(r); }
void gru_grad_first(const CellGradRow& r) { gru_grad<true>(r); }
void gru_grad_last(const CellGradRow& r) { gru_grad<false>(r); }

}  // namespace HWY_NAMESPACE
}  // namespace onnxtrain::simd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace onnxtrain::simd {
HWY_EXPORT(lstm);
HWY_EXPORT(gru);
HWY_EXPORT(gru_first);
HWY_EXPORT(gru_second);
HWY_EXPORT(rnn_tanh);
HWY_EXPORT(rnn_relu);
HWY_EXPORT(lstm_grad);
HWY_EXPORT(gru_grad_first);
HWY_EXPORT(gru_grad_last);
HWY_EXPORT(gru_grad_reset);
HWY_EXPORT(rnn_tanh_grad);
HWY_EXPORT(rnn_relu_grad);

void lstm_cells(const CellRow* rows, int64_t count) { HWY_DYNAMIC_DISPATCH(lstm)(rows, count); }
void gru_cells(const CellRow* rows, int64_t count, const float* bias) {
  HWY_DYNAMIC_DISPATCH(gru)(rows, count, bias);
}
void gru_gates(const CellRow* rows, int64_t count) { HWY_DYNAMIC_DISPATCH(gru_first)(rows, count); }
void gru_states(const CellRow* rows, int64_t count) {
  HWY_DYNAMIC_DISPATCH(gru_second)(rows, count);
}
void rnn_cells(const CellRow* rows, int64_t count, bool relu) {
  relu ? HWY_DYNAMIC_DISPATCH(rnn_relu)(rows, count) : HWY_DYNAMIC_DISPATCH(rnn_tanh)(rows, count);
}
void lstm_cell_grad(const CellGradRow& r) { HWY_DYNAMIC_DISPATCH(lstm_grad)(r); }
void gru_cell_grad(const CellGradRow& r, bool reset_first) {
  reset_first ? HWY_DYNAMIC_DISPATCH(gru_grad_first)(r) : HWY_DYNAMIC_DISPATCH(gru_grad_last)(r);
}
void gru_reset_grad(const CellGradRow& r, const float* back) {
  HWY_DYNAMIC_DISPATCH(gru_grad_reset)(r, back);
}
void rnn_cell_grad(const CellGradRow& r, bool relu) {
  relu ? HWY_DYNAMIC_DISPATCH(rnn_relu_grad)(r) : HWY_DYNAMIC_DISPATCH(rnn_tanh_grad)(r);
}

}  // namespace onnxtrain::simd
#endif
