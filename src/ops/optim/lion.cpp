// The optimizer lion: moves by the sign of a mixture of momentum and gradient; decoupled decay.
#include "ops/optim/optimizer_update.hpp"
#include "ops/optim/update_kernel.hpp"

namespace onnxtrain::ops {

namespace {

Kernel make(Prepare& p) {
  const Node& node = p.node();
  int64_t n = p.in(1).size();
  double beta1 = setting(node, "beta1", 0.9), beta2 = setting(node, "beta2", 0.99),
         decay = setting(node, "decay");
  DType lr_type = p.in(0).dtype;
  return update_kernel(p, 1, [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    return [=](const Run& r) {
      double lr = read_scalar(r.inputs[0], lr_type);
      C step = C(lr), keep = C(1 - lr * decay), b1 = C(beta1), c1 = C(1 - beta1), b2 = C(beta2),
        c2 = C(1 - beta2);
      const T *x = r.in<T>(1), *g = r.in<T>(2), *m = r.in<T>(3);
      T *x1 = r.out<T>(0), *m1 = r.out<T>(1);
      each_element(r, n, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          C grad = C(g[i]), mi = C(m[i]), mix = mi * b1 + grad * c1;
          C sign = mix > C(0) ? C(1) : mix < C(0) ? C(-1) : mix;  // keeps NaN
          x1[i] = T(C(x[i]) * keep - step * sign);
          m1[i] = T(mi * b2 + grad * c2);
        }
      });
    };
  });
}

constexpr const char* kFunction = R"(
<domain: "ai.onnxtrain", opset_import: ["" : 15]>
Lion <beta1, beta2, decay> (R, X, G, M) => (X1, M1)
{
  b1 = Constant <value: tensor = @beta1> ()
  b2 = Constant <value: tensor = @beta2> ()
  d = Constant <value: tensor = @decay> ()
  one = Constant <value = double {1.0}> ()
  rate = Cast <to = 11> (R)
  n1 = Sub (one, b1)
  n2 = Sub (one, b2)
  k1 = CastLike (b1, X)
  c1 = CastLike (n1, X)
  k2 = CastLike (b2, X)
  c2 = CastLike (n2, X)
  rd = Mul (rate, d)
  keep = Sub (one, rd)
  k = CastLike (keep, X)
  r = CastLike (R, X)
  mb = Mul (M, k1)
  gc = Mul (G, c1)
  mix = Add (mb, gc)
  sign = Sign (mix)
  move = Mul (r, sign)
  kept = Mul (X, k)
  X1 = Sub (kept, move)
  mb2 = Mul (M, k2)
  gc2 = Mul (G, c2)
  M1 = Add (mb2, gc2)
}
)";

VectorUpdate vector(const Node& n) {
  const double beta1 = setting(n, "beta1", 0.9), beta2 = setting(n, "beta2", 0.99),
               decay = setting(n, "decay");
  return [=](ThreadPool& pool, const simd::OptimList& list, double lr, double, float factor) {
    simd::update(
        pool, list,
        simd::LionStep{
            .lr = lr, .beta1 = beta1, .beta2 = beta2, .decay = decay, .grad_scale = factor});
  };
}

OptimizerNode node(const OptimizerSettings& s) {
  return {.op = "Lion",
          .attrs = {{"beta1", s.real("beta1")},
                    {"beta2", s.real("beta2")},
                    {"decay", s.real("weight_decay")}},
          .state = {{"exp_avg", 0}},
          .shrink = s["weight_decay"]};
}

}  // namespace

void register_lion(OpTable& t) {
  t.add_optimizer({.kind = "lion",
                   .class_name = "Lion",
                   .help = "Lion: the sign of the averaged gradient.",
                   .settings = {{"lr", 1e-4},
                                {"beta1", 0.9, SettingRange::kBelowOne},
                                {"beta2", 0.99, SettingRange::kBelowOne},
                                {"weight_decay", 0}},
                   .node = node});
  Op op = update_op<1, 1>("Lion", make, kFunction);
  op.impls.insert(op.impls.begin(), {"simd", refuses_simd_update, make_simd_update});
  op.update->vector = vector;
  t.add(op);
}

}  // namespace onnxtrain::ops
