// The optimizer adamax: PyTorch's Adamax. Adam with the largest gradient of the past, U, in place
// of the mean of the squares.
#include "ops/optim/optimizer_function.hpp"
#include "ops/optim/optimizer_update.hpp"

namespace onnxtrain::ops {

namespace {

Kernel make(Prepare& p) {
  const int64_t n = p.in(2).size();
  const AdamSettings set(p.node());
  const LearningRateAndStep scalars(p);
  return update_kernel(p, 2, [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    return [=](const Run& r) {
      const C step = C(scalars.lr(r) / (1 - std::pow(set.beta1, scalars.step(r))));
      const C c1 = C(1 - set.beta1), b2 = C(set.beta2), add = C(set.decay), eps = C(set.epsilon);
      const T *x = r.in<T>(2), *g = r.in<T>(3), *m = r.in<T>(4), *u = r.in<T>(5);
      T *x1 = r.out<T>(0), *m1 = r.out<T>(1), *u1 = r.out<T>(2);
      each_element(r, n, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          const C grad = C(g[i]) + add * C(x[i]);
          const C mi = C(m[i]) + (grad - C(m[i])) * c1;
          const C was = C(u[i]) * b2, now = std::abs(grad) + eps;
          const C ui = was > now || was != was ? was : now;  // keeps NaN
          x1[i] = T(C(x[i]) - step * (mi / ui));
          m1[i] = T(mi);
          u1[i] = T(ui);
        }
      });
    };
  });
}

std::string body() {
  return cat(kLearningRateAndStep, coupled_decay("d_decay"), R"(
  n1 = Sub (one, d_beta1)
  c1 = CastLike (n1, X)
)",
             mean("g"), R"(
  b2 = CastLike (d_beta2, X)
  eps = CastLike (d_epsilon, X)
  ub = Mul (U, b2)
  size = Abs (g)
  sized = Add (size, eps)
  U1 = Max (ub, sized)
  p1 = Pow (d_beta1, t)
  q1 = Sub (one, p1)
  rate = Div (r, q1)
  rx = CastLike (rate, X)
  quotient = Div (M1, U1)
  move = Mul (rx, quotient)
  X1 = Sub (kept, move)
)");
}

OptimizerNode node(const OptimizerSettings& s) {
  return {.op = "Adamax",
          .scalars = "RN",
          .attrs = adam_attrs(s),
          .state = {{"exp_avg", 0}, {"exp_inf", 0}}};
}

}  // namespace

void register_adamax(OpTable& t) {
  t.add_optimizer({.kind = "adamax",
                   .class_name = "Adamax",
                   .help = "Adam with the largest gradient of the past as its scale.",
                   .settings = adam_settings(2e-3, {"eps", 1e-8}, {"weight_decay", 0}),
                   .node = node});
  t.add(update_op<2, 2>("Adamax", make,
                        keep_text(function_text("Adamax", kLongNames.attributes(),
                                                "R, T, X, G, M, U", "X1, M1, U1", body()))));
}

}  // namespace onnxtrain::ops
