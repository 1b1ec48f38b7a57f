// MatMul, and FusedMatMul of our own domain: the same with operands transposed in their last two
// dimensions (transA, transB) and a factor (alpha), which the gradient of MatMul is made of.
#include "kernels/gemm/gemm.hpp"
#include "op/grad_builder.hpp"
#include "ops/linalg/matmul_packed.hpp"
#include "ops/linalg/matmul_shape.hpp"

namespace onnxtrain::ops {

namespace {

bool flag(const Node& n, const char* key) {
  return n.is("FusedMatMul", kOwnDomain) && n.i(key, 0) != 0;
}
float alpha_of(const Node& n) { return n.is("FusedMatMul", kOwnDomain) ? n.f("alpha", 1) : 1.0f; }

MatMulLayout layout_of(const Prepare& p) {
  return MatMulLayout(p.in(0).shape, p.in(1).shape, flag(p.node(), "transA"),
                      flag(p.node(), "transB"));
}

void shape(ShapeCtx& c) {
  if (c.dtype(0) != c.dtype(1))
    model_error("OT1103", cat("the operands of ", c.node().op, " have different types, ",
                              dtype_name(c.dtype(0)), " and ", dtype_name(c.dtype(1))));
  c.set(
      0, c.dtype(0),
      matmul_shape_of(c.shape(0), c.shape(1), flag(c.node(), "transA"), flag(c.node(), "transB")));
}

std::string refuses_unless_f32(const Prepare& p) {
  return p.in(0).dtype == DType::kFloat ? "" : "only for float";
}

Kernel make_simd(Prepare& p) {
  auto l = std::make_shared<MatMulLayout>(layout_of(p));
  simd::GemmDesc d;
  d.m = l->m;
  d.n = l->n;
  d.k = l->k;
  d.trans_a = l->trans_a;
  d.trans_b = l->trans_b;
  d.alpha = alpha_of(p.node());
  d.batch = l->batch;
  d.stride_c = l->m * l->n;
  if (l->batch != 1) {
    d.offsets_a = l->at_a.data();
    d.offsets_b = l->at_b.data();
  }
  if (p.out(0).size() == 0) return [](const Run&) {};
  PackedPlan gemm = plan_gemm(p, d, 1);
  return [l, gemm](const Run& r) {
    gemm.plan.run(*r.pool, {.a = r.in<float>(0),
                            .b = gemm.b(r.in<float>(1)),
                            .c = r.out<float>(0),
                            .workspace = r.workspace});
  };
}

Kernel make_ref(Prepare& p) {
  MatMulLayout l = layout_of(p);
  float alpha = alpha_of(p.node());
  return dispatch<double, Half, BFloat16, int64_t, int32_t, uint32_t, uint64_t, float>(
      p.in(0).dtype, p.node().op, [&]<class T>() -> Kernel {
        using C = compute_t<T>;
        // integers wrap: calculated without a sign
        using A = typename std::conditional_t<std::is_integral_v<C>, std::make_unsigned<C>,
                                              std::type_identity<C>>::type;
        return [=](const Run& r) {
          const T *a = r.in<T>(0), *b = r.in<T>(1);
          T* y = r.out<T>(0);
          matmul_loop<A>(
              *r.pool, l, [&](int64_t i, int64_t) { return A(C(a[i])); },
              [&](int64_t i, int64_t) { return A(C(b[i])); },
              [&](int64_t i, A v) {
                if constexpr (std::is_floating_point_v<C>)
                  y[i] = T(C(v) * C(alpha));
                else
                  y[i] = T(C(v));
              });
        };
      });
}

Cost cost(const Prepare& p) {
  MatMulLayout l = layout_of(p);
  double bytes =
      double(p.in(0).size() + p.in(1).size() + p.out(0).size()) * double(dtype_size(p.in(0).dtype));
  return {2.0 * double(l.batch) * double(l.m) * double(l.n) * double(l.k), bytes};
}

using Grads = std::vector<ValueId>;

ValueId matmul(GradBuilder& b, ValueId x, ValueId y, bool tx, bool ty, float alpha = 1) {
  if (b.rank(x) == 2 && b.rank(y) == 2)
    return b.call("Gemm", {x, y},
                  {{"transA", int64_t(tx)}, {"transB", int64_t(ty)}, {"alpha", alpha}});
  if (!tx && !ty && alpha == 1) return b.call("MatMul", {x, y});
  return b.own("FusedMatMul", {x, y},
               {{"transA", int64_t(tx)}, {"transB", int64_t(ty)}, {"alpha", alpha}});
}

// [k] -> [1,k] or [k,1] while running; other shapes stay.
ValueId as_matrix(GradBuilder& b, ValueId v, bool column) {
  ValueId shape = b.shape_of(v), rank = b.call("Shape", {shape});
  ValueId missing = b.call(
      "Slice", {b.constant_ints({1}), b.constant_ints({0}), b.sub(b.constant_ints({2}), rank)});
  std::vector<ValueId> parts{missing, shape};
  if (column) std::swap(parts[0], parts[1]);
  return b.call("Reshape", {v, b.call("Concat", parts, {{"axis", int64_t(0)}})});
}

// The same when nobody knows whether an operand is a vector.
Grads grad_of_unknown_ranks(GradBuilder& b, bool ta, bool tb, float alpha) {
  ValueId a = as_matrix(b, b.x(0), false), w = as_matrix(b, b.x(1), true);
  GradBuilder::Attrs t{{"transA", int64_t(ta)}, {"transB", int64_t(tb)}};
  ValueId dy = b.reshape_like(b.dy(), b.own("FusedMatMul", {a, w}, t));
  auto back = [&](ValueId l, ValueId r, bool tl, bool tr, ValueId like, ValueId x) {
    ValueId d = b.own("FusedMatMul", {l, r},
                      {{"transA", int64_t(tl)}, {"transB", int64_t(tr)}, {"alpha", alpha}});
    return b.reshape_like(b.own("SumToShape", {d, like}), x);
  };
  Grads g{kNone, kNone};
  if (b.wants(0)) g[0] = ta ? back(w, dy, tb, true, a, b.x(0)) : back(dy, w, false, !tb, a, b.x(0));
  if (b.wants(1)) g[1] = tb ? back(dy, a, true, ta, w, b.x(1)) : back(a, dy, !ta, false, w, b.x(1));
  return g;
}

// For y = alpha * op(a) op(b); vectors become matrices on the way.
Grads grad(GradBuilder& b) {
  bool ta = flag(b.node(), "transA"), tb = flag(b.node(), "transB");
  float alpha = alpha_of(b.node());
  ValueId x0 = b.x(0), x1 = b.x(1), dy = b.dy();
  if (b.rank(x0) < 0 || b.rank(x1) < 0) return grad_of_unknown_ranks(b, ta, tb, alpha);
  bool va = b.rank(x0) == 1, vb = b.rank(x1) == 1;
  ValueId a = va ? b.unsqueeze(x0, {0}) : x0, w = vb ? b.unsqueeze(x1, {1}) : x1;
  if (va) ta = false;
  if (vb) tb = false;
  if (vb) dy = b.unsqueeze(dy, {-1});
  if (va) dy = b.unsqueeze(dy, {-2});
  ValueId da = kNone, dw = kNone;
  if (b.wants(0)) da = ta ? matmul(b, w, dy, tb, true, alpha) : matmul(b, dy, w, false, !tb, alpha);
  if (b.wants(1)) {
    if (!ta && b.rank(w) == 2 && b.rank(a) > 2) {
      // one weight for all: the sum over the batch is part of one big GEMM
      ValueId fa = b.call("Flatten", {a}, {{"axis", b.rank(a) - 1}});
      ValueId fy = b.call("Flatten", {dy}, {{"axis", b.rank(a) - 1}});
      dw = tb ? matmul(b, fy, fa, true, false, alpha) : matmul(b, fa, fy, true, false, alpha);
    } else {
      dw = tb ? matmul(b, dy, a, true, ta, alpha) : matmul(b, a, dy, !ta, false, alpha);
    }
  }
  auto back = [&](ValueId d, ValueId m, ValueId x, bool vector) {
    if (d == kNone) return kNone;
    d = b.sum_to_shape_of(d, m);
    return vector ? b.reshape_like(d, x) : d;
  };
  return {back(da, a, x0, va), back(dw, w, x1, vb)};
}

Grads lower(GradBuilder& b) {
  auto turned = [&](ValueId v, bool t) {
    int64_t rank = t ? b.need_rank(v) : 0;
    if (!t || rank < 2) return v;
    std::vector<int64_t> perm;
    for (int64_t d = 0; d < rank; ++d) perm.push_back(d);
    std::swap(perm[size_t(rank - 1)], perm[size_t(rank - 2)]);
    return b.transpose(v, perm);
  };
  ValueId y = b.call("MatMul", {turned(b.x(0), flag(b.node(), "transA")),
                                turned(b.x(1), flag(b.node(), "transB"))});
  float alpha = alpha_of(b.node());
  return {alpha == 1 ? y : b.mul(y, b.scalar(alpha, y))};
}

}  // namespace

void register_matmul(OpTable& t) {
  std::vector<Impl> impls = {{"simd", refuses_unless_f32, make_simd}, {"ref", nullptr, make_ref}};
  t.add({.name = "MatMul", .shape = shape, .impls = impls, .grad = grad, .cost = cost});
  t.add({.name = "FusedMatMul",
         .domain = std::string(kOwnDomain),
         .shape = shape,
         .impls = impls,
         .grad = grad,
         .cost = cost,
         .lower = lower});
}

}  // namespace onnxtrain::ops
