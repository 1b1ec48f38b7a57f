// Gemm: alpha * op(A) * op(B) + beta * C, C broadcast to the result.
#include "kernels/gemm/gemm.hpp"

#include "op/grad_builder.hpp"
#include "ops/common/elementwise_kernel.hpp"
#include "ops/linalg/matmul_packed.hpp"
#include "ops/linalg/matmul_shape.hpp"

namespace onnxtrain::ops {

namespace {

MatMulLayout layout_of(const Node& n, const Shape& a, const Shape& b) {
  if (a.size() != 2 || b.size() != 2)
    model_error("OT1132", cat("Gemm of ", to_string(a), " and ", to_string(b),
                              ": both must have two dimensions"));
  return MatMulLayout(a, b, n.i("transA", 0) != 0, n.i("transB", 0) != 0);
}

void shape(ShapeCtx& c) {
  if (c.dtype(0) != c.dtype(1) || (c.has(2) && c.dtype(2) != c.dtype(0)))
    model_error("OT1103", "the operands of Gemm have different types");
  MatMulLayout l = layout_of(c.node(), c.shape(0), c.shape(1));
  if (c.has(2)) broadcast_strides(c.shape(2), l.out);
  c.set(0, c.dtype(0), l.out);
}

std::string refuses_unless_f32(const Prepare& p) {
  return p.in(0).dtype == DType::kFloat ? "" : "only for float";
}

// y = beta * C, broadcast
void fill_rows(const Run& r, const float* c, float* y, int64_t m, int64_t n, int64_t sm, int64_t sn,
               float beta) {
  parallel_for(*r.pool, m, std::max<int64_t>(1, kGrain / std::max<int64_t>(1, n)),
               [&](int64_t b, int64_t e) {
                 for (int64_t i = b; i < e; ++i)
                   for (int64_t j = 0; j < n; ++j) y[i * n + j] = beta * c[i * sm + j * sn];
               });
}

Kernel make_simd(Prepare& p) {
  MatMulLayout l = layout_of(p.node(), p.in(0).shape, p.in(1).shape);
  if (p.out(0).size() == 0) return [](const Run&) {};
  float beta = p.node().f("beta", 1);
  simd::GemmDesc d;
  d.m = l.m;
  d.n = l.n;
  d.k = l.k;
  d.trans_a = l.trans_a;
  d.trans_b = l.trans_b;
  d.alpha = p.node().f("alpha", 1);
  int64_t sm = 0, sn = 0;
  bool fill = false, bias = false;
  if (p.has(2) && beta != 0) {
    Shape s = broadcast_strides(p.in(2).shape, l.out);
    sm = l.m == 1 ? 0 : s[0];
    sn = l.n == 1 ? 0 : s[1];
    if (beta == 1 && sm == 0 && (sn == 1 || l.n == 1)) {
      d.bias = simd::BiasAxis::kColumn;
      bias = true;
    } else if (beta == 1 && sn == 0 && sm == 1) {
      d.bias = simd::BiasAxis::kRow;
      bias = true;
    } else {
      fill = true;
      d.beta = 1;
    }
  }
  PackedPlan gemm = plan_gemm(p, d, 1);
  return [=](const Run& r) {
    float* y = r.out<float>(0);
    if (fill) fill_rows(r, r.in<float>(2), y, d.m, d.n, sm, sn, beta);
    gemm.plan.run(*r.pool, {.a = r.in<float>(0),
                            .b = gemm.b(r.in<float>(1)),
                            .c = y,
                            .bias = bias ? r.in<float>(2) : nullptr,
                            .workspace = r.workspace});
  };
}

Kernel make_ref(Prepare& p) {
  MatMulLayout l = layout_of(p.node(), p.in(0).shape, p.in(1).shape);
  float alpha = p.node().f("alpha", 1), beta = p.node().f("beta", 1);
  bool has_c = p.has(2) && beta != 0;
  Shape s = has_c ? broadcast_strides(p.in(2).shape, l.out) : Shape{0, 0};
  int64_t sm = s[0], sn = s[1];
  return dispatch<double, Half, BFloat16, int64_t, int32_t, uint32_t, uint64_t, float>(
      p.in(0).dtype, "Gemm", [&]<class T>() -> Kernel {
        using C = compute_t<T>;
        using A = typename std::conditional_t<std::is_integral_v<C>, std::make_unsigned<C>,
                                              std::type_identity<C>>::type;
        // factors of integer products: exact while they are integers, which files with integers use
        using F = std::conditional_t<std::is_integral_v<C>, double, C>;
        return [=](const Run& r) {
          const T *a = r.in<T>(0), *b = r.in<T>(1), *c = has_c ? r.in<T>(2) : nullptr;
          T* y = r.out<T>(0);
          matmul_loop<A>(
              *r.pool, l, [&](int64_t i, int64_t) { return A(C(a[i])); },
              [&](int64_t i, int64_t) { return A(C(b[i])); },
              [&](int64_t i, A sum) {
                C add = c ? C(c[i / l.n * sm + i % l.n * sn]) : C(0);
                if (std::is_integral_v<C> && alpha == 1 && beta == 1)
                  y[i] = T(C(sum + A(add)));
                else
                  y[i] = T(C(F(alpha) * F(C(sum)) + F(beta) * F(add)));
              });
        };
      });
}

Cost cost(const Prepare& p) {
  MatMulLayout l = layout_of(p.node(), p.in(0).shape, p.in(1).shape);
  double bytes =
      double(p.in(0).size() + p.in(1).size() + p.out(0).size()) * double(dtype_size(p.in(0).dtype));
  return {2.0 * double(l.m) * double(l.n) * double(l.k), bytes};
}

std::vector<ValueId> grad(GradBuilder& b) {
  bool ta = b.node().i("transA", 0) != 0, tb = b.node().i("transB", 0) != 0;
  float alpha = b.node().f("alpha", 1), beta = b.node().f("beta", 1);
  auto matmul = [&](ValueId x, ValueId y, bool tx, bool ty) {
    return b.call("Gemm", {x, y},
                  {{"transA", int64_t(tx)}, {"transB", int64_t(ty)}, {"alpha", alpha}});
  };
  ValueId x = b.x(0), w = b.x(1), dy = b.dy();
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  if (b.wants(0)) g[0] = ta ? matmul(w, dy, tb, true) : matmul(dy, w, false, !tb);
  if (b.wants(1)) g[1] = tb ? matmul(dy, x, true, ta) : matmul(x, dy, !ta, false);
  if (b.has(2) && b.wants(2)) {
    ValueId d = b.sum_to_shape_of(dy, b.x(2));
    g[2] = beta == 1 ? d : b.mul(d, b.scalar(beta, d));
  }
  return g;
}

}  // namespace

void register_gemm(OpTable& t) {
  t.add({.name = "Gemm",
         .shape = shape,
         .impls = {{"simd", refuses_unless_f32, make_simd}, {"ref", nullptr, make_ref}},
         .grad = grad,
         .cost = cost});
}

}  // namespace onnxtrain::ops
