// The optimizer nadam: PyTorch's NAdam (Adam with Nesterov's momentum, whose share grows from step
// to step), with coupled or decoupled decay. State after X and G: M, V, and P, the product of the
// shares so far, one number.
#include "ops/optim/optimizer_function.hpp"
#include "ops/optim/optimizer_update.hpp"

namespace onnxtrain::ops {

namespace {

void write_scalar(void* p, DType t, double v) {
  dispatch<float, double, Half, BFloat16>(t, "NAdam",
                                          [&]<class T>() { *static_cast<T*>(p) = T(v); });
}

template <bool decoupled>
Kernel make(Prepare& p) {
  const int64_t n = p.in(2).size();
  const AdamSettings set(p.node());
  const double slow = setting(p.node(), "momentum_decay", 4e-3);
  const LearningRateAndStep scalars(p);
  const DType product_type = p.in(6).dtype;
  return update_kernel(p, 2, [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    return [=](const Run& r) {
      const double lr = scalars.lr(r), t = scalars.step(r);
      auto share = [&](double step) { return set.beta1 * (1 - 0.5 * std::pow(0.96, step * slow)); };
      const double mu = share(t), next = share(t + 1);
      // the product is rounded to its type once, as PyTorch stores it
      const double before = read_scalar(r.inputs[6], product_type);
      if (product_type == DType::kFloat)
        write_scalar(r.outputs[3], product_type, double(float(before) * float(mu)));
      else
        write_scalar(r.outputs[3], product_type, before * mu);
      const double product = read_scalar(r.outputs[3], product_type);
      const C by_gradient = C(lr * (1 - mu) / (1 - product)),
              by_mean = C(lr * next / (1 - product * next));
      const C eps = C(set.epsilon), fix = C(1 - std::pow(set.beta2, t));
      update_moments<T>(r, n, set, lr, decoupled, [&](C kept, C grad, C mean, C square) {
        const C denominator = std::sqrt(square / fix) + eps;
        return kept - by_gradient * grad / denominator - by_mean * mean / denominator;
      });
    };
  });
}

std::string text(const char* name, bool decoupled) {
  std::vector<FunctionAttribute> attributes = kLongNames.attributes();
  attributes.push_back({"momentum_decay", "d_momentum_decay"});
  return function_text(name, attributes, "R, T, X, G, M, V, P", "X1, M1, V1, P1",
                       cat(kLearningRateAndStep,
                           decoupled ? decoupled_decay("r", "d_decay") : coupled_decay("d_decay"),
                           factors(kLongNames), moments("g"), R"(
  p2 = Pow (d_beta2, t)
  q2 = Sub (one, p2)
  half = Constant <value = double {0.5}> ()
  base = Constant <value = double {0.96}> ()
  tnext = Add (t, one)
  e0 = Mul (t, d_momentum_decay)
  e1 = Mul (tnext, d_momentum_decay)
  w0 = Pow (base, e0)
  w1 = Pow (base, e1)
  h0 = Mul (half, w0)
  h1 = Mul (half, w1)
  f0 = Sub (one, h0)
  f1 = Sub (one, h1)
  mu = Mul (d_beta1, f0)
  mu_next = Mul (d_beta1, f1)
  mu_s = CastLike (mu, P)
  P1 = Mul (P, mu_s)
  product = Cast <to = 11> (P1)
  q2x = CastLike (q2, X)
  fixed = Div (V1, q2x)
  root = Sqrt (fixed)
  denominator = Add (root, eps)
  rest = Sub (one, mu)
  left = Sub (one, product)
  rl = Mul (r, rest)
  a = Div (rl, left)
  product_next = Mul (product, mu_next)
  left_next = Sub (one, product_next)
  rn = Mul (r, mu_next)
  b = Div (rn, left_next)
  ax = CastLike (a, X)
  bx = CastLike (b, X)
  ag = Mul (ax, g)
  bm = Mul (bx, M1)
  move_g = Div (ag, denominator)
  move_m = Div (bm, denominator)
  first = Sub (kept, move_g)
  X1 = Sub (first, move_m)
)"));
}

OptimizerNode node(const OptimizerSettings& s) {
  OptimizerNode n{.op = s.flag("decoupled_weight_decay") ? "NAdamW" : "NAdam",
                  .scalars = "RN",
                  .attrs = adam_attrs(s),
                  .state = {{"exp_avg", 0}, {"exp_avg_sq", 0}, {"mu_product", 1}}};
  n.attrs["momentum_decay"] = s.real("momentum_decay");
  if (s.flag("decoupled_weight_decay")) n.shrink = s["weight_decay"];
  return n;
}

}  // namespace

void register_nadam(OpTable& t) {
  std::vector<OptimizerSetting> settings = adam_settings(2e-3, {"eps", 1e-8}, {"weight_decay", 0});
  settings.push_back({"momentum_decay", 4e-3});
  settings.push_back({"decoupled_weight_decay", 0, SettingRange::kFlag});
  t.add_optimizer({.kind = "nadam",
                   .class_name = "NAdam",
                   .help = "Adam with Nesterov's momentum.",
                   .settings = settings,
                   .node = node});
  t.add(update_op<2, 2, 1>("NAdam", make<false>, keep_text(text("NAdam", false))));
  t.add(update_op<2, 2, 1>("NAdamW", make<true>, keep_text(text("NAdamW", true))));
}

}  // namespace onnxtrain::ops
