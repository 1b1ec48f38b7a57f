// LpPool, GlobalLpPool and LpPoolGrad(dy, x, y).
#include "ops/common/lower_shape.hpp"
#include "ops/common/wide.hpp"
#include "ops/nn/pool_shape.hpp"

namespace onnxtrain::ops {

namespace {

// opset 1 has p as a float
double power_of(const Node& n) {
  const Attr* a = n.find("p");
  double p = 2;
  if (a) p = std::holds_alternative<float>(*a) ? double(n.f("p", 2)) : double(n.i("p", 2));
  if (!(p >= 1)) model_error("OT1140", cat("attribute p of ", n.label(), " is ", p));
  return p;
}

void lp_shape(ShapeCtx& c) {
  power_of(c.node());
  pool_shape(c);
}

struct Lp {
  template <class T>
  static Kernel make(Prepare& p) {
    kernels::Window w = pool_window(p.node(), p.in(0).shape);
    int64_t planes = p.in(0).shape[0] * p.in(0).shape[1];
    double power = power_of(p.node());
    return
        [=](const Run& r) { kernels::lp_pool(w, planes, power, r.in<T>(0), r.out<T>(0), *r.pool); };
  }
};

struct LpGrad {
  template <class T>
  static Kernel make(Prepare& p) {
    kernels::Window w = pool_window(p.node(), p.in(1).shape);
    int64_t planes = p.in(1).shape[0] * p.in(1).shape[1];
    double power = power_of(p.node());
    return [=](const Run& r) {
      kernels::lp_pool_grad(w, planes, power, r.in<T>(0), r.in<T>(1), r.in<T>(2), r.out<T>(0),
                            *r.pool);
    };
  }
};

std::vector<ValueId> lp_grad(GradBuilder& b) {
  return {b.own("LpPoolGrad", {b.dy(), b.x(0), b.y()}, pool_attrs(b.node()))};
}

// y^p is the sum of |x|^p: an average pool's gradient of dy * y^(1-p) times the inner derivative.
std::vector<ValueId> lp_grad_lower(GradBuilder& b) {
  double p = power_of(b.node());
  // counts and powers of 16-bit types in float32
  const DType type = b.dtype(b.x(1));
  auto wide = [&](int k) { return widened(Expr{b, b.x(k), type}).v; };
  ValueId dy = wide(0), x = wide(1), y = wide(2), zero = b.scalar(0, x);
  kernels::Window w = pool_window(b.node(), lowering_shape_of_one(b, kNone, b.x(1), "its input"));
  ValueId empty = b.call("Equal", {y, zero});
  ValueId safe = b.call("Where", {empty, b.scalar(1, y), y});
  ValueId share = b.div(dy, b.call("Pow", {safe, b.scalar(p - 1, y)}));
  share = b.call("Where", {empty, zero, share});
  GradBuilder::Attrs a = pool_attrs(b.node());
  a.erase("p");
  a["count_include_pad"] = int64_t(0);
  // the average pool divides by its counts, so multiply by them first
  CountedVector<double> counts = kernels::tap_counts<double>(w, false);
  Tensor ct = dispatch<float, double, Half, BFloat16>(b.dtype(x), "LpPoolGrad", [&]<class T>() {
    std::vector<T> e;
    for (double d : counts) e.push_back(T(compute_t<T>(d)));
    return Tensor::vector<T>(e);
  });
  Shape cs(w.dims() + 2, 1);
  std::copy(w.out.begin(), w.out.end(), cs.begin() + 2);
  share = b.mul(share, b.tensor(ct.reshaped(cs)));
  ValueId spread = b.own("AveragePoolGrad", {share, b.shape_of(x)}, a);
  if (!b.type(spread).concrete()) b.graph().value(spread).type = b.type(x);  // an open batch
  ValueId inner =
      b.mul(b.call("Sign", {x}), b.call("Pow", {b.call("Abs", {x}), b.scalar(p - 1, x)}));
  return {narrowed(b, b.mul(spread, inner), type)};
}

}  // namespace

void register_lp_pool(OpTable& t) {
  for (const char* name : {"LpPool", "GlobalLpPool"})
    t.add({.name = name,
           .shape = lp_shape,
           .impls = {{"ref", nullptr, float_or_double<Lp>}},
           .grad = lp_grad});
  t.add({.name = "LpPoolGrad",
         .domain = std::string(kOwnDomain),
         .shape = pool_grad_shape,
         .impls = {{"ref", nullptr, float_or_double<LpGrad>}},
         .no_grad = "a second derivative of LpPool is made from its standard operators",
         .lower = lp_grad_lower});
}

}  // namespace onnxtrain::ops
