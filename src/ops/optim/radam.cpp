// The optimizer radam: PyTorch's RAdam. Adam whose adaptive step begins when the second moment
// rests on enough steps; until then it is a step along the mean of the gradients.
#include "ops/optim/optimizer_function.hpp"
#include "ops/optim/optimizer_update.hpp"

namespace onnxtrain::ops {

namespace {

// How far the adaptive step counts at step t; 0: not yet.
double rectification(double beta2, double t) {
  const double p2 = std::pow(beta2, t), most = 2 / (1 - beta2) - 1;
  const double length = most - 2 * (t * p2) / (1 - p2);
  if (!(length > 5)) return 0;
  return std::sqrt((length - 4) * (length - 2) * most / ((most - 4) * (most - 2) * length));
}

template <bool decoupled>
Kernel make(Prepare& p) {
  const int64_t n = p.in(2).size();
  const AdamSettings set(p.node());
  const LearningRateAndStep scalars(p);
  return update_kernel(p, 2, [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    return [=](const Run& r) {
      const double lr = scalars.lr(r), t = scalars.step(r);
      const double rectify = rectification(set.beta2, t);
      const C fix1 = C(1 - std::pow(set.beta1, t)), eps = C(set.epsilon), step = C(lr),
              fix2 = C(std::sqrt(1 - std::pow(set.beta2, t)));
      update_moments<T>(r, n, set, lr, decoupled, [&](C kept, C, C mean, C square) {
        const C factor = rectify > 0 ? fix2 / (std::sqrt(square) + eps) * C(rectify) : C(1);
        return kept - mean / fix1 * step * factor;
      });
    };
  });
}

std::string text(const char* name, bool decoupled) {
  return function_text(name, kLongNames.attributes(), "R, T, X, G, M, V", "X1, M1, V1",
                       cat(kLearningRateAndStep,
                           decoupled ? decoupled_decay("r", "d_decay") : coupled_decay("d_decay"),
                           factors(kLongNames), moments("g"), R"(
  p2 = Pow (d_beta2, t)
  q2 = Sub (one, p2)
  two = Constant <value = double {2.0}> ()
  four = Constant <value = double {4.0}> ()
  five = Constant <value = double {5.0}> ()
  p1 = Pow (d_beta1, t)
  q1 = Sub (one, p1)
  tw = Div (two, n2)
  inf = Sub (tw, one)
  tp = Mul (t, p2)
  tp2 = Mul (two, tp)
  lost = Div (tp2, q2)
  rho = Sub (inf, lost)
  enough = Greater (rho, five)
  safe = Max (rho, five)
  s4 = Sub (safe, four)
  s2 = Sub (safe, two)
  i4 = Sub (inf, four)
  i2 = Sub (inf, two)
  up1 = Mul (s4, s2)
  up = Mul (up1, inf)
  low1 = Mul (i4, i2)
  low = Mul (low1, safe)
  ratio = Div (up, low)
  rect = Sqrt (ratio)
  root2 = Sqrt (q2)
  root2x = CastLike (root2, X)
  root = Sqrt (V1)
  denominator = Add (root, eps)
  adaptive = Div (root2x, denominator)
  rectx = CastLike (rect, X)
  scaled = Mul (adaptive, rectx)
  onex = CastLike (one, X)
  factor = Where (enough, scaled, onex)
  q1x = CastLike (q1, X)
  corrected = Div (M1, q1x)
  rx = CastLike (r, X)
  cr = Mul (corrected, rx)
  move = Mul (cr, factor)
  X1 = Sub (kept, move)
)"));
}

OptimizerNode node(const OptimizerSettings& s) {
  const bool decoupled = s.flag("decoupled_weight_decay");
  return {.op = decoupled ? "RAdamW" : "RAdam",
          .scalars = "RN",
          .attrs = adam_attrs(s),
          .state = {{"exp_avg", 0}, {"exp_avg_sq", 0}},
          .shrink = decoupled ? s["weight_decay"] : 0};
}

}  // namespace

void register_radam(OpTable& t) {
  std::vector<OptimizerSetting> settings = adam_settings(1e-3, {"eps", 1e-8}, {"weight_decay", 0});
  settings.push_back({"decoupled_weight_decay", 0, SettingRange::kFlag});
  t.add_optimizer({.kind = "radam",
                   .class_name = "RAdam",
                   .help = "Adam with a rectified variance: no warm-up needed.",
                   .settings = settings,
                   .node = node});
  t.add(update_op<2, 2>("RAdam", make<false>, keep_text(text("RAdam", false))));
  t.add(update_op<2, 2>("RAdamW", make<true>, keep_text(text("RAdamW", true))));
}

}  // namespace onnxtrain::ops
