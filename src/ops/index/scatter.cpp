// Scatter, ScatterElements and ScatterND with all reductions, and their gradients.
#include <cstring>

#include "op/grad_builder.hpp"
#include "ops/common/indices.hpp"
#include "ops/common/strided_copy_kernel.hpp"
#include "ops/common/wide.hpp"

namespace onnxtrain::ops {

namespace {

enum class Reduce { kNone, kAdd, kMul, kMax, kMin };

Reduce reduction_of(const Node& n) {
  std::string s = n.s("reduction", "none");
  if (s == "none") return Reduce::kNone;
  if (s == "add") return Reduce::kAdd;
  if (s == "mul") return Reduce::kMul;
  if (s == "max") return Reduce::kMax;
  if (s == "min") return Reduce::kMin;
  model_error("OT1130", cat("reduction of ", n.op, " is '", s, "'"));
}

template <Reduce R, class T>
void combine(T& to, const T& from) {
  if constexpr (R == Reduce::kNone) {
    to = from;
  } else {
    using C = compute_t<T>;
    C a = C(to), b = C(from);
    if constexpr (R == Reduce::kAdd) {
      if constexpr (std::is_integral_v<C>)
        to = T(C(std::make_unsigned_t<C>(a) + std::make_unsigned_t<C>(b)));
      else
        to = T(C(a + b));
    } else if constexpr (R == Reduce::kMul) {
      if constexpr (std::is_integral_v<C>)
        to = T(C(uint64_t(a) * uint64_t(b)));
      else
        to = T(C(a * b));
    } else if constexpr (R == Reduce::kMax) {
      to = T(a > b || a != a ? a : b);
    } else {
      to = T(a < b || a != a ? a : b);
    }
  }
}

// f.template operator()<T, R>() for the element type and reduction; plain moves go by size.
template <class F>
Kernel by_reduction(DType t, Reduce r, const std::string& op, F&& f) {
  if (r == Reduce::kNone)
    return dispatch_size(t, [&]<class T>() { return f.template operator()<T, Reduce::kNone>(); });
  return dispatch<float, double, Half, BFloat16, int64_t, int32_t, uint8_t, int8_t, int16_t,
                  uint16_t, uint32_t, uint64_t>(t, op, [&]<class T>() -> Kernel {
    switch (r) {
      case Reduce::kAdd:
        return f.template operator()<T, Reduce::kAdd>();
      case Reduce::kMul:
        return f.template operator()<T, Reduce::kMul>();
      case Reduce::kMax:
        return f.template operator()<T, Reduce::kMax>();
      default:
        return f.template operator()<T, Reduce::kMin>();
    }
  });
}

// The output starts as a copy of the data, unless it took over its memory.
template <class T>
void copy_data(const Run& r, int64_t n) {
  const T* x = r.in<T>(0);
  T* y = r.out<T>(0);
  if (x == y) return;
  parallel_for(*r.pool, n, 64 * 1024,
               [&](int64_t b, int64_t e) { std::copy(x + b, x + e, y + b); });
}

int64_t axis_of(const Node& n, int64_t rank) {
  return normalize_axis(n.i("axis", 0), rank, "axis of ScatterElements");
}

void elements_shape(ShapeCtx& c) {
  require_index_type(c.dtype(1), "ScatterElements");
  reduction_of(c.node());
  check_element_indices(c.shape(0), c.shape(1), axis_of(c.node(), c.rank(0)), "ScatterElements");
  if (c.shape(1) != c.shape(2) || c.dtype(0) != c.dtype(2))
    model_error("OT1134", cat("ScatterElements: indices ", to_string(c.shape(1)), " and updates ",
                              to_string(c.shape(2)), " differ"));
  c.set(0, c.dtype(0), c.shape(0));
}

Kernel make_elements(Prepare& p) {
  ElementLanes lanes(p.in(0).shape, p.in(1).shape,
                     axis_of(p.node(), int64_t(p.in(0).shape.size())));
  DType index_type = p.in(1).dtype;
  int64_t n = p.out(0).size();
  return by_reduction(p.in(0).dtype, reduction_of(p.node()), p.node().op,
                      [&]<class T, Reduce R>() -> Kernel {
                        return [lanes, index_type, n](const Run& r) {
                          IndexReader ix(r.inputs[1], index_type);
                          check_indices(ix, lanes.total(), lanes.size, "ScatterElements");
                          copy_data<T>(r, n);
                          const T* u = r.in<T>(2);
                          T* y = r.out<T>(0);
                          lanes.run(*r.pool, [&](int64_t i, int64_t base) {
                            combine<R>(y[base + ix.at(i, lanes.size) * lanes.stride], u[i]);
                          });
                        };
                      });
}

void nd_shape(ShapeCtx& c) {
  require_index_type(c.dtype(1), "ScatterND");
  reduction_of(c.node());
  const Shape &data = c.shape(0), &ix = c.shape(1);
  if (ix.empty() || ix.back() < 0 || ix.back() > c.rank(0))
    model_error("OT1134",
                cat("ScatterND into ", to_string(data), " with indices of shape ", to_string(ix)));
  Shape want(ix.begin(), ix.end() - 1);
  want.insert(want.end(), data.begin() + ix.back(), data.end());
  if (c.shape(2) != want || c.dtype(2) != c.dtype(0))
    model_error("OT1134", cat("ScatterND: updates of shape ", to_string(c.shape(2)), " instead of ",
                              to_string(want)));
  c.set(0, c.dtype(0), data);
}

Kernel make_nd(Prepare& p) {
  const Shape& ix_shape = p.in(1).shape;
  NdIndices nd(p.in(0).shape, 0, size_t(ix_shape.back()));
  int64_t tuples = product(ix_shape, 0, ix_shape.size() - 1), n = p.out(0).size();
  DType index_type = p.in(1).dtype;
  // a task owns a strip of columns of the blocks and goes through all tuples in order
  int64_t width = std::max<int64_t>(64, 16 * 1024 / std::max<int64_t>(1, tuples));
  return by_reduction(p.in(0).dtype, reduction_of(p.node()), p.node().op,
                      [&]<class T, Reduce R>() -> Kernel {
                        return [=](const Run& r) {
                          IndexReader ix(r.inputs[1], index_type);
                          nd.check(ix, tuples, "ScatterND");
                          copy_data<T>(r, n);
                          const T* u = r.in<T>(2);
                          T* y = r.out<T>(0);
                          parallel_for(*r.pool, nd.block, width, [&](int64_t b, int64_t e) {
                            for (int64_t k = 0; k < tuples; ++k) {
                              T* to = y + nd.offset(ix, k);
                              const T* from = u + k * nd.block;
                              for (int64_t c = b; c < e; ++c) combine<R>(to[c], from[c]);
                            }
                          });
                        };
                      });
}

// ---------------------------------------------------------------- gradients, the same for both
// kinds
struct Pair {
  GradBuilder& b;
  bool nd;
  ValueId scatter(ValueId data, ValueId updates, const char* how) {
    GradBuilder::Attrs a{{"reduction", std::string(how)}};
    if (!nd) a["axis"] = b.node().i("axis", 0);
    return b.call(nd ? "ScatterND" : "ScatterElements", {data, b.x(1), updates}, a);
  }
  ValueId gather(ValueId v) {
    if (nd) return b.call("GatherND", {v, b.x(1)});
    return b.call("GatherElements", {v, b.x(1)}, {{"axis", b.node().i("axis", 0)}});
  }
  ValueId number(ValueId condition) {
    return b.call("Cast", {condition}, {{"to", int64_t(b.dtype(b.x(0)))}});
  }
};

// y = data * product of updates; a factor of zero is left out of the product and counted instead.
std::vector<ValueId> mul_grad(Pair p) {
  GradBuilder& b = p.b;
  ValueId u = b.x(2), zero = b.scalar(0, u), one = b.scalar(1, u);
  std::vector<ValueId> g = {kNone, kNone, kNone};
  if (b.wants(0)) g[0] = p.scatter(b.dy(), u, "mul");
  if (b.wants(2)) {
    ValueId is_zero = b.call("Equal", {u, zero});
    ValueId factors = b.call("Where", {is_zero, one, u});
    ValueId without = p.scatter(b.x(0), factors, "mul");
    ValueId zeros = p.gather(p.scatter(b.zeros_like(b.x(0)), p.number(is_zero), "add"));
    ValueId alone = b.call("Equal", {b.sub(zeros, p.number(is_zero)), zero});
    ValueId slope = b.div(p.gather(b.mul(b.dy(), without)), factors);
    g[2] = b.call("Where", {alone, slope, zero});
  }
  return g;
}

// Elements equal to the extreme share the gradient.
std::vector<ValueId> extreme_grad(Pair p) {
  GradBuilder& b = p.b;
  ValueId from_data = p.number(b.call("Equal", {b.x(0), b.y()}));
  ValueId from_updates = p.number(b.call("Equal", {b.x(2), p.gather(b.y())}));
  const DType type = b.dtype(b.x(0));
  auto wide = [&](ValueId v) { return widened(Expr{b, v, type}).v; };
  // 16-bit types cannot count the ties
  const ValueId ties = p.scatter(wide(from_data), wide(from_updates), "add");
  ValueId share = narrowed(b, b.div(wide(b.dy()), ties), type);
  return {b.mul(share, from_data), kNone, b.mul(p.gather(share), from_updates)};
}

std::vector<ValueId> grad(GradBuilder& b) {
  Pair p{b, b.node().op == "ScatterND"};
  switch (reduction_of(b.node())) {
    case Reduce::kNone:
      return {b.wants(0) ? p.scatter(b.dy(), b.zeros_like(b.x(2)), "none") : kNone, kNone,
              b.wants(2) ? p.gather(b.dy()) : kNone};
    case Reduce::kAdd:
      return {b.dy(), kNone, b.wants(2) ? p.gather(b.dy()) : kNone};
    case Reduce::kMul:
      return mul_grad(p);
    default:
      return extreme_grad(p);
  }
}

}  // namespace

void register_scatter(OpTable& t) {
  for (const char* name : {"Scatter", "ScatterElements"})
    t.add({.name = name,
           .shape = elements_shape,
           .impls = {{"ref", nullptr, make_elements}},
           .grad = grad,
           .in_place = {{0, 0}}});
  t.add({.name = "ScatterND",
         .shape = nd_shape,
         .impls = {{"ref", nullptr, make_nd}},
         .grad = grad,
         .in_place = {{0, 0}}});
}

}  // namespace onnxtrain::ops
