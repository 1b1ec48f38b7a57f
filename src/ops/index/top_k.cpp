// TopK: the k largest or smallest elements along an axis with their indices, ArgMax and ArgMin.
#include <algorithm>

#include "op/grad_builder.hpp"
#include "ops/common/forward_outputs.hpp"

namespace onnxtrain::ops {

namespace {

// A tensor seen as [outer, size, inner] around an axis.
struct Lanes {
  Lanes(const Shape& s, int64_t axis)
      : outer(product(s, 0, size_t(axis))),
        size(s[size_t(axis)]),
        inner(product(s, size_t(axis) + 1, s.size())) {}
  int64_t outer, size, inner;
  int64_t count() const { return outer * inner; }
  int64_t first(int64_t lane) const { return (lane / inner) * size * inner + lane % inner; }
  int64_t grain() const { return std::max<int64_t>(1, 8 * 1024 / std::max<int64_t>(1, size)); }
};

template <class F>
decltype(auto) any_number(DType t, std::string_view op, F&& f) {
  return dispatch<float, double, Half, BFloat16, int64_t, int32_t, uint8_t, int8_t, int16_t,
                  uint16_t, uint32_t, uint64_t>(t, op, std::forward<F>(f));
}

int64_t top_axis(const Node& n, int64_t rank) {
  return normalize_axis(n.i("axis", -1), rank, "axis of TopK");
}

void top_shape(ShapeCtx& c) {
  int64_t axis = top_axis(c.node(), c.rank(0)), k;
  if (c.version() < 10) {
    k = c.node().i("k", -1);
  } else {
    std::vector<int64_t> v = c.ints(1);
    if (v.size() != 1)
      model_error("OT1130", cat("K of TopK has ", v.size(), " elements instead of 1"));
    k = v[0];
  }
  Shape s = c.shape(0);
  if (k < 0 || k > s[size_t(axis)])
    model_error("OT1130",
                cat("TopK asks for ", k, " elements of a dimension of size ", s[size_t(axis)]));
  s[size_t(axis)] = k;
  c.set(0, c.dtype(0), s);
  c.set(1, DType::kInt64, s);
}

// Of equal elements the one with the lower index comes first; NaN is larger than any number.
template <class C>
bool larger(C a, C b) {
  if constexpr (std::is_floating_point_v<C>)
    if (a != a || b != b) return a != a && b == b;
  return a > b;
}

Kernel make_top(Prepare& p) {
  const Shape& s = p.in(0).shape;
  int64_t axis = top_axis(p.node(), int64_t(s.size()));
  Lanes l(s, axis);
  const TensorType& out = p.wants(0) ? p.out(0) : p.out(1);
  int64_t k = out.shape[size_t(axis)];
  bool largest = p.node().i("largest", 1) != 0, want_indices = p.wants(1);
  int64_t tasks = (l.count() + l.grain() - 1) / l.grain();
  p.workspace = size_t(tasks) * size_t(l.size) * sizeof(int64_t);  // a list of candidates per task
  return any_number(p.in(0).dtype, "TopK", [&]<class T>() -> Kernel {
    return [=](const Run& r) {
      using C = compute_t<T>;
      const T* x = r.in<T>(0);
      T* values = r.out<T>(0);
      int64_t* indices = want_indices ? r.out<int64_t>(1) : nullptr;
      parallel_for(*r.pool, l.count(), l.grain(), [&](int64_t b, int64_t e) {
        int64_t* order = static_cast<int64_t*>(r.workspace) + (b / l.grain()) * l.size;
        for (int64_t lane = b; lane < e; ++lane) {
          const T* from = x + l.first(lane);
          for (int64_t i = 0; i < l.size; ++i) order[i] = i;
          std::partial_sort(order, order + k, order + l.size, [&](int64_t i, int64_t j) {
            C a = C(from[i * l.inner]), c = C(from[j * l.inner]);
            if (largest ? larger(a, c) : larger(c, a)) return true;
            if (largest ? larger(c, a) : larger(a, c)) return false;
            return i < j;
          });
          int64_t to = (lane / l.inner) * k * l.inner + lane % l.inner;
          for (int64_t i = 0; i < k; ++i) {
            if (values) values[to + i * l.inner] = from[order[i] * l.inner];
            if (indices) indices[to + i * l.inner] = order[i];
          }
        }
      });
    };
  });
}

std::vector<ValueId> top_grad(GradBuilder& b) {
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  TypeInfo type = b.type(b.y());
  type.elem = DType::kInt64;
  ValueId indices = ensure_output(b, 1, type, "indices");
  g[0] = b.call("ScatterElements", {b.zeros_like(b.x(0)), indices, b.dy()},
                {{"axis", b.node().i("axis", -1)}, {"reduction", std::string("add")}});
  return g;
}

void arg_shape(ShapeCtx& c) {
  Shape s = c.shape(0);
  int64_t axis = normalize_axis(c.node().i("axis", 0), c.rank(0), "axis of ArgMax or ArgMin");
  if (s[size_t(axis)] == 0 && num_elements(s) == 0) {
    Shape rest = s;
    rest[size_t(axis)] = 1;
    if (num_elements(rest) > 0)
      model_error("OT1130", cat(c.node().op, " over an empty dimension ", axis));
  }
  if (c.node().i("keepdims", 1))
    s[size_t(axis)] = 1;
  else
    s.erase(s.begin() + axis);
  c.set(0, DType::kInt64, s);
}

Kernel make_arg(Prepare& p) {
  const Shape& s = p.in(0).shape;
  Lanes l(s, normalize_axis(p.node().i("axis", 0), int64_t(s.size())));
  bool last = p.node().i("select_last_index", 0) != 0, max = p.node().op == "ArgMax";
  return any_number(p.in(0).dtype, p.node().op, [&]<class T>() -> Kernel {
    return [=](const Run& r) {
      using C = compute_t<T>;
      parallel_for(*r.pool, l.count(), l.grain(), [&](int64_t b, int64_t e) {
        for (int64_t lane = b; lane < e; ++lane) {
          const T* from = r.in<T>(0) + l.first(lane);
          int64_t best = 0;
          C top = C(from[0]);
          for (int64_t i = 1; i < l.size; ++i) {
            C v = C(from[i * l.inner]);
            // the first NaN wins in both directions, as in numpy
            bool better = max ? v > top : v < top;
            if (top == top && (better || v != v || (last && v == top))) {
              best = i;
              top = v;
            }
          }
          r.out<int64_t>(0)[lane] = best;
        }
      });
    };
  });
}

}  // namespace

void register_top_k(OpTable& t) {
  t.add({.name = "TopK",
         .shape = top_shape,
         .shape_values = {1},
         .impls = {{"ref", nullptr, make_top}},
         .grad = top_grad,
         .settings_from = 1});
  for (const char* name : {"ArgMax", "ArgMin"})
    t.add({.name = name,
           .shape = arg_shape,
           .impls = {{"ref", nullptr, make_arg}},
           .no_grad = "its result is an index"});
}

}  // namespace onnxtrain::ops
