// Sgd: X1 = X - R (G + decay X), PyTorch's SGD without momentum.
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

}  // namespace

void register_sgd(OpTable& t) {
  t.add({.name = "Sgd",
         .domain = std::string(kOwnDomain),
         .shape = shape,
         .impls = {{"simd", refuses_simd_update, make_simd_update}, {"ref", nullptr, make}},
         .no_grad = "an optimizer's update is not differentiated",
         .in_place = {{1, 0}},
         .function = kFunction});
}

}  // namespace onnxtrain::ops
