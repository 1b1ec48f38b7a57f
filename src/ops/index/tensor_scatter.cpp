// TensorScatter: writes an update into a cache along the sequence axis, at a position per sample.
#include <algorithm>

#include "op/grad_builder.hpp"
#include "ops/common/strided_copy_kernel.hpp"

namespace onnxtrain::ops {

namespace {

int64_t axis_of(const Node& n, int64_t rank) {
  return normalize_axis(n.i("axis", -2), rank, "axis of TensorScatter");
}

bool circular(const Node& n) {
  std::string mode = n.s("mode", "linear");
  if (mode != "linear" && mode != "circular")
    model_error("OT1130", cat("mode of TensorScatter is '", mode, "'"));
  return mode == "circular";
}

void shape(ShapeCtx& c) {
  circular(c.node());
  const Shape &cache = c.shape(0), &update = c.shape(1);
  int64_t axis = axis_of(c.node(), c.rank(0));
  bool fits = cache.size() == update.size() && axis > 0 && c.dtype(0) == c.dtype(1);
  for (size_t d = 0; d < cache.size() && fits; ++d)
    fits = int64_t(d) == axis ? update[d] <= cache[d] : update[d] == cache[d];
  if (fits && c.has(2)) fits = c.shape(2) == Shape{cache[0]} && c.dtype(2) == DType::kInt64;
  if (!fits)
    model_error("OT1134", cat("TensorScatter of ", to_string(update), " into ", to_string(cache),
                              " along axis ", axis));
  c.set(0, c.dtype(0), cache);
}

Kernel make(Prepare& p) {
  const Shape& cache = p.in(0).shape;
  size_t axis = size_t(axis_of(p.node(), int64_t(cache.size())));
  int64_t batch = cache[0], prefix = product(cache, 1, axis), size = cache[axis];
  int64_t block = product(cache, axis + 1, cache.size()), steps = p.in(1).shape[axis],
          n = p.out(0).size();
  bool ring = circular(p.node()), has_at = p.has(2);
  return dispatch_size(p.in(0).dtype, [&]<class T>() -> Kernel {
    return [=](const Run& r) {
      const int64_t* at = has_at ? r.in<int64_t>(2) : nullptr;
      for (int64_t b = 0; at && b < batch; ++b)
        if (at[b] < 0 || (!ring && at[b] > size - steps))
          data_error("OT2110", cat("TensorScatter: position ", at[b], " of sample ", b,
                                   " is out of range for ", steps, " of ", size, " steps"));
      const T *x = r.in<T>(0), *u = r.in<T>(1);
      T* y = r.out<T>(0);
      if (x != y) std::copy_n(x, n, y);
      for (int64_t k = 0; k < batch * prefix; ++k)
        for (int64_t s = 0; s < steps; ++s) {
          int64_t to = at ? at[k / prefix] % std::max<int64_t>(1, size) + s : s;
          if (to >= size) to -= size;
          std::copy_n(u + (k * steps + s) * block, block, y + (k * size + to) * block);
        }
    };
  });
}

// The cache keeps its gradient where it was not overwritten; the update's is read from there.
std::vector<ValueId> grad(GradBuilder& b) {
  const Node& n = b.node();
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  if (b.wants(0)) {
    std::vector<ValueId> in = {b.dy(), b.zeros_like(b.x(1))};
    if (b.has(2)) in.push_back(b.x(2));
    Node again = n;
    again.inputs = in;
    again.name.clear();
    again.outputs.clear();
    g[0] = b.graph().add_node(again, 1)[0];
    b.graph().nodes.back().name = b.graph().value_name(g[0]);
    infer_node(b.graph(), b.graph().nodes.back(), b.table());
  }
  if (b.wants(1)) {
    int64_t rank = b.need_rank(b.x(1)), axis = axis_of(n, rank);
    ValueId update = b.shape_of(b.x(1));
    auto size_of = [&](ValueId shape) { return b.call("Gather", {shape, b.constant_int(axis)}); };
    ValueId at = b.call("Range", {b.constant_int(0), size_of(update), b.constant_int(1)});
    Shape view(size_t(rank), 1), start(size_t(rank), 1);
    view[size_t(axis)] = -1;
    start[0] = -1;
    at = b.call("Reshape", {at, b.constant_ints(view)});
    if (b.has(2)) at = b.add(at, b.call("Reshape", {b.x(2), b.constant_ints(start)}));
    at = b.call("Mod", {at, size_of(b.shape_of(b.x(0)))});
    g[1] = b.call("GatherElements", {b.dy(), b.call("Expand", {at, update})}, {{"axis", axis}});
  }
  return g;
}

}  // namespace

void register_tensor_scatter(OpTable& t) {
  t.add({.name = "TensorScatter",
         .shape = shape,
         .impls = {{"ref", nullptr, make}},
         .grad = grad,
         .in_place = {{0, 0}}});
}

}  // namespace onnxtrain::ops
