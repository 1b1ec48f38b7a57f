// Min, Max, Sum and Mean of any number of tensors, with broadcasting.
#include "ops/common/elementwise_kernel.hpp"
#include "ops/common/elementwise_program.hpp"

namespace onnxtrain::ops {

namespace {

// NaN wins, as in numpy
struct MaxF {
  template <class C>
  C operator()(C a, C b) const {
    return a > b || a != a ? a : b;
  }
};
struct MinF {
  template <class C>
  C operator()(C a, C b) const {
    return a < b || a != a ? a : b;
  }
};
struct SumF {
  template <class C>
  C operator()(C a, C b) const {
    return C(a + b);
  }
};

void shape(ShapeCtx& c) {
  if (c.inputs() == 0) model_error("OT1107", cat(c.node().op, " has no inputs"));
  require_same_types(c);
  Shape s = c.shape(0);
  for (int i = 1; i < c.inputs(); ++i) s = broadcast(s, c.shape(i));
  c.set(0, c.dtype(0), s);
}

// One pass per input after the first: y = f(y or x0, xi).
template <class T, class F>
Kernel passes(Prepare& p, bool mean) {
  using C = compute_t<T>;
  std::vector<BroadcastLoop> loops;
  const Shape& out = p.out(0).shape;
  for (int i = 1; i < std::max(2, p.inputs()); ++i)
    loops.emplace_back(
        std::vector<Shape>{i == 1 ? p.in(0).shape : out, i < p.inputs() ? p.in(i).shape : out},
        out);
  bool single = p.inputs() == 1;
  int64_t n = p.out(0).size(), count = p.inputs();
  return [=](const Run& r) {
    T* y = r.out<T>(0);
    if (single) {
      if (y != r.in<T>(0)) std::copy_n(r.in<T>(0), n, y);
      return;
    }
    for (size_t k = 0; k < loops.size(); ++k) {
      const BroadcastLoop& loop = loops[k];
      const T *a = k == 0 ? r.in<T>(0) : y, *b = r.in<T>(int(k) + 1);
      C scale = mean && k + 1 == loops.size() ? C(count) : C(1);
      parallel_for(*r.pool, loop.rows, loop.grain_rows(), [&](int64_t begin, int64_t end) {
        loop.run(begin, end, [&](int64_t o, const int64_t* at) {
          const T *pa = a + at[0], *pb = b + at[1];
          int64_t sa = loop.step[0], sb = loop.step[1];
          if (scale == C(1)) {
            for (int64_t i = 0; i < loop.inner; ++i)
              y[o + i] = T(F{}(C(pa[i * sa]), C(pb[i * sb])));
          } else {
            for (int64_t i = 0; i < loop.inner; ++i)
              y[o + i] = T(C(F{}(C(pa[i * sa]), C(pb[i * sb])) / scale));
          }
        });
      });
    }
  };
}

template <class F>
Kernel make(Prepare& p) {
  bool mean = p.node().op == "Mean";
  if constexpr (std::is_same_v<F, SumF>) {
    return dispatch<float, double, Half, BFloat16>(
        p.in(0).dtype, p.node().op, [&]<class T>() { return passes<T, F>(p, mean); });
  } else {
    return dispatch<float, double, Half, BFloat16, int64_t, int32_t, uint8_t, int8_t, int16_t,
                    uint16_t, uint32_t, uint64_t>(
        p.in(0).dtype, p.node().op, [&]<class T>() { return passes<T, F>(p, false); });
  }
}

using Grads = std::vector<ValueId>;

Grads sum_grad(GradBuilder& b) { return Grads(size_t(b.inputs()), b.dy()); }
Grads mean_grad(GradBuilder& b) {
  ValueId g = b.inputs() == 1 ? b.dy() : b.div(b.dy(), b.scalar(b.inputs(), b.x(0)));
  return Grads(size_t(b.inputs()), g);
}

// Inputs that are equal share the gradient; with two inputs exactly as PyTorch's maximum.
Grads extreme_grad(GradBuilder& b, const char* loses) {
  if (b.inputs() == 1) return {b.dy()};
  ValueId dy = b.dy(), zero = b.scalar(0, b.x(0));
  if (b.inputs() == 2) {
    ValueId half = b.mul(dy, b.scalar(0.5, b.x(0)));
    ValueId g = b.call("Where", {b.call("Equal", {b.x(0), b.x(1)}), half, dy});
    Grads out = {kNone, kNone};
    for (int i = 0; i < 2; ++i)
      if (b.wants(i))
        out[size_t(i)] = b.call("Where", {b.call(loses, {b.x(i), b.x(1 - i)}), zero, g});
    return out;
  }
  Grads wins, counted;
  for (int i = 0; i < b.inputs(); ++i) {
    wins.push_back(b.call("Equal", {b.x(i), b.y()}));
    counted.push_back(b.call("Cast", {wins.back()}, {{"to", int64_t(b.dtype(b.x(0)))}}));
  }
  ValueId share = b.div(dy, b.call("Sum", counted));
  Grads out;
  for (ValueId w : wins) out.push_back(b.call("Where", {w, share, zero}));
  return out;
}
Grads max_grad(GradBuilder& b) { return extreme_grad(b, "Less"); }
Grads min_grad(GradBuilder& b) { return extreme_grad(b, "Greater"); }

using simd::MicroOp;

template <MicroOp micro>
Kernel make_chain(Prepare& p) {
  std::vector<MicroStep> steps;
  for (int k = 1; k < p.inputs(); ++k)
    steps.push_back({micro, {k == 1 ? 0 : p.inputs() + k - 2, k, 0}});
  return micro_kernel(p, steps);
}
std::string chain_refuses(const Prepare& p) {
  if (p.inputs() < 2 || size_t(p.inputs()) > kMaxMicroInputs)
    return cat("it has ", p.inputs(), " inputs");
  return micro_refuses(p);
}

template <class F, MicroOp micro>
void add(OpTable& t, const char* name, GradFn grad) {
  t.add({.name = name,
         .shape = shape,
         .impls = {{"simd", chain_refuses, make_chain<micro>}, {"ref", nullptr, make<F>}},
         .grad = grad,
         .broadcasts = true,
         .in_place = {{0, 0}, {1, 0}},
         .micro_op = int(micro)});
}

}  // namespace

void register_variadic(OpTable& t) {
  add<MaxF, MicroOp::kMax>(t, "Max", max_grad);
  add<MinF, MicroOp::kMin>(t, "Min", min_grad);
  add<SumF, MicroOp::kAdd>(t, "Sum", sum_grad);
  t.add({.name = "Mean",
         .shape = shape,
         .impls = {{"ref", nullptr, make<SumF>}},
         .grad = mean_grad,
         .broadcasts = true,
         .in_place = {{0, 0}, {1, 0}}});
}

}  // namespace onnxtrain::ops
