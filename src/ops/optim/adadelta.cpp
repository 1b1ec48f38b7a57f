// The optimizer adadelta by PyTorch's formula: the gradient is scaled by the ratio of two running
// root mean squares, that of past steps (D) and that of gradients (V).
#include "ops/optim/optimizer_update.hpp"

namespace onnxtrain::ops {

namespace {

Kernel make(Prepare& p) {
  const Node& node = p.node();
  const int64_t n = p.in(1).size();
  const double rho = setting(node, "rho", 0.9), epsilon = setting(node, "epsilon", 1e-6),
               decay = setting(node, "decay");
  const DType rate_type = p.in(0).dtype;
  return update_kernel(p, 1, [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    return [=](const Run& r) {
      const C rate = C(read_scalar(r.inputs[0], rate_type)), d = C(decay), eps = C(epsilon),
              keep = C(rho), take = C(1 - rho);
      const T *x = r.in<T>(1), *g = r.in<T>(2), *v = r.in<T>(3), *a = r.in<T>(4);
      T *x1 = r.out<T>(0), *v1 = r.out<T>(1), *a1 = r.out<T>(2);
      each_element(r, n, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          const C grad = C(g[i]) + d * C(x[i]);
          const C square = C(v[i]) * keep + grad * grad * take;
          const C move = std::sqrt(C(a[i]) + eps) / std::sqrt(square + eps) * grad;
          x1[i] = T(C(x[i]) - rate * move);
          v1[i] = T(square);
          a1[i] = T(C(a[i]) * keep + move * move * take);
        }
      });
    };
  });
}

constexpr const char* kFunction = R"(
<domain: "ai.onnxtrain", opset_import: ["" : 15]>
Adadelta <rho, epsilon, decay> (R, X, G, V, D) => (X1, V1, D1)
{
  p = Constant <value: tensor = @rho> ()
  e = Constant <value: tensor = @epsilon> ()
  d = Constant <value: tensor = @decay> ()
  one = Constant <value = double {1.0}> ()
  q = Sub (one, p)
  keep = CastLike (p, X)
  take = CastLike (q, X)
  eps = CastLike (e, X)
  dx = CastLike (d, X)
  r = CastLike (R, X)
  decayed = Mul (dx, X)
  g = Add (G, decayed)
  vk = Mul (V, keep)
  gg = Mul (g, g)
  ggt = Mul (gg, take)
  V1 = Add (vk, ggt)
  ve = Add (V1, eps)
  vr = Sqrt (ve)
  de = Add (D, eps)
  dr = Sqrt (de)
  ratio = Div (dr, vr)
  move = Mul (ratio, g)
  dk = Mul (D, keep)
  mm = Mul (move, move)
  mmt = Mul (mm, take)
  D1 = Add (dk, mmt)
  step = Mul (r, move)
  X1 = Sub (X, step)
}
)";

OptimizerNode node(const OptimizerSettings& s) {
  return {.op = "Adadelta",
          .attrs = {{"rho", s.real("rho")},
                    {"epsilon", s.real("eps")},
                    {"decay", s.real("weight_decay")}},
          .state = {{"square_avg", 0}, {"acc_delta", 0}}};
}

}  // namespace

void register_adadelta(OpTable& t) {
  t.add_optimizer(
      {.kind = "adadelta",
       .class_name = "Adadelta",
       .help = "Adadelta: steps of the size of past steps, without a learning rate to tune.",
       .settings =
           {{"lr", 1}, {"rho", 0.9, SettingRange::kUpToOne}, {"eps", 1e-6}, {"weight_decay", 0}},
       .node = node});
  t.add(update_op<1, 2>("Adadelta", make, kFunction));
}

}  // namespace onnxtrain::ops
