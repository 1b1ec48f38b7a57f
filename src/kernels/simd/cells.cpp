// The cells of recurrent layers over vectors.
#include "kernels/simd/cells.hpp"

#include "kernels/simd/targets.hpp"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/simd/cells.cpp"
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

// Input of gate k at unit j.
template <class Io>
HWY_INLINE V gate(Io io, const CellRow& r, int64_t k, int64_t j) {
  return hn::Add(io.load(r.x + k * r.x_stride + j), io.load(r.z + k * r.z_stride + j));
}
template <class Io>
HWY_INLINE void keep(Io io, const CellRow& r, int64_t k, int64_t j, V v) {
  io.store(v, r.save + k * r.save_stride + j);
}

void lstm(const CellRow& r) {
  each_vector(r.n, [&](auto io, int64_t j) HWY_ATTR {
    const V i = vm::sigmoid(gate(io, r, 0, j));
    const V o = vm::sigmoid(gate(io, r, 1, j));
    const V f = vm::sigmoid(gate(io, r, 2, j));
    const V g = vm::tanh(gate(io, r, 3, j));
    const V before = io.load(r.c + j);
    const V after = hn::MulAdd(f, before, hn::Mul(i, g));
    const V t = vm::tanh(after);
    if (r.save) {
      keep(io, r, 0, j, i);
      keep(io, r, 1, j, o);
      keep(io, r, 2, j, f);
      keep(io, r, 3, j, g);
      keep(io, r, 4, j, io.load(r.h_before + j));
      keep(io, r, 5, j, before);
      keep(io, r, 6, j, after);
      keep(io, r, 7, j, t);
    }
    io.store(after, r.c + j);
    io.store(hn::Mul(t, o), r.h + j);
  });
}

// (1 - z) g + z h
HWY_INLINE V mix(V z, V g, V h) { return hn::MulAdd(z, hn::Sub(h, g), g); }

void gru(const CellRow& r, const float* bias) {
  each_vector(r.n, [&](auto io, int64_t j) HWY_ATTR {
    const V z = vm::sigmoid(gate(io, r, 0, j));
    const V reset = vm::sigmoid(gate(io, r, 1, j));
    const V part = hn::Add(io.load(r.z + 2 * r.z_stride + j), io.load(bias + j));
    const V g = vm::tanh(hn::MulAdd(reset, part, io.load(r.x + 2 * r.x_stride + j)));
    const V before = io.load(r.h_before + j);
    if (r.save) {
      keep(io, r, 0, j, z);
      keep(io, r, 1, j, reset);
      keep(io, r, 2, j, g);
      keep(io, r, 3, j, before);
      keep(io, r, 4, j, part);
    }
    io.store(mix(z, g, before), r.h + j);
  });
}

void gru_first(const CellRow& r, float* update, float* reset) {
  each_vector(r.n, [&](auto io, int64_t j) HWY_ATTR {
    const V z = vm::sigmoid(gate(io, r, 0, j));
    const V open = vm::sigmoid(gate(io, r, 1, j));
    const V before = io.load(r.h_before + j), seen = hn::Mul(open, before);
    io.store(z, update + j);
    io.store(seen, reset + j);
    if (r.save) {
      keep(io, r, 0, j, z);
      keep(io, r, 1, j, open);
      keep(io, r, 3, j, before);
      keep(io, r, 4, j, seen);
    }
  });
}

void gru_second(const CellRow& r, const float* update) {
  each_vector(r.n, [&](auto io, int64_t j) HWY_ATTR {
    const V g = vm::tanh(hn::Add(io.load(r.x + 2 * r.x_stride + j), io.load(r.z + j)));
    if (r.save) keep(io, r, 2, j, g);
    io.store(mix(io.load(update + j), g, io.load(r.h_before + j)), r.h + j);
  });
}

template <bool kRelu>
void rnn(const CellRow& r) {
  each_vector(r.n, [&](auto io, int64_t j) HWY_ATTR {
    const V a = gate(io, r, 0, j), y = kRelu ? vm::relu(a) : vm::tanh(a);
    if (r.save) {
      keep(io, r, 0, j, y);
      keep(io, r, 1, j, io.load(r.h_before + j));
    }
    io.store(y, r.h + j);
  });
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

void lstm_grad(const CellGradRow& r) {
  each_vector(r.n, [&](auto io, int64_t j) HWY_ATTR {
    const V i = saved(io, r, 0, j), o = saved(io, r, 1, j), f = saved(io, r, 2, j),
            g = saved(io, r, 3, j), before = saved(io, r, 5, j), t = saved(io, r, 7, j),
            d = io.load(r.dh + j);
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
            before = saved(io, r, 3, j), d = io.load(r.dh + j);
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
    const V y = saved(io, r, 0, j), d = io.load(r.dh + j);
    put(io, r, 0, j,
        kRelu ? hn::IfThenElseZero(y > hn::Zero(D()), d) : hn::Mul(d, tanh_slope(y)));
    io.store(hn::Zero(D()), r.dh + j);
  });
}

void rnn_tanh(const CellRow& r) { rnn<false>(r); }
void rnn_relu(const CellRow& r) { rnn<true>(r); }
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

void lstm_cell(const CellRow& r) { HWY_DYNAMIC_DISPATCH(lstm)(r); }
void gru_cell(const CellRow& r, const float* bias) { HWY_DYNAMIC_DISPATCH(gru)(r, bias); }
void gru_gates(const CellRow& r, float* update, float* reset) {
  HWY_DYNAMIC_DISPATCH(gru_first)(r, update, reset);
}
void gru_state(const CellRow& r, const float* update) {
  HWY_DYNAMIC_DISPATCH(gru_second)(r, update);
}
void rnn_cell(const CellRow& r, bool relu) {
  relu ? HWY_DYNAMIC_DISPATCH(rnn_relu)(r) : HWY_DYNAMIC_DISPATCH(rnn_tanh)(r);
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
