// The optimizers adam and adamw by PyTorch's formulas (epsilon beside the corrected root, decay
// coupled or decoupled), with and without AMSGrad; AdamKeras has Keras' form (epsilon beside the
// plain root).
#include "ops/optim/optimizer_function.hpp"
#include "ops/optim/optimizer_update.hpp"
#include "ops/optim/update_kernel.hpp"

namespace onnxtrain::ops {

namespace {

enum class Form { kAdam, kAdamW, kKeras };

template <Form form, bool ams>
Kernel make(Prepare& p) {
  const int64_t n = p.in(2).size();
  const AdamSettings set(p.node());
  LearningRateAndStep scalars(p);
  return update_kernel(p, 2, [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    return [=](const Run& r) {
      double lr = scalars.lr(r), t = scalars.step(r);
      double fix1 = 1 - std::pow(set.beta1, t), fix2 = std::sqrt(1 - std::pow(set.beta2, t));
      C step = C(form == Form::kKeras ? lr * fix2 / fix1 : lr / fix1);
      C root_by = C(form == Form::kKeras ? 1.0 : fix2), eps = C(set.epsilon);
      C keep = C(form == Form::kAdam ? 1.0 : 1 - lr * set.decay),
        add = C(form == Form::kAdam ? set.decay : 0.0);
      C c1 = C(1 - set.beta1), b2 = C(set.beta2), c2 = C(1 - set.beta2);
      const T *x = r.in<T>(2), *g = r.in<T>(3), *m = r.in<T>(4), *v = r.in<T>(5),
              *s = ams ? r.in<T>(6) : nullptr;
      T *x1 = r.out<T>(0), *m1 = r.out<T>(1), *v1 = r.out<T>(2), *s1 = ams ? r.out<T>(3) : nullptr;
      each_element(r, n, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          C grad = C(g[i]) + add * C(x[i]);
          C mi = C(m[i]) + (grad - C(m[i])) * c1;
          C vi = C(v[i]) * b2 + grad * grad * c2;
          C top = vi;
          if constexpr (ams) {
            top = C(s[i]) > vi ? C(s[i]) : vi;
            s1[i] = T(top);
          }
          C denominator = std::sqrt(top) / root_by + eps;
          x1[i] = T(C(x[i]) * keep - step * (mi / denominator));
          m1[i] = T(mi);
          v1[i] = T(vi);
        }
      });
    };
  });
}

// The same in standard operators.
template <Form form, bool ams>
std::string text(const char* name) {
  std::string f =
      cat(kLearningRateAndStep, R"(
  p1 = Pow (b1, t)
  p2 = Pow (b2, t)
  fix1 = Sub (one, p1)
  q2 = Sub (one, p2)
  fix2 = Sqrt (q2)
)",
          factors(), form == Form::kAdam ? coupled_decay() : decoupled_decay(), moments("g"));
  f += ams ? "  S1 = Max (S, V1)\n  root = Sqrt (S1)\n" : "  root = Sqrt (V1)\n";
  f += form == Form::kKeras ? R"(
  scaled = Identity (root)
  rf = Mul (r, fix2)
  size = Div (rf, fix1)
)"
                            : R"(
  f2 = CastLike (fix2, X)
  scaled = Div (root, f2)
  size = Div (r, fix1)
)";
  f += R"(
  denominator = Add (scaled, eps)
  step = CastLike (size, X)
  quotient = Div (M1, denominator)
  move = Mul (step, quotient)
  X1 = Sub (kept, move)
)";
  return function_text(name, AdamNames().attributes(),
                       ams ? "R, T, X, G, M, V, S" : "R, T, X, G, M, V",
                       ams ? "X1, M1, V1, S1" : "X1, M1, V1", f);
}

template <Form form, bool ams>
VectorUpdate vector(const Node& n) {
  const AdamSettings a(n);
  return [a](ThreadPool& pool, const simd::OptimList& list, double lr, double t, float factor) {
    simd::AdamStep s =
        simd::adam_step(lr, a.beta1, a.beta2, a.epsilon, a.decay, form != Form::kAdam, t);
    if (form == Form::kKeras) {
      s.step = float(lr * std::sqrt(1 - std::pow(a.beta2, t)) / (1 - std::pow(a.beta1, t)));
      s.root = 1;
    }
    s.grad_scale = factor;
    s.amsgrad = ams;
    simd::update(pool, list, s);
  };
}

template <Form form, bool ams>
void add(OpTable& t, const char* name) {
  Op op = update_op < 2, ams ? 3 : 2 > (name, make<form, ams>, keep_text(text<form, ams>(name)));
  op.impls.insert(op.impls.begin(), {"simd", refuses_simd_update, make_simd_update});
  op.update->vector = vector<form, ams>;
  t.add(op);
}

OptimizerNode node(const OptimizerSettings& s, std::string op) {
  OptimizerNode n{.op = std::move(op),
                  .scalars = "RN",
                  .attrs = adam_attrs(s),
                  .state = {{"exp_avg", 0}, {"exp_avg_sq", 0}}};
  if (s.flag("amsgrad")) {
    n.op += "Ams";
    n.state.emplace_back("max_exp_avg_sq", 0);
  } else if (s.keras() && s["weight_decay"] == 0) {  // exactly ONNX's Adam
    n.op = "Adam";
    n.domain = kTrainingDomain;
    n.attrs = {{"alpha", s.single("beta1")},
               {"beta", s.single("beta2")},
               {"epsilon", s.single("eps")},
               {"norm_coefficient", 0.0f},
               {"norm_coefficient_post", 0.0f}};
  }
  return n;
}

OptimizerNode adam(const OptimizerSettings& s) {
  OptimizerNode n = node(s, s.keras() ? "AdamKeras" : "Adam");
  if (s.keras()) n.shrink = s["weight_decay"];
  return n;
}
OptimizerNode adamw(const OptimizerSettings& s) {
  OptimizerNode n = node(s, s.keras() ? "AdamKeras" : "AdamW");
  n.shrink = s["weight_decay"];
  return n;
}

std::vector<OptimizerSetting> settings(OptimizerSetting decay) {
  std::vector<OptimizerSetting> all =
      adam_settings(1e-3, {.name = "eps", .value = 1e-8, .keras = 1e-7}, decay);
  all.push_back({"amsgrad", 0, SettingRange::kFlag});
  return all;
}

}  // namespace

void register_adam(OpTable& t) {
  t.add_optimizer({.kind = "adam",
                   .class_name = "Adam",
                   .help = "Adam.",
                   .settings = settings({"weight_decay", 0}),
                   .node = adam,
                   .has_keras_style = true});
  std::vector<OptimizerSetting> decoupled =
      settings({.name = "weight_decay", .value = 0.01, .keras = 0.004});
  decoupled.push_back({"no_decay_on_bias_and_norm", 0, SettingRange::kFlag});
  t.add_optimizer({.kind = "adamw",
                   .class_name = "AdamW",
                   .help = "Adam with decoupled weight decay.",
                   .settings = decoupled,
                   .node = adamw,
                   .base_class = "Adam",
                   .has_keras_style = true});
  add<Form::kAdam, false>(t, "Adam");
  add<Form::kAdamW, false>(t, "AdamW");
  add<Form::kKeras, false>(t, "AdamKeras");
  add<Form::kAdam, true>(t, "AdamAms");
  add<Form::kAdamW, true>(t, "AdamWAms");
  add<Form::kKeras, true>(t, "AdamKerasAms");
}

}  // namespace onnxtrain::ops
