// The optimizer lamb (You et al., version 5): Adam's corrected direction plus decay, scaled per
// tensor by |X| / |direction| (1 when either is 0).
#include "ops/optim/optimizer_shape.hpp"

namespace onnxtrain::ops {

namespace {

void shape(ShapeCtx& c) { optimizer_shape(c, 2); }

Kernel make(Prepare& p) {
  const Node& node = p.node();
  int64_t n = p.in(2).size();
  double beta1 = setting(node, "beta1", 0.9), beta2 = setting(node, "beta2", 0.999);
  double epsilon = setting(node, "epsilon", 1e-6), decay = setting(node, "decay");
  RateAndStep scalars(p);
  return dispatch<float, double, Half, BFloat16>(p.in(2).dtype, node.op, [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    p.workspace = size_t(n) * sizeof(C);
    return [=](const Run& r) {
      double rate = scalars.rate(r), t = scalars.step(r);
      C fix1 = C(1 - std::pow(beta1, t)), fix2 = C(1 - std::pow(beta2, t));
      C c1 = C(1 - beta1), b2 = C(beta2), c2 = C(1 - beta2), eps = C(epsilon), d = C(decay);
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
      C step = C(xx > 0 && ww > 0 ? rate * std::sqrt(xx) / std::sqrt(ww) : rate);
      each_element(r, n, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) x1[i] = T(C(x[i]) - step * way[i]);
      });
    };
  });
}

constexpr const char* kFunction = R"(
<domain: "ai.onnxtrain", opset_import: ["" : 15]>
Lamb <beta1, beta2, epsilon, decay> (R, T, X, G, M, V) => (X1, M1, V1)
{
  b1 = Constant <value: tensor = @beta1> ()
  b2 = Constant <value: tensor = @beta2> ()
  e = Constant <value: tensor = @epsilon> ()
  d = Constant <value: tensor = @decay> ()
  one = Constant <value = double {1.0}> ()
  zero = Constant <value = double {0.0}> ()
  t = Cast <to = 11> (T)
  r = Cast <to = 11> (R)
  p1 = Pow (b1, t)
  p2 = Pow (b2, t)
  q1 = Sub (one, p1)
  q2 = Sub (one, p2)
  fix1 = CastLike (q1, X)
  fix2 = CastLike (q2, X)
  n1 = Sub (one, b1)
  n2 = Sub (one, b2)
  c1 = CastLike (n1, X)
  c2 = CastLike (n2, X)
  k2 = CastLike (b2, X)
  eps = CastLike (e, X)
  dx = CastLike (d, X)
  gm = Sub (G, M)
  gmc = Mul (gm, c1)
  M1 = Add (M, gmc)
  vb = Mul (V, k2)
  gg = Mul (G, G)
  ggc = Mul (gg, c2)
  V1 = Add (vb, ggc)
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
}
)";

OptimizerNode node(const OptimizerSettings& s) {
  return {.op = "Lamb",
          .scalars = "RN",
          .attrs = {{"beta1", s.real("beta1")},
                    {"beta2", s.real("beta2")},
                    {"epsilon", s.real("eps")},
                    {"decay", s.real("weight_decay")}},
          .state = {{"exp_avg", 0}, {"exp_avg_sq", 0}}};
}

}  // namespace

void register_lamb(OpTable& t) {
  t.add_optimizer({.kind = "lamb",
                   .class_name = "Lamb",
                   .help = "LAMB: Adam with a trust ratio per tensor.",
                   .settings = {{"lr", 1e-3},
                                {"beta1", 0.9, SettingRange::kBelowOne},
                                {"beta2", 0.999, SettingRange::kBelowOne},
                                {"eps", 1e-6},
                                {"weight_decay", 0}},
                   .node = node});
  t.add({.name = "Lamb",
         .domain = std::string(kOwnDomain),
         .shape = shape,
         .impls = {{"ref", nullptr, make}},
         .no_grad = kUpdateNoGrad,
         .in_place = {{2, 0}, {4, 1}, {5, 2}},
         .update = UpdateForm{.scalars = 2, .states = 2},
         .function = kFunction});
}

}  // namespace onnxtrain::ops
