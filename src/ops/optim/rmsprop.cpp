// The optimizer rmsprop by PyTorch's formulas (epsilon beside the root, learning rate outside the
// momentum) and Keras' (epsilon under the root, lr inside); each plain or centered, with or without
// momentum. State after X and G: V (mean square), A (mean, when centered), B (momentum buffer, when
// used).
#include "ops/optim/optimizer_function.hpp"
#include "ops/optim/optimizer_update.hpp"

namespace onnxtrain::ops {

namespace {

template <bool keras, bool centered, bool buffered>
Kernel make(Prepare& p) {
  const Node& node = p.node();
  int64_t n = p.in(1).size();
  double alpha = setting(node, "alpha", 0.99), epsilon = setting(node, "epsilon", 1e-8);
  double momentum = setting(node, "momentum"), decay = setting(node, "decay");
  DType lr_type = p.in(0).dtype;
  return update_kernel(p, 1, [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    return [=](const Run& r) {
      double lr = read_scalar(r.inputs[0], lr_type);
      C step = C(lr), a = C(alpha), c = C(1 - alpha), eps = C(epsilon), mom = C(momentum);
      C add = C(keras ? 0.0 : decay), keep = C(keras ? 1 - lr * decay : 1.0);
      constexpr int kB = centered ? 5 : 4;
      const T *x = r.in<T>(1), *g = r.in<T>(2), *v = r.in<T>(3),
              *m = centered ? r.in<T>(4) : nullptr, *buf = buffered ? r.in<T>(kB) : nullptr;
      T *x1 = r.out<T>(0), *v1 = r.out<T>(1), *m1 = centered ? r.out<T>(2) : nullptr,
        *buf1 = buffered ? r.out<T>(kB - 2) : nullptr;
      each_element(r, n, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          C grad = C(g[i]) + add * C(x[i]);
          C vi = C(v[i]) * a + grad * grad * c, spread = vi;
          if constexpr (centered) {
            C mi = C(m[i]) + (grad - C(m[i])) * c;
            spread = vi - mi * mi;
            m1[i] = T(mi);
          }
          C move = keras ? step * grad / std::sqrt(spread + eps) : grad / (std::sqrt(spread) + eps);
          if constexpr (buffered) {
            move = C(buf[i]) * mom + move;
            buf1[i] = T(move);
          }
          x1[i] = T(C(x[i]) * keep - (keras ? move : step * move));
          v1[i] = T(vi);
        }
      });
    };
  });
}

template <bool keras, bool centered, bool buffered>
std::string text(const std::string& name) {
  std::string f =
      cat(R"(
  rest = Sub (one, alpha_d)
  a = CastLike (alpha_d, X)
  c = CastLike (rest, X)
  eps = CastLike (e, X)
  r = CastLike (R, X)
)",
          keras ? "  rate = Cast <to = 11> (R)\n" + decoupled_decay("rate") : coupled_decay(),
          mean_square("g", "a", "c"));
  f += centered ? R"(
  ga = Sub (g, A)
  gac = Mul (ga, c)
  A1 = Add (A, gac)
  aa = Mul (A1, A1)
  spread = Sub (V1, aa)
)"
                : "  spread = Identity (V1)\n";
  f += keras ? R"(
  safe = Add (spread, eps)
  root = Sqrt (safe)
  rg = Mul (r, g)
  move = Div (rg, root)
)"
             : R"(
  root = Sqrt (spread)
  safe = Add (root, eps)
  move = Div (g, safe)
)";
  f += buffered ? R"(
  m = CastLike (mu, X)
  bm = Mul (B, m)
  B1 = Add (bm, move)
  total = Identity (B1)
)"
                : "  total = Identity (move)\n";
  f += keras ? "  X1 = Sub (kept, total)\n" : "  last = Mul (r, total)\n  X1 = Sub (kept, last)\n";
  const char* more = centered ? buffered ? ", A, B" : ", A" : buffered ? ", B" : "";
  const char* made = centered ? buffered ? ", A1, B1" : ", A1" : buffered ? ", B1" : "";
  return function_text(name,
                       {{"alpha", "alpha_d"}, {"epsilon", "e"}, {"momentum", "mu"}, {"decay", "d"}},
                       cat("R, X, G, V", more).c_str(), cat("X1, V1", made).c_str(), f);
}

template <bool keras, bool centered, bool buffered>
void add(OpTable& t) {
  const std::string name =
      cat("RMSprop", keras ? "Keras" : "", centered ? "Centered" : "", buffered ? "Momentum" : "");
  t.add(update_op<1, 1 + int(centered) + int(buffered)>(
      name, make<keras, centered, buffered>, keep_text(text<keras, centered, buffered>(name))));
}

OptimizerNode node(const OptimizerSettings& s) {
  OptimizerNode n{.op = s.keras() ? "RMSpropKeras" : "RMSprop",
                  .attrs = {{"alpha", s.real("alpha")},
                            {"epsilon", s.real("eps")},
                            {"momentum", s.real("momentum")},
                            {"decay", s.real("weight_decay")}},
                  .state = {{"square_avg", 0}}};
  if (s.flag("centered")) {
    n.op += "Centered";
    n.state.emplace_back("grad_avg", 0);
  }
  if (s["momentum"] > 0) {
    n.op += "Momentum";
    n.state.emplace_back("momentum_buffer", 0);
  }
  if (s.keras()) n.shrink = s["weight_decay"];
  return n;
}

}  // namespace

void register_rmsprop(OpTable& t) {
  t.add_optimizer(
      {.kind = "rmsprop",
       .class_name = "RMSprop",
       .help = "RMSprop.",
       .settings = {{.name = "lr", .value = 1e-2, .keras = 1e-3},
                    {.name = "alpha", .value = 0.99, .range = SettingRange::kUpToOne, .keras = 0.9},
                    {.name = "eps", .value = 1e-8, .keras = 1e-7},
                    {"momentum", 0, SettingRange::kBelowOne},
                    {"centered", 0, SettingRange::kFlag},
                    {"weight_decay", 0}},
       .node = node,
       .has_keras_style = true});
  add<false, false, false>(t);
  add<false, false, true>(t);
  add<false, true, false>(t);
  add<false, true, true>(t);
  add<true, false, false>(t);
  add<true, false, true>(t);
  add<true, true, false>(t);
  add<true, true, true>(t);
}

}  // namespace onnxtrain::ops
