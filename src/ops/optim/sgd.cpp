// The optimizers sgd, momentum and nesterov: PyTorch's SGD. With momentum it is the standard's
// operator Momentum; without, Sgd: X1 = X - R (G + decay X).
#include "ops/optim/optimizer_function.hpp"
#include "ops/optim/optimizer_update.hpp"
#include "ops/optim/update_kernel.hpp"

namespace onnxtrain::ops {

namespace {

Kernel make(Prepare& p) {
  int64_t n = p.in(1).size();
  double decay = setting(p.node(), "decay");
  DType lr_type = p.in(0).dtype;
  return update_kernel(p, 1, [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    return [=](const Run& r) {
      C lr = C(read_scalar(r.inputs[0], lr_type)), d = C(decay);
      const T *x = r.in<T>(1), *g = r.in<T>(2);
      T* y = r.out<T>(0);
      each_element(r, n, [&](int64_t b, int64_t e) {
        if (d == C(0)) {
          for (int64_t i = b; i < e; ++i) y[i] = T(C(x[i]) - lr * C(g[i]));
        } else {
          for (int64_t i = b; i < e; ++i) y[i] = T(C(x[i]) - lr * (C(g[i]) + d * C(x[i])));
        }
      });
    };
  });
}

constexpr const char* kFunction = R"(
<domain: "ai.onnxtrain", opset_import: ["" : 15]>
Sgd <decay> (R, X, G) => (X1)
{
  d = Constant <value: tensor = @decay> ()
  dx = CastLike (d, X)
  decayed = Mul (dx, X)
  g = Add (G, decayed)
  r = CastLike (R, X)
  move = Mul (r, g)
  X1 = Sub (X, move)
}
)";

// With a momentum B that changes from step to step; T counts finished steps, and the first step
// starts the buffer with the gradient. Files of the converters have it.
template <bool nesterov>
Kernel make_cycled(Prepare& p) {
  const int64_t n = p.in(3).size();
  const double decay = setting(p.node(), "decay"), dampening = setting(p.node(), "dampening");
  const LearningRateAndStep scalars(p);
  const DType momentum_type = p.in(2).dtype;
  return update_kernel(p, 3, [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    return [=](const Run& r) {
      const C lr = C(scalars.lr(r)), d = C(decay),
              momentum = C(read_scalar(r.inputs[2], momentum_type)),
              share = scalars.step(r) > 0 ? C(1 - dampening) : C(1);
      const T *x = r.in<T>(3), *g = r.in<T>(4), *v = r.in<T>(5);
      T *x1 = r.out<T>(0), *v1 = r.out<T>(1);
      each_element(r, n, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          const C grad = C(g[i]) + d * C(x[i]), vi = C(v[i]) * momentum + grad * share;
          x1[i] = T(C(x[i]) - lr * (nesterov ? grad + momentum * vi : vi));
          v1[i] = T(vi);
        }
      });
    };
  });
}

std::string cycled_body(bool nesterov) {
  return cat(coupled_decay("d_decay"), R"(
  b = CastLike (B, X)
  rest = Sub (one, d_dampening)
  c = CastLike (rest, X)
  zero_t = Sub (T, T)
  later = Greater (T, zero_t)
  onex = CastLike (one, X)
  share = Where (later, c, onex)
  vb = Mul (V, b)
  gs = Mul (g, share)
  V1 = Add (vb, gs)
)",
             nesterov ? "  bv = Mul (b, V1)\n  go = Add (g, bv)\n" : "  go = Identity (V1)\n", R"(
  r = CastLike (R, X)
  move = Mul (r, go)
  X1 = Sub (kept, move)
)");
}

VectorUpdate vector(const Node& n) {
  const double decay = setting(n, "decay");
  return [=](ThreadPool& pool, const simd::OptimList& list, double lr, double, float factor) {
    simd::update(pool, list,
                 simd::SgdStep{.lr = float(lr), .decay = float(decay), .grad_scale = factor});
  };
}

bool without_decay(const Node& n) { return setting(n, "decay") == 0; }

OptimizerNode with_momentum(const OptimizerSettings& s, double momentum, bool nesterov) {
  return {.op = "Momentum",  // ONNX's operator is PyTorch's SGD
          .domain = kTrainingDomain,
          .scalars = "RT",
          .attrs = {{"alpha", float(momentum)},
                    {"beta", float(1 - s["dampening"])},
                    {"norm_coefficient", s.single("weight_decay")},
                    {"mode", std::string(nesterov ? "nesterov" : "standard")}},
          .state = {{"momentum", 0}},
          .shrink = s["weight_decay"] * (nesterov ? 1 + momentum : 1)};
}

OptimizerNode sgd(const OptimizerSettings& s) {
  if (s["momentum"] > 0) return with_momentum(s, s["momentum"], s.flag("nesterov"));
  return {.op = "Sgd", .attrs = {{"decay", s.real("weight_decay")}}, .shrink = s["weight_decay"]};
}

// 0 means "not given" for the words that are about momentum.
double some_momentum(const OptimizerSettings& s) {
  return s["momentum"] == 0 ? 0.9 : s["momentum"];
}

OptimizerNode momentum(const OptimizerSettings& s) {
  return with_momentum(s, some_momentum(s), s.flag("nesterov"));
}

OptimizerNode nesterov(const OptimizerSettings& s) {
  return with_momentum(s, some_momentum(s), true);
}

void check(const OptimizerSettings& s) {
  if (s.flag("nesterov") && (s["momentum"] <= 0 || s["dampening"] != 0))
    usage_error("OT1234", "Nesterov's rule needs a momentum and no dampening",
                "set momentum to 0.9 and dampening to 0");
}

const std::vector<OptimizerSetting> kSettings = {
    {"lr", 1e-2},
    {"momentum", 0, SettingRange::kBelowOne},
    {"dampening", 0, SettingRange::kAny},
    {"nesterov", 0, SettingRange::kFlag},
    {"weight_decay", 0},
};

}  // namespace

void register_sgd(OpTable& t) {
  t.add_optimizer({.kind = "sgd",
                   .class_name = "SGD",
                   .help = "Gradient descent, with momentum when asked for.",
                   .settings = kSettings,
                   .node = sgd,
                   .check = check});
  t.add_optimizer({.kind = "momentum",
                   .class_name = "",
                   .help = "sgd with momentum 0.9.",
                   .settings = kSettings,
                   .node = momentum});
  t.add_optimizer({.kind = "nesterov",
                   .class_name = "",
                   .help = "sgd with momentum 0.9 by Nesterov's rule.",
                   .settings = kSettings,
                   .node = nesterov});
  Op op = update_op<1, 0>("Sgd", make, kFunction);
  op.impls.insert(op.impls.begin(), {"simd", refuses_simd_update, make_simd_update});
  op.update->vector = vector;
  op.update->by_rows = "SgdRows";
  op.update->leaves_rows = without_decay;
  t.add(op);
  auto cycled = [&](const char* name, Kernel (*make_it)(Prepare&), bool nesterov) {
    t.add(update_op<3, 1>(
        name, make_it,
        keep_text(function_text(name, {{"decay", "d_decay"}, {"dampening", "d_dampening"}},
                                "R, T, B, X, G, V", "X1, V1", cycled_body(nesterov)))));
  };
  cycled("MomentumCycled", make_cycled<false>, false);
  cycled("NesterovCycled", make_cycled<true>, true);
}

}  // namespace onnxtrain::ops
