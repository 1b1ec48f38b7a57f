// GEMMs of quantised numbers: MatMulInteger, QLinearMatMul; and DynamicQuantizeLinear.
#include <cmath>

#include "ops/common/elementwise_kernel.hpp"
#include "ops/linalg/matmul_shape.hpp"

namespace onnxtrain::ops {

namespace {

// Zero points: one number, one per row of A, or one per column of B.
void check_zero_point(ShapeCtx& c, int i, int64_t length, const char* of) {
  if (!c.has(i)) return;
  int64_t n = c.in(i).size();
  if (n != 1 && n != length)
    model_error("OT1133", cat(c.node().op, ": the parameter of ", of, " has shape ",
                              to_string(c.shape(i)), ", not [] or [", length, "]"));
}

void integer_shape(ShapeCtx& c) {
  MatMulLayout l(c.shape(0), c.shape(1), false, false);
  check_zero_point(c, 2, c.rank(0) > 1 ? c.shape(0)[size_t(c.rank(0) - 2)] : 1, "A");
  check_zero_point(c, 3, l.n, "B");
  for (int i : {2, 3})
    if (c.has(i) && c.dtype(i) != c.dtype(i - 2))
      model_error("OT1103", "a zero point has another type than its operand");
  c.set(0, DType::kInt32, l.out);
}

template <class F>
Kernel two_types(const Prepare& p, int a, int b, F f) {
  return dispatch<uint8_t, int8_t>(p.in(a).dtype, p.node().op, [&]<class A>() {
    return dispatch<uint8_t, int8_t>(p.in(b).dtype, p.node().op,
                                     [&]<class B>() { return f.template operator()<A, B>(); });
  });
}

Kernel make_integer(Prepare& p) {
  MatMulLayout l(p.in(0).shape, p.in(1).shape, false, false);
  int64_t za = p.has(2) ? p.in(2).size() : 0, zb = p.has(3) ? p.in(3).size() : 0;
  const Shape& sa = p.in(0).shape;
  int64_t rows = sa.size() > 1 ? sa[sa.size() - 2] : 1;
  return two_types(p, 0, 1, [&]<class A, class B>() -> Kernel {
    return [=](const Run& r) {
      const A *a = r.in<A>(0), *zero_a = za ? r.in<A>(2) : nullptr;
      const B *b = r.in<B>(1), *zero_b = zb ? r.in<B>(3) : nullptr;
      int32_t* y = r.out<int32_t>(0);
      matmul_loop<int32_t>(
          *r.pool, l,
          [&](int64_t i, int64_t row) {
            return int32_t(a[i]) - (zero_a ? int32_t(zero_a[za == 1 ? 0 : row % rows]) : 0);
          },
          [&](int64_t i, int64_t col) {
            return int32_t(b[i]) - (zero_b ? int32_t(zero_b[zb == 1 ? 0 : col]) : 0);
          },
          [&](int64_t i, int32_t v) { y[i] = v; });
    };
  });
}

// a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero
void qlinear_shape(ShapeCtx& c) {
  MatMulLayout l(c.shape(0), c.shape(3), false, false);
  int64_t rows = c.rank(0) > 1 ? c.shape(0)[size_t(c.rank(0) - 2)] : 1;
  for (int i : {1, 2, 6, 7}) check_zero_point(c, i, rows, "rows");
  for (int i : {4, 5}) check_zero_point(c, i, l.n, "columns");
  for (int i : {1, 4, 6}) {
    DType t = c.dtype(i);
    if (t != DType::kFloat && t != DType::kFloat16 && t != DType::kBFloat16)
      unsupported_dtype(t, "a scale of QLinearMatMul");
  }
  if (c.has(2) && c.dtype(2) != c.dtype(0))
    model_error("OT1103", "a_zero_point has another type than a");
  if (c.has(5) && c.dtype(5) != c.dtype(3))
    model_error("OT1103", "b_zero_point has another type than b");
  c.set(0, c.has(7) ? c.dtype(7) : c.dtype(0), l.out);
}

Kernel make_qlinear(Prepare& p) {
  MatMulLayout l(p.in(0).shape, p.in(3).shape, false, false);
  const Shape& sa = p.in(0).shape;
  int64_t rows = sa.size() > 1 ? sa[sa.size() - 2] : 1;
  std::vector<int64_t> size;
  std::vector<DType> type;
  for (int i = 0; i < 8; ++i) {
    size.push_back(p.has(i) ? p.in(i).size() : 0);
    type.push_back(p.has(i) ? p.in(i).dtype : DType::kUndefined);
  }
  bool is_signed = p.out(0).dtype == DType::kInt8;
  if (!is_signed && p.out(0).dtype != DType::kUint8)
    unsupported_dtype(p.out(0).dtype, "QLinearMatMul");
  return two_types(p, 0, 3, [&]<class A, class B>() -> Kernel {
    return [=](const Run& r) {
      const A *a = r.in<A>(0), *za = size[2] ? r.in<A>(2) : nullptr;
      const B *b = r.in<B>(3), *zb = size[5] ? r.in<B>(5) : nullptr;
      auto scale = [&](int i, int64_t k) {
        int64_t at = size[size_t(i)] == 1 ? 0 : k;
        return dispatch<float, Half, BFloat16>(type[size_t(i)], "QLinearMatMul",
                                               [&]<class S>() { return float(r.in<S>(i)[at]); });
      };
      auto zero_y = [&](int64_t row) {
        if (!size[7]) return 0;
        int64_t at = size[7] == 1 ? 0 : row;
        return is_signed ? int(r.in<int8_t>(7)[at]) : int(r.in<uint8_t>(7)[at]);
      };
      matmul_loop<int32_t>(
          *r.pool, l,
          [&](int64_t i, int64_t row) {
            return int32_t(a[i]) - (za ? int32_t(za[size[2] == 1 ? 0 : row % rows]) : 0);
          },
          [&](int64_t i, int64_t col) {
            return int32_t(b[i]) - (zb ? int32_t(zb[size[5] == 1 ? 0 : col]) : 0);
          },
          [&](int64_t i, int32_t v) {
            int64_t row = i / l.n % rows, col = i % l.n;
            float f = scale(1, row) * scale(4, col) / scale(6, row);
            double q = std::nearbyint(double(v) * double(f) + double(zero_y(row)));
            if (is_signed)
              r.out<int8_t>(0)[i] = int8_t(std::clamp(q, -128.0, 127.0));
            else
              r.out<uint8_t>(0)[i] = uint8_t(std::clamp(q, 0.0, 255.0));
          });
    };
  });
}

void dynamic_shape(ShapeCtx& c) {
  c.set(0, DType::kUint8, c.shape(0));
  c.set(1, DType::kFloat, {});
  c.set(2, DType::kUint8, {});
}

Kernel make_dynamic(Prepare& p) {
  if (p.in(0).dtype != DType::kFloat) unsupported_dtype(p.in(0).dtype, "DynamicQuantizeLinear");
  int64_t n = p.in(0).size();
  bool want_y = p.wants(0), want_scale = p.wants(1), want_zero = p.wants(2);
  return [=](const Run& r) {
    const float* x = r.in<float>(0);
    float low = 0, high = 0;
    for (int64_t i = 0; i < n; ++i) {
      low = std::min(low, x[i]);
      high = std::max(high, x[i]);
    }
    float scale = (high == low ? 1.0f : high - low) / 255.0f;
    float zero = std::nearbyint(std::clamp(0.0f - low / scale, 0.0f, 255.0f));
    if (want_scale) *r.out<float>(1) = scale;
    if (want_zero) *r.out<uint8_t>(2) = uint8_t(zero);
    if (!want_y) return;
    uint8_t* y = r.out<uint8_t>(0);
    parallel_for(*r.pool, n, kGrain, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i)
        y[i] = uint8_t(std::clamp(std::nearbyint(x[i] / scale) + zero, 0.0f, 255.0f));
    });
  };
}

constexpr const char* kQuantised =
    "its operands are quantised integers; train the float model and quantise after";

}  // namespace

void register_matmul_integer(OpTable& t) {
  t.add({.name = "MatMulInteger",
         .shape = integer_shape,
         .impls = {{"ref", nullptr, make_integer}},
         .no_grad = kQuantised,
         .settings_from = 0,
         .quantised_inputs = {0, 1}});
  t.add({.name = "QLinearMatMul",
         .shape = qlinear_shape,
         .impls = {{"ref", nullptr, make_qlinear}},
         .no_grad = kQuantised,
         .settings_from = 0,
         .quantised_inputs = {0, 3}});
  t.add({.name = "DynamicQuantizeLinear",
         .shape = dynamic_shape,
         .impls = {{"ref", nullptr, make_dynamic}},
         .no_grad = "rounding to integers has no useful derivative"});
}

}  // namespace onnxtrain::ops
