// The optimizer lamb (You et al., version 5): Adam's corrected direction plus decay, scaled per
// tensor by |X| / |direction| (1 when either is 0).
#include "ops/optim/optimizer_function.hpp"
#include "ops/optim/optimizer_update.hpp"

namespace onnxtrain::ops {

namespace {

Kernel make(Prepare& p) {
  const int64_t n = p.in(2).size();
  const AdamSettings set(p.node(), 1e-6);
  LearningRateAndStep scalars(p);
  return update_kernel(p, 2, [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    p.workspace = size_t(n) * sizeof(C);
    return [=](const Run& r) {
      double lr = scalars.lr(r), t = scalars.step(r);
      C fix1 = C(1 - std::pow(set.beta1, t)), fix2 = C(1 - std::pow(set.beta2, t));
      C c1 = C(1 - set.beta1), b2 = C(set.beta2), c2 = C(1 - set.beta2), eps = C(set.epsilon),
        d = C(set.decay);
      const T *x = r.in<T>(2), *g = r.in<T>(3), *m = r.in<T>(4), *v = r.in<T>(5);
      T *x1 = r.out<T>(0), *m1 = r.out<T>(1), *v1 = r.out<T>(2);
      C* way = static_cast<C*>(r.workspace);
      double xx = 0, ww = 0;  // one thread: the order of the sum must not depend on their number
      for (int64_t i = 0; i < n; ++i) {
        C grad = C(g[i]);
        C mi = C(m[i]) + (grad - C(m[i])) * c1;
        C vi = C(v[i]) * b2 + grad * grad * c2;
        way[i] = (mi / fix1) / (std::sqrt(vi / fix2) + eps) + d * C(x[i]);
        m1[i] = T(mi);
        v1[i] = T(vi);
        xx += double(C(x[i])) * double(C(x[i]));
        ww += double(way[i]) * double(way[i]);
      }
      C step = C(xx > 0 && ww > 0 ? lr * std::sqrt(xx) / std::sqrt(ww) : lr);
      each_element(r, n, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) x1[i] = T(C(x[i]) - step * way[i]);
      });
    };
  });
}

std::string body() {
  return cat("  zero = Constant <value = double {0.0}> ()\n", kLearningRateAndStep, R"(
  p1 = Pow (b1, t)
  p2 = Pow (b2, t)
  q1 = Sub (one, p1)
  q2 = Sub (one, p2)
  fix1 = CastLike (q1, X)
  fix2 = CastLike (q2, X)
)",
             factors(), "  dx = CastLike (d, X)\n", moments("G"), R"(
  mh = Div (M1, fix1)
  vh = Div (V1, fix2)
  root = Sqrt (vh)
  denominator = Add (root, eps)
  adam = Div (mh, denominator)
  l2 = Mul (dx, X)
  way = Add (adam, l2)
  xd = Cast <to = 11> (X)
  wd = Cast <to = 11> (way)
  x2 = Mul (xd, xd)
  xx = ReduceSum <keepdims = 0> (x2)
  w2 = Mul (wd, wd)
  ww = ReduceSum <keepdims = 0> (w2)
  xn = Sqrt (xx)
  wn = Sqrt (ww)
  both = Mul (xn, wn)
  usable = Greater (both, zero)
  by = Where (usable, wn, one)
  ratio = Div (xn, by)
  trust = Where (usable, ratio, one)
  size = Mul (r, trust)
  step = CastLike (size, X)
  move = Mul (step, way)
  X1 = Sub (X, move)
)");
}

OptimizerNode node(const OptimizerSettings& s) {
  return {.op = "Lamb",
          .scalars = "RN",
          .attrs = adam_attrs(s),
          .state = {{"exp_avg", 0}, {"exp_avg_sq", 0}}};
}

}  // namespace

void register_lamb(OpTable& t) {
  t.add_optimizer({.kind = "lamb",
                   .class_name = "Lamb",
                   .help = "LAMB: Adam with a trust ratio per tensor.",
                   .settings = adam_settings(1e-3, {"eps", 1e-6}, {"weight_decay", 0}),
                   .node = node});
  t.add(update_op<2, 2>("Lamb", make,
                        keep_text(function_text("Lamb", AdamNames().attributes(),
                                                "R, T, X, G, M, V", "X1, M1, V1", body()))));
}

}  // namespace onnxtrain::ops
