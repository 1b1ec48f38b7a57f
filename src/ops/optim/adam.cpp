// The optimizers adam and adamw by PyTorch's formulas (epsilon beside the corrected root, decay
// coupled or decoupled), with and without AMSGrad; AdamKeras has Keras' form (epsilon beside the
// plain root).
#include "ops/optim/optimizer_shape.hpp"
#include "ops/optim/update_kernel.hpp"

namespace onnxtrain::ops {

namespace {

enum class Form { kAdam, kAdamW, kKeras };

void shape(ShapeCtx& c) { optimizer_shape(c, 2); }

template <Form form, bool ams>
Kernel make(Prepare& p) {
  const Node& node = p.node();
  int64_t n = p.in(2).size();
  double beta1 = setting(node, "beta1", 0.9), beta2 = setting(node, "beta2", 0.999);
  double epsilon = setting(node, "epsilon", 1e-8), decay = setting(node, "decay");
  RateAndStep scalars(p);
  return dispatch<float, double, Half, BFloat16>(p.in(2).dtype, node.op, [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    return [=](const Run& r) {
      double rate = scalars.rate(r), t = scalars.step(r);
      double fix1 = 1 - std::pow(beta1, t), fix2 = std::sqrt(1 - std::pow(beta2, t));
      C step = C(form == Form::kKeras ? rate * fix2 / fix1 : rate / fix1);
      C root_by = C(form == Form::kKeras ? 1.0 : fix2), eps = C(epsilon);
      C keep = C(form == Form::kAdam ? 1.0 : 1 - rate * decay),
        add = C(form == Form::kAdam ? decay : 0.0);
      C c1 = C(1 - beta1), b2 = C(beta2), c2 = C(1 - beta2);
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
std::string function_text(const std::string& name, Form form, bool ams) {
  std::string f = "<domain: \"ai.onnxtrain\", opset_import: [\"\" : 15]>\n" + name;
  f += ams ? " <beta1, beta2, epsilon, decay> (R, T, X, G, M, V, S) => (X1, M1, V1, S1)\n{\n"
           : " <beta1, beta2, epsilon, decay> (R, T, X, G, M, V) => (X1, M1, V1)\n{\n";
  f += R"(
  b1 = Constant <value: tensor = @beta1> ()
  b2 = Constant <value: tensor = @beta2> ()
  e = Constant <value: tensor = @epsilon> ()
  d = Constant <value: tensor = @decay> ()
  one = Constant <value = double {1.0}> ()
  t = Cast <to = 11> (T)
  r = Cast <to = 11> (R)
  p1 = Pow (b1, t)
  p2 = Pow (b2, t)
  fix1 = Sub (one, p1)
  q2 = Sub (one, p2)
  fix2 = Sqrt (q2)
  n1 = Sub (one, b1)
  n2 = Sub (one, b2)
  c1 = CastLike (n1, X)
  c2 = CastLike (n2, X)
  k2 = CastLike (b2, X)
  eps = CastLike (e, X)
)";
  f += form == Form::kAdam ? R"(
  dx = CastLike (d, X)
  l2 = Mul (dx, X)
  g = Add (G, l2)
  kept = Identity (X)
)"
                           : R"(
  rd = Mul (r, d)
  keep = Sub (one, rd)
  k = CastLike (keep, X)
  kept = Mul (X, k)
  g = Identity (G)
)";
  f += R"(
  gm = Sub (g, M)
  gmc = Mul (gm, c1)
  M1 = Add (M, gmc)
  vb = Mul (V, k2)
  gg = Mul (g, g)
  ggc = Mul (gg, c2)
  V1 = Add (vb, ggc)
)";
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
  return f + R"(
  denominator = Add (scaled, eps)
  step = CastLike (size, X)
  quotient = Div (M1, denominator)
  move = Mul (step, quotient)
  X1 = Sub (kept, move)
}
)";
}

template <Form form, bool ams>
VectorUpdate vector(const Node& n) {
  const double beta1 = setting(n, "beta1", 0.9), beta2 = setting(n, "beta2", 0.999);
  const double epsilon = setting(n, "epsilon", 1e-8), decay = setting(n, "decay");
  return [=](ThreadPool& pool, const simd::OptimList& list, double rate, double t, float factor) {
    const double fix1 = 1 - std::pow(beta1, t), fix2 = std::sqrt(1 - std::pow(beta2, t));
    constexpr bool keras = form == Form::kKeras;
    simd::AdamStep s;
    s.grad_scale = factor;
    s.beta1 = beta1;
    s.beta2 = beta2;
    s.epsilon = float(epsilon);
    s.amsgrad = ams;
    s.step = float(keras ? rate * fix2 / fix1 : rate / fix1);
    s.root = keras ? 1.0f : float(1 / fix2);
    if (form == Form::kAdam)
      s.decay = float(decay);
    else
      s.pre = float(1 - rate * decay);
    simd::update(pool, list, s);
  };
}

template <Form form, bool ams>
void add(OpTable& t, const char* name) {
  static const std::string function = function_text(name, form, ams);
  Op op;
  op.name = name;
  op.domain = std::string(kOwnDomain);
  op.shape = shape;
  op.impls = {{"simd", refuses_simd_update, make_simd_update}, {"ref", nullptr, make<form, ams>}};
  op.no_grad = kUpdateNoGrad;
  op.update = UpdateForm{.scalars = 2, .states = ams ? 3 : 2, .vector = vector<form, ams>};
  op.in_place = {{2, 0}, {4, 1}, {5, 2}};
  if (ams) op.in_place.push_back({6, 3});
  op.function = function.c_str();
  t.add(std::move(op));
}

OptimizerNode node(const OptimizerSettings& s, std::string op) {
  OptimizerNode n{.op = std::move(op),
                  .scalars = "RN",
                  .attrs = {{"beta1", s.real("beta1")},
                            {"beta2", s.real("beta2")},
                            {"epsilon", s.real("eps")},
                            {"decay", s.real("weight_decay")}},
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

OptimizerNode adam(const OptimizerSettings& s) { return node(s, s.keras() ? "AdamKeras" : "Adam"); }
OptimizerNode adamw(const OptimizerSettings& s) {
  return node(s, s.keras() ? "AdamKeras" : "AdamW");
}

std::vector<OptimizerSetting> settings(OptimizerSetting decay) {
  return {{"lr", 1e-3},
          {"beta1", 0.9, SettingRange::kBelowOne},
          {"beta2", 0.999, SettingRange::kBelowOne},
          {.name = "eps", .value = 1e-8, .keras = 1e-7},
          decay,
          {"amsgrad", 0, SettingRange::kFlag}};
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
