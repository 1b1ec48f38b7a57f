// ConvInteger and QLinearConv: convolutions of 8-bit integers.
#include <cmath>

#include "ops/common/cast_kernel.hpp"
#include "ops/nn/conv_shape.hpp"

namespace onnxtrain::ops {

namespace {

using kernels::ConvShape;

bool is_byte(DType t) { return t == DType::kUint8 || t == DType::kInt8; }

void check_point(const Shape& s, int64_t channels, const char* what, bool per_channel) {
  int64_t n = num_elements(s);
  if (s.size() > 1 || (n != 1 && !(per_channel && n == channels)))
    model_error("OT1146", cat(what, " has shape ", to_string(s)));
}

void conv_integer_shape(ShapeCtx& c) {
  if (!is_byte(c.dtype(0)) || !is_byte(c.dtype(1)))
    model_error("OT1146", "ConvInteger needs 8-bit inputs");
  ConvShape s = conv_shape_of(c.node(), c.shape(0), c.shape(1));
  if (c.has(2)) check_point(c.shape(2), 0, "x_zero_point", false);
  if (c.has(3)) check_point(c.shape(3), s.out_channels, "w_zero_point", true);
  c.set(0, DType::kInt32, with_channels(s.batch, s.out_channels, s.window.out));
}

void qlinear_shape(ShapeCtx& c) {
  if (!is_byte(c.dtype(0)) || !is_byte(c.dtype(3)))
    model_error("OT1146", "QLinearConv needs 8-bit inputs");
  ConvShape s = conv_shape_of(c.node(), c.shape(0), c.shape(3));
  for (int i : {1, 2, 6, 7}) check_point(c.shape(i), 0, "a scale or zero point", false);
  for (int i : {4, 5})
    check_point(c.shape(i), s.out_channels, "a scale or zero point of the weights", true);
  if (c.has(8) && c.shape(8) != Shape{s.out_channels})
    model_error("OT1146", cat("the bias has shape ", to_string(c.shape(8))));
  if (!is_byte(c.dtype(7))) model_error("OT1146", "y_zero_point is not an 8-bit integer");
  c.set(0, c.dtype(7), with_channels(s.batch, s.out_channels, s.window.out));
}

size_t words(int64_t n) { return (size_t(n) + 15) / 16 * 16; }

// Bytes minus their zero point as 32-bit words, which wrap; `groups` rows share a zero point each.
void widen(DType t, const void* from, DType zero_type, const void* zero, int64_t zeros, int64_t n,
           uint32_t* to) {
  cast_elements(t, from, DType::kInt32, to, n, {});
  if (!zero) return;
  int64_t per = zeros ? n / zeros : n;
  for (int64_t z = 0; z < zeros; ++z) {
    int32_t v;
    cast_elements(zero_type, static_cast<const char*>(zero) + z, DType::kInt32, &v, 1, {});
    for (int64_t i = z * per; i < (z + 1) * per; ++i) to[i] -= uint32_t(v);
  }
}

Kernel make_conv_integer(Prepare& p) {
  ConvShape s = conv_shape_of(p.node(), p.in(0).shape, p.in(1).shape);
  int64_t xn = p.in(0).size(), wn = p.in(1).size(), wz = p.has(3) ? p.in(3).size() : 0;
  DType xt = p.in(0).dtype, wt = p.in(1).dtype;
  p.workspace = (words(xn) + words(wn)) * sizeof(uint32_t);
  bool has_x = p.has(2), has_w = p.has(3);
  return [=](const Run& r) {
    uint32_t *x = static_cast<uint32_t*>(r.workspace), *w = x + words(xn);
    widen(xt, r.inputs[0], xt, has_x ? r.inputs[2] : nullptr, 1, xn, x);
    widen(wt, r.inputs[1], wt, has_w ? r.inputs[3] : nullptr, wz, wn, w);
    kernels::conv_ref<uint32_t>(s, x, w, nullptr, reinterpret_cast<uint32_t*>(r.out<int32_t>(0)),
                                *r.pool);
  };
}

Kernel make_qlinear(Prepare& p) {
  ConvShape s = conv_shape_of(p.node(), p.in(0).shape, p.in(3).shape);
  int64_t xn = p.in(0).size(), wn = p.in(3).size(), yn = p.out(0).size(), wz = p.in(5).size(),
          scales = p.in(4).size();
  DType xt = p.in(0).dtype, wt = p.in(3).dtype, yt = p.out(0).dtype, scale_type = p.in(1).dtype;
  p.workspace = (words(xn) + words(wn) + words(yn)) * sizeof(uint32_t);
  bool bias = p.has(8);
  return [=](const Run& r) {
    uint32_t *x = static_cast<uint32_t*>(r.workspace), *w = x + words(xn), *y = w + words(wn);
    widen(xt, r.inputs[0], xt, r.inputs[2], 1, xn, x);
    widen(wt, r.inputs[3], wt, r.inputs[5], wz, wn, w);
    kernels::conv_ref<uint32_t>(
        s, x, w, bias ? reinterpret_cast<const uint32_t*>(r.in<int32_t>(8)) : nullptr, y, *r.pool);
    auto number = [&](int i, int64_t at) {
      float v;
      cast_elements(scale_type,
                    static_cast<const char*>(r.inputs[i]) + size_t(at) * dtype_size(scale_type),
                    DType::kFloat, &v, 1, {});
      return v;
    };
    float xs = number(1, 0), ys = number(6, 0);
    int32_t zero;
    cast_elements(yt, r.inputs[7], DType::kInt32, &zero, 1, {});
    double low = yt == DType::kInt8 ? -128 : 0, high = yt == DType::kInt8 ? 127 : 255;
    int64_t plane = s.window.out_size();
    auto* out = static_cast<uint8_t*>(r.outputs[0]);
    for (int64_t i = 0; i < yn; ++i) {
      int64_t m = i / plane % s.out_channels;
      float f = xs * number(4, scales > 1 ? m : 0) / ys;
      double v = double(int32_t(y[i])) * double(f) + double(zero);
      out[i] =
          uint8_t(int32_t(std::nearbyint(std::isnan(v) ? 0 : std::min(std::max(v, low), high))));
    }
  };
}

}  // namespace

void register_conv_integer(OpTable& t) {
  t.add({.name = "ConvInteger",
         .shape = conv_integer_shape,
         .impls = {{"ref", nullptr, make_conv_integer}},
         .no_grad = "its operands are integers",
         .settings_from = 0,
         .quantised_inputs = {0, 1}});
  t.add({.name = "QLinearConv",
         .shape = qlinear_shape,
         .impls = {{"ref", nullptr, make_qlinear}},
         .no_grad = "its operands are integers",
         .settings_from = 0,
         .quantised_inputs = {0, 3}});
}

}  // namespace onnxtrain::ops
