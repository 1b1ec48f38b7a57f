// The optimizer rprop: PyTorch's Rprop. Each weight has a step of its own, S, that grows while its
// gradient keeps the sign and shrinks when it turns. The learning rate is the first S and has no
// effect later. State after X and G: P (the gradient before), S.
#include "ops/optim/optimizer_function.hpp"
#include "ops/optim/optimizer_update.hpp"

namespace onnxtrain::ops {

namespace {

Kernel make(Prepare& p) {
  const Node& node = p.node();
  const int64_t n = p.in(0).size();
  const double minus = setting(node, "eta_minus", 0.5), plus = setting(node, "eta_plus", 1.2),
               least = setting(node, "step_min", 1e-6), most = setting(node, "step_max", 50);
  return update_kernel(p, 0, [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    return [=](const Run& r) {
      const C shrink = C(minus), grow = C(plus), low = C(least), high = C(most);
      const T *x = r.in<T>(0), *g = r.in<T>(1), *before = r.in<T>(2), *s = r.in<T>(3);
      T *x1 = r.out<T>(0), *now = r.out<T>(1), *s1 = r.out<T>(2);
      each_element(r, n, [&](int64_t b, int64_t e) {
        for (int64_t i = b; i < e; ++i) {
          const C both = C(g[i]) * C(before[i]);
          C size = C(s[i]) * (both > C(0) ? grow : both < C(0) ? shrink : C(1));
          size = size < low ? low : size > high ? high : size;
          const C grad = both < C(0) ? C(0) : C(g[i]);
          const C sign = grad > C(0) ? C(1) : grad < C(0) ? C(-1) : grad;  // keeps NaN
          x1[i] = T(C(x[i]) - sign * size);
          now[i] = T(grad);
          s1[i] = T(size);
        }
      });
    };
  });
}

constexpr const char* kBody = R"(
  both = Mul (G, P)
  zero_d = Sub (one, one)
  zero = CastLike (zero_d, X)
  onex = CastLike (one, X)
  minus = CastLike (d_eta_minus, X)
  plus = CastLike (d_eta_plus, X)
  low = CastLike (d_step_min, X)
  high = CastLike (d_step_max, X)
  same = Greater (both, zero)
  turned = Less (both, zero)
  f0 = Where (turned, minus, onex)
  factor = Where (same, plus, f0)
  scaled = Mul (S, factor)
  s0 = Max (scaled, low)
  S1 = Min (s0, high)
  P1 = Where (turned, zero, G)
  direction = Sign (P1)
  move = Mul (direction, S1)
  X1 = Sub (X, move)
)";

OptimizerNode node(const OptimizerSettings& s) {
  return {.op = "Rprop",
          .scalars = "",
          .attrs = {{"eta_minus", s.real("eta_minus")},
                    {"eta_plus", s.real("eta_plus")},
                    {"step_min", s.real("step_min")},
                    {"step_max", s.real("step_max")}},
          .state = {{"prev", 0}, {"step_size", s["lr"]}}};
}

void check(const OptimizerSettings& s) {
  if (!(s["eta_minus"] > 0 && s["eta_minus"] < 1 && s["eta_plus"] > 1))
    usage_error("OT1234",
                cat("rprop shrinks steps by eta_minus, which is ", s["eta_minus"],
                    ", and grows them by eta_plus, which is ", s["eta_plus"]),
                "set eta_minus between 0 and 1 and eta_plus above 1, for example 0.5 and 1.2");
}

}  // namespace

void register_rprop(OpTable& t) {
  t.add_optimizer(
      {.kind = "rprop",
       .class_name = "Rprop",
       .help = "Rprop: a step per weight, by the sign of the gradient; for full batches.",
       .settings = {{"lr", 1e-2},
                    {"eta_minus", 0.5},
                    {"eta_plus", 1.2},
                    {"step_min", 1e-6},
                    {"step_max", 50}},
       .node = node,
       .check = check});
  t.add(update_op<0, 2>("Rprop", make,
                        keep_text(function_text("Rprop",
                                                {{"eta_minus", "d_eta_minus"},
                                                 {"eta_plus", "d_eta_plus"},
                                                 {"step_min", "d_step_min"},
                                                 {"step_max", "d_step_max"}},
                                                "X, G, P, S", "X1, P1, S1", kBody))));
}

}  // namespace onnxtrain::ops
