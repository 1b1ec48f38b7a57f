// The optimizer adadelta by PyTorch's formula: the gradient is scaled by the ratio of two running
// root mean squares, that of past steps (D) and that of gradients (V).
#include "ops/optim/optimizer_function.hpp"
#include "ops/optim/optimizer_update.hpp"

namespace onnxtrain::ops {

namespace {

Kernel make(Prepare& p) {
  const Node& node = p.node();
  const int64_t n = p.in(1).size();
  const double rho = setting(node, "rho", 0.9), epsilon = setting(node, "epsilon", 1e-6),
               decay = setting(node, "decay");
  const DType lr_type = p.in(0).dtype;
  return update_kernel(p, 1, [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    return [=](const Run& r) {
      const C lr = C(read_scalar(r.inputs[0], lr_type)), d = C(decay), eps = C(epsilon),
              keep = C(rho), take = C(1 - rho);
      const T *x = r.in<T>(1), *g = r.in<T>(2), *v = r.in<T>(3), *a = r.in<T>(4);
      T *x1 = r.out<T>(0), *v1 = r.out<T>(1), *a1 = r.out<T>(2);
      each_element(r, n, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          const C grad = C(g[i]) + d * C(x[i]);
          const C square = C(v[i]) * keep + grad * grad * take;
          const C move = std::sqrt(C(a[i]) + eps) / std::sqrt(square + eps) * grad;
          x1[i] = T(C(x[i]) - lr * move);
          v1[i] = T(square);
          a1[i] = T(C(a[i]) * keep + move * move * take);
        }
      });
    };
  });
}

std::string body() {
  return cat(coupled_decay("d_decay"), R"(
  rest = Sub (one, d_rho)
  a = CastLike (d_rho, X)
  c = CastLike (rest, X)
  eps = CastLike (d_epsilon, X)
)",
             mean_square("g", "a", "c"), R"(
  ve = Add (V1, eps)
  std = Sqrt (ve)
  de = Add (D, eps)
  droot = Sqrt (de)
  dq = Div (droot, std)
  delta = Mul (dq, g)
  da = Mul (D, a)
  dd = Mul (delta, delta)
  ddc = Mul (dd, c)
  D1 = Add (da, ddc)
  r = CastLike (R, X)
  move = Mul (r, delta)
  X1 = Sub (kept, move)
)");
}

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
  t.add(update_op<1, 2>(
      "Adadelta", make,
      keep_text(function_text("Adadelta",
                              {{"rho", "d_rho"}, {"epsilon", "d_epsilon"}, {"decay", "d_decay"}},
                              "R, X, G, V, D", "X1, V1, D1", body()))));
}

}  // namespace onnxtrain::ops
