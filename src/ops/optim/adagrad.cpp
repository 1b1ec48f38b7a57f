// The optimizer adagrad: PyTorch's is the standard's operator Adagrad; Keras' has epsilon under the
// root (AdagradKeras).
#include "ops/optim/optimizer_function.hpp"
#include "ops/optim/optimizer_update.hpp"

namespace onnxtrain::ops {

namespace {

Kernel make_keras(Prepare& p) {
  const Node& node = p.node();
  int64_t n = p.in(1).size();
  double epsilon = setting(node, "epsilon", 1e-7), decay = setting(node, "decay");
  DType lr_type = p.in(0).dtype;
  return update_kernel(p, 1, [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    return [=](const Run& r) {
      double lr = read_scalar(r.inputs[0], lr_type);
      C step = C(lr), keep = C(1 - lr * decay), eps = C(epsilon);
      const T *x = r.in<T>(1), *g = r.in<T>(2), *h = r.in<T>(3);
      T *x1 = r.out<T>(0), *h1 = r.out<T>(1);
      each_element(r, n, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          C grad = C(g[i]), hi = C(h[i]) + grad * grad;
          x1[i] = T(C(x[i]) * keep - step * grad / std::sqrt(hi + eps));
          h1[i] = T(hi);
        }
      });
    };
  });
}

// PyTorch's for float64, where the attributes of the standard's operator, which are float32, are
// not exact. T counts finished steps. Files of the converters have it.
Kernel make_exact(Prepare& p) {
  const Node& node = p.node();
  const int64_t n = p.in(2).size();
  const double slower = setting(node, "lr_decay"), epsilon = setting(node, "epsilon", 1e-10),
               decay = setting(node, "decay");
  const LearningRateAndStep scalars(p);
  return update_kernel(p, 2, [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    return [=](const Run& r) {
      const C step = C(scalars.lr(r) / (1 + scalars.step(r) * slower)), d = C(decay),
              eps = C(epsilon);
      const T *x = r.in<T>(2), *g = r.in<T>(3), *h = r.in<T>(4);
      T *x1 = r.out<T>(0), *h1 = r.out<T>(1);
      each_element(r, n, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          const C grad = C(g[i]) + d * C(x[i]), hi = C(h[i]) + grad * grad;
          x1[i] = T(C(x[i]) - step * (grad / (std::sqrt(hi) + eps)));
          h1[i] = T(hi);
        }
      });
    };
  });
}

constexpr const char* kKerasFunction = R"(
<domain: "ai.onnxtrain", opset_import: ["" : 15]>
AdagradKeras <epsilon, decay> (R, X, G, H) => (X1, H1)
{
  e = Constant <value: tensor = @epsilon> ()
  d = Constant <value: tensor = @decay> ()
  one = Constant <value = double {1.0}> ()
  rate = Cast <to = 11> (R)
  rd = Mul (rate, d)
  keep = Sub (one, rd)
  k = CastLike (keep, X)
  r = CastLike (R, X)
  eps = CastLike (e, X)
  gg = Mul (G, G)
  H1 = Add (H, gg)
  safe = Add (H1, eps)
  root = Sqrt (safe)
  rg = Mul (r, G)
  move = Div (rg, root)
  kept = Mul (X, k)
  X1 = Sub (kept, move)
}
)";

// PyTorch's for float64, where the attributes of the standard's operator, which are float32, are
// not exact. T counts finished steps. Files of the converters have it.
std::string exact_body() {
  return cat(coupled_decay("d_decay"), R"(
  t = Cast <to = 11> (T)
  slower = Mul (t, d_lr_decay)
  below = Add (one, slower)
  rd = Cast <to = 11> (R)
  rate = Div (rd, below)
  r = CastLike (rate, X)
  gg = Mul (g, g)
  H1 = Add (H, gg)
  root = Sqrt (H1)
  eps = CastLike (d_epsilon, X)
  std = Add (root, eps)
  share = Div (g, std)
  move = Mul (r, share)
  X1 = Sub (kept, move)
)");
}

OptimizerNode node(const OptimizerSettings& s) {
  if (s.keras())
    return {.op = "AdagradKeras",
            .attrs = {{"epsilon", s.real("eps")}, {"decay", s.real("weight_decay")}},
            .state = {{"accumulator", s["initial_accumulator_value"]}},
            .shrink = s["weight_decay"]};
  return {.op = "Adagrad",  // T is 0 at the first step
          .domain = kTrainingDomain,
          .scalars = "RT",
          .attrs = {{"decay_factor", s.single("lr_decay")},
                    {"epsilon", s.single("eps")},
                    {"norm_coefficient", s.single("weight_decay")}},
          .state = {{"sum", s["initial_accumulator_value"]}}};
}

}  // namespace

void register_adagrad(OpTable& t) {
  t.add_optimizer({.kind = "adagrad",
                   .class_name = "Adagrad",
                   .help = "Adagrad.",
                   .settings = {{.name = "lr", .value = 1e-2, .keras = 1e-3},
                                {"lr_decay", 0},
                                {.name = "eps", .value = 1e-10, .keras = 1e-7},
                                {.name = "initial_accumulator_value", .value = 0, .keras = 0.1},
                                {"weight_decay", 0}},
                   .node = node,
                   .has_keras_style = true});
  t.add(update_op<1, 1>("AdagradKeras", make_keras, kKerasFunction));
  t.add(update_op<2, 1>(
      "Adagrad", make_exact,
      keep_text(function_text(
          "Adagrad", {{"lr_decay", "d_lr_decay"}, {"epsilon", "d_epsilon"}, {"decay", "d_decay"}},
          "R, T, X, G, H", "X1, H1", exact_body()))));
}

}  // namespace onnxtrain::ops
