// Widening and rounding around a float32 kernel.
#include "ops/common/widened_kernel.hpp"

namespace onnxtrain::ops {

namespace {

struct Operand {
  int index;
  DType dtype;
  int64_t size;
  size_t offset;  // in the workspace
};

constexpr int64_t kCastGrain = 8 * 1024;

void widen(const Run& r, const Operand& o, const void* from, float* to) {
  const auto* bits = static_cast<const uint16_t*>(from);
  parallel_for(*r.pool, o.size, kCastGrain, [&](int64_t b, int64_t e) {
    if (o.dtype == DType::kFloat16) {
      for (int64_t i = b; i < e; ++i) to[i] = half_to_float(bits[i]);
    } else {
      for (int64_t i = b; i < e; ++i) to[i] = bf16_to_float(bits[i]);
    }
  });
}

void narrow(const Run& r, const Operand& o, const float* from, void* to) {
  auto* bits = static_cast<uint16_t*>(to);
  parallel_for(*r.pool, o.size, kCastGrain, [&](int64_t b, int64_t e) {
    if (o.dtype == DType::kFloat16) {
      for (int64_t i = b; i < e; ++i) bits[i] = float_to_half(from[i]);
    } else {
      for (int64_t i = b; i < e; ++i) bits[i] = float_to_bf16(from[i]);
    }
  });
}

}  // namespace

Kernel in_float(Prepare& p, Kernel (*make)(Prepare&)) {
  std::vector<TensorType> in, out;
  std::vector<const Tensor*> values;
  std::vector<Operand> ins, outs;
  size_t bytes = 0;
  auto widened = [&](TensorType t, int index, std::vector<Operand>& list) {
    if (!is_16bit_float(t.dtype)) return t;
    list.push_back({index, t.dtype, t.size(), bytes});
    bytes += (size_t(t.size()) * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
    t.dtype = DType::kFloat;
    return t;
  };
  for (int i = 0; i < p.inputs(); ++i) {
    in.push_back(widened(p.in(i), i, ins));
    values.push_back(is_16bit_float(p.in(i).dtype) ? nullptr : p.constant(i));
  }
  for (int i = 0; i < p.outputs(); ++i)
    out.push_back(p.wants(i) ? widened(p.out(i), i, outs) : p.out(i));
  Prepare inner(p.node(), std::move(in), std::move(out), std::move(values), p.pool());
  Kernel kernel = make(inner);
  if (!kernel) return p.refuse(std::move(inner.refusal));
  p.workspace = bytes + inner.workspace;
  size_t n_in = size_t(p.inputs()), n_out = size_t(p.outputs());
  std::vector<void*> in_ptr(n_in), out_ptr(n_out);
  return [=, kernel = std::move(kernel)](const Run& r) mutable {
    char* base = static_cast<char*>(r.workspace);
    std::copy_n(r.inputs, n_in, in_ptr.begin());
    std::copy_n(r.outputs, n_out, out_ptr.begin());
    for (const Operand& o : ins) {
      auto* to = reinterpret_cast<float*>(base + o.offset);
      widen(r, o, r.inputs[o.index], to);
      in_ptr[size_t(o.index)] = to;
    }
    for (const Operand& o : outs) out_ptr[size_t(o.index)] = base + o.offset;
    Run inner_run = r;
    inner_run.inputs = in_ptr.data();
    inner_run.outputs = out_ptr.data();
    inner_run.workspace = base + bytes;
    kernel(inner_run);
    for (const Operand& o : outs)
      narrow(r, o, reinterpret_cast<const float*>(base + o.offset), r.outputs[o.index]);
  };
}

}  // namespace onnxtrain::ops
