// The optimizers sgd, momentum and nesterov: PyTorch's SGD. With momentum it is the standard's
// operator Momentum; without, Sgd: X1 = X - R (G + decay X).
#include "ops/optim/optimizer_shape.hpp"
#include "ops/optim/update_kernel.hpp"

namespace onnxtrain::ops {

namespace {

void shape(ShapeCtx& c) { optimizer_shape(c, 1); }

Kernel make(Prepare& p) {
  int64_t n = p.in(1).size();
  double decay = setting(p.node(), "decay");
  DType rate_type = p.in(0).dtype;
  return dispatch<float, double, Half, BFloat16>(p.in(1).dtype, "Sgd", [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    return [=](const Run& r) {
      C rate = C(read_scalar(r.inputs[0], rate_type)), d = C(decay);
      const T *x = r.in<T>(1), *g = r.in<T>(2);
      T* y = r.out<T>(0);
      each_element(r, n, [&](int64_t b, int64_t e) {
        if (d == C(0)) {
          for (int64_t i = b; i < e; ++i) y[i] = T(C(x[i]) - rate * C(g[i]));
        } else {
          for (int64_t i = b; i < e; ++i) y[i] = T(C(x[i]) - rate * (C(g[i]) + d * C(x[i])));
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

VectorUpdate vector(const Node& n) {
  const double decay = setting(n, "decay");
  return [=](ThreadPool& pool, const simd::OptimList& list, double rate, double, float factor) {
    simd::update(pool, list,
                 simd::SgdStep{.lr = float(rate), .decay = float(decay), .grad_scale = factor});
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
          .state = {{"momentum", 0}}};
}

OptimizerNode sgd(const OptimizerSettings& s) {
  if (s["momentum"] > 0) return with_momentum(s, s["momentum"], s.flag("nesterov"));
  return {.op = "Sgd", .attrs = {{"decay", s.real("weight_decay")}}};
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
    {"momentum", 0},
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
  t.add({.name = "Sgd",
         .domain = std::string(kOwnDomain),
         .shape = shape,
         .impls = {{"simd", refuses_simd_update, make_simd_update}, {"ref", nullptr, make}},
         .no_grad = kUpdateNoGrad,
         .in_place = {{1, 0}},
         .update = UpdateForm{.vector = vector, .by_rows = "SgdRows", .leaves_rows = without_decay},
         .function = kFunction});
}

}  // namespace onnxtrain::ops
