// LRN: local response normalisation over neighbouring channels.
#include <cmath>

#include "op/needs_shape.hpp"
#include "ops/common/expr.hpp"
#include "ops/norm/channel_loops.hpp"

namespace onnxtrain::ops {

namespace {

struct Window {
  Channels ch;
  int64_t size, before, after;  // channels around one
  double alpha, beta, bias;
  Window(const Node& n, const Shape& x) {
    if (x.size() < 2)
      model_error("OT1133", cat("LRN of ", to_string(x), ", which has no channels"));
    ch = channels_of(x);
    size = n.i("size", 0);
    if (size < 1) model_error("OT1134", cat("size of LRN is ", size, ", it must be positive"));
    before = std::min((size - 1) / 2, ch.c);
    after = std::min(size - 1 - (size - 1) / 2, ch.c);
    alpha = double(n.f("alpha", 1e-4f));
    beta = double(n.f("beta", 0.75f));
    bias = double(n.f("bias", 1.0f));
  }
};

void shape(ShapeCtx& c) {
  Window w(c.node(), c.shape(0));
  if (c.inputs() > 1 && c.shape(1) != c.shape(0))
    model_error("OT1133", "LRNGrad: dy and x have different shapes");
  c.set(0, c.dtype(0), c.shape(0));
}

// bias + alpha/size * sum of squares around element i of channel c
template <class T, class C = compute_t<T>>
C denominator(const Window& w, const T* x, int64_t i, int64_t c) {
  int64_t s = w.ch.s;
  C sum = 0;
  for (int64_t k = std::max<int64_t>(0, c - w.before); k <= std::min(w.ch.c - 1, c + w.after);
       ++k) {
    C v = C(x[i + (k - c) * s]);
    sum += v * v;
  }
  return C(w.bias) + C(w.alpha) / C(w.size) * sum;
}

int64_t grain(const Window& w) {
  return std::max<int64_t>(1, 4096 / std::max<int64_t>(1, w.ch.s * (w.before + w.after + 1)));
}

Kernel make(Prepare& p) {
  Window w(p.node(), p.in(0).shape);
  return dispatch<float, double, Half, BFloat16>(p.in(0).dtype, "LRN", [&]<class T>() -> Kernel {
    using C = compute_t<T>;
    return [w](const Run& r) {
      const T* x = r.in<T>(0);
      T* y = r.out<T>(0);
      parallel_for(*r.pool, w.ch.n * w.ch.c, grain(w), [&](int64_t b, int64_t e) {
        for (int64_t row = b; row < e; ++row)
          for (int64_t i = row * w.ch.s; i < (row + 1) * w.ch.s; ++i)
            y[i] = T(C(x[i]) * std::pow(denominator(w, x, i, row % w.ch.c), C(-w.beta)));
      });
    };
  });
}

// dx = dy d^-beta - 2 alpha beta / size * x * sum over the windows that hold x of dy x d^(-beta-1)
Kernel make_grad(Prepare& p) {
  Window w(p.node(), p.in(0).shape);
  int64_t n = p.out(0).size();
  return dispatch<float, double, Half, BFloat16>(
      p.in(0).dtype, "LRNGrad", [&]<class T>() -> Kernel {
        using C = compute_t<T>;
        p.workspace = size_t(2 * n) * sizeof(C);
        return [w, n](const Run& r) {
          const T *dy = r.in<T>(0), *x = r.in<T>(1);
          T* dx = r.out<T>(0);
          C *direct = static_cast<C*>(r.workspace), *spread = direct + n;
          int64_t s = w.ch.s;
          parallel_for(*r.pool, w.ch.n * w.ch.c, grain(w), [&](int64_t b, int64_t e) {
            for (int64_t row = b; row < e; ++row)
              for (int64_t i = row * s; i < (row + 1) * s; ++i) {
                C d = denominator(w, x, i, row % w.ch.c);
                direct[i] = C(dy[i]) * std::pow(d, C(-w.beta));
                spread[i] = direct[i] * C(x[i]) / d;
              }
          });
          C factor = C(-2 * w.alpha * w.beta / double(w.size));
          parallel_for(*r.pool, w.ch.n * w.ch.c, grain(w), [&](int64_t b, int64_t e) {
            for (int64_t row = b; row < e; ++row) {
              int64_t c = row % w.ch.c;
              for (int64_t i = row * s; i < (row + 1) * s; ++i) {
                C sum = 0;
                for (int64_t k = std::max<int64_t>(0, c - w.after);
                     k <= std::min(w.ch.c - 1, c + w.before); ++k)
                  sum += spread[i + (k - c) * s];
                dx[i] = T(direct[i] + factor * C(x[i]) * sum);
              }
            }
          });
        };
      });
}

std::vector<ValueId> rule(GradBuilder& b) {
  return {b.own("LRNGrad", {b.dy(), b.x(0)}, b.node().attrs)};
}

// Sums over windows are products with a matrix of ones around the diagonal.
std::vector<ValueId> lower(GradBuilder& b) {
  ValueId x = b.x(1);
  const TypeInfo& type = b.type(x);
  if (!type.shape || type.shape->size() < 2 || !(*type.shape)[1].known())
    needs_shape("OT1205", "the lowered gradient of LRN needs the number of channels");
  Window w(b.node(), {1, (*type.shape)[1].value, 1});
  Tensor band = dispatch<float, double, Half, BFloat16>(b.dtype(x), "LRN", [&]<class T>() {
    std::vector<T> v(size_t(w.ch.c * w.ch.c), T(compute_t<T>(0)));
    for (int64_t i = 0; i < w.ch.c; ++i)
      for (int64_t k = std::max<int64_t>(0, i - w.before); k <= std::min(w.ch.c - 1, i + w.after);
           ++k)
        v[size_t(i * w.ch.c + k)] = T(compute_t<T>(1));
    return Tensor::vector<T>(v).reshaped({w.ch.c, w.ch.c});
  });
  ValueId to = b.constant_ints({0, w.ch.c, -1}), m = b.tensor(band);
  Expr dy{b, b.call("Reshape", {b.x(0), to})}, ex{b, b.call("Reshape", {x, to})};
  Expr d = Expr{b, b.call("MatMul", {m, (ex * ex).v})} * (w.alpha / double(w.size)) + w.bias;
  Expr direct = dy * Expr{b, b.call("Pow", {d.v, b.scalar(-w.beta, x)})};
  Expr sum{b, b.call("MatMul", {b.transpose(m, {1, 0}), (direct * ex / d).v})};
  return {b.reshape_like((direct + ex * sum * (-2 * w.alpha * w.beta / double(w.size))).v, x)};
}

}  // namespace

void register_lrn(OpTable& t) {
  t.add({.name = "LRN", .shape = shape, .impls = {{"ref", nullptr, make}}, .grad = rule});
  t.add({.name = "LRNGrad",
         .domain = std::string(kOwnDomain),
         .shape = shape,
         .impls = {{"ref", nullptr, make_grad}},
         .lower = lower});
}

}  // namespace onnxtrain::ops
