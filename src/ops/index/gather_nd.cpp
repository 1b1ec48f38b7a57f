// GatherElements and GatherND; their gradients are the scatters with addition.
#include <cstring>

#include "op/grad_builder.hpp"
#include "ops/common/indices.hpp"
#include "ops/common/movement_lower.hpp"
#include "ops/common/strided_copy_kernel.hpp"
#include "ops/common/wide.hpp"

namespace onnxtrain::ops {

namespace {

void elements_shape(ShapeCtx& c) {
  require_index_type(c.dtype(1), "GatherElements");
  check_element_indices(c.shape(0), c.shape(1), normalize_axis(c.node().i("axis", 0), c.rank(0)),
                        "GatherElements");
  c.set(0, c.dtype(0), c.shape(1));
}

Kernel make_elements(Prepare& p) {
  int64_t axis = normalize_axis(p.node().i("axis", 0), int64_t(p.in(0).shape.size()));
  ElementLanes lanes(p.in(0).shape, p.in(1).shape, axis);
  DType index_type = p.in(1).dtype;
  return dispatch_size(p.in(0).dtype, [&]<class T>() -> Kernel {
    return [lanes, index_type](const Run& r) {
      IndexReader ix(r.inputs[1], index_type);
      check_indices(ix, lanes.total(), lanes.size, "GatherElements");
      const T* x = r.in<T>(0);
      T* y = r.out<T>(0);
      lanes.run(*r.pool, [&](int64_t i, int64_t base) {
        y[i] = x[base + ix.at(i, lanes.size) * lanes.stride];
      });
    };
  });
}

std::vector<ValueId> elements_grad(GradBuilder& b) {
  return {scatter_sum(b, "ScatterElements", b.zeros_like(b.x(0)), b.x(1), b.dy(),
                      {{"axis", b.node().i("axis", 0)}}),
          kNone};
}

int64_t batch_dims(const Node& n) { return n.version < 12 ? 0 : n.i("batch_dims", 0); }

void nd_shape(ShapeCtx& c) {
  require_index_type(c.dtype(1), "GatherND");
  const Shape &data = c.shape(0), &ix = c.shape(1);
  int64_t batch = batch_dims(c.node());
  int64_t depth = ix.empty() ? -1 : ix.back();
  bool fits = !ix.empty() && batch >= 0 && batch < int64_t(ix.size()) &&
              batch < int64_t(data.size()) && depth >= 0 && depth <= int64_t(data.size()) - batch;
  for (int64_t d = 0; d < batch && fits; ++d) fits = ix[size_t(d)] == data[size_t(d)];
  if (!fits)
    model_error("OT1134", cat("GatherND of ", to_string(data), " with indices of shape ",
                              to_string(ix), " and batch_dims ", batch));
  Shape out(ix.begin(), ix.end() - 1);
  out.insert(out.end(), data.begin() + batch + depth, data.end());
  c.set(0, c.dtype(0), out);
}

Kernel make_nd(Prepare& p) {
  const Shape &data = p.in(0).shape, &ix = p.in(1).shape;
  size_t batch = size_t(batch_dims(p.node()));
  NdIndices nd(data, batch, size_t(ix.back()));
  int64_t n = product(ix, 0, ix.size() - 1), per_batch = 1;
  for (size_t d = batch; d + 1 < ix.size(); ++d) per_batch *= ix[d];
  int64_t batch_stride = product(data, batch, data.size());
  DType index_type = p.in(1).dtype;
  return dispatch_size(p.in(0).dtype, [&]<class T>() -> Kernel {
    return [=](const Run& r) {
      IndexReader ix(r.inputs[1], index_type);
      nd.check(ix, n, "GatherND");
      const T* x = r.in<T>(0);
      T* y = r.out<T>(0);
      if (nd.block == 0) return;
      parallel_for(*r.pool, n, std::max<int64_t>(1, 32 * 1024 / nd.block),
                   [&](int64_t b, int64_t e) {
                     for (int64_t k = b; k < e; ++k) {
                       const T* from = x + (k / per_batch) * batch_stride + nd.offset(ix, k);
                       if constexpr (std::is_trivially_copyable_v<T>)
                         std::memcpy(y + k * nd.block, from, size_t(nd.block) * sizeof(T));
                       else
                         std::copy_n(from, nd.block, y + k * nd.block);
                     }
                   });
    };
  });
}

std::vector<ValueId> nd_grad(GradBuilder& b) {
  if (batch_dims(b.node()) == 0)
    return {scatter_sum(b, "ScatterND", b.zeros_like(b.x(0)), b.x(1), b.dy()), kNone};
  ValueId shape = b.shape_of(b.x(0));
  ValueId from = b.call("GatherND", {element_numbers(b, shape), b.x(1)},
                        {{"batch_dims", batch_dims(b.node())}});
  return {scatter_add_elements(b, b.dy(), from, shape), kNone};
}

}  // namespace

void register_gather_nd(OpTable& t) {
  t.add({.name = "GatherElements",
         .shape = elements_shape,
         .impls = {{"ref", nullptr, make_elements}},
         .grad = elements_grad});
  t.add({.name = "GatherND",
         .shape = nd_shape,
         .impls = {{"ref", nullptr, make_nd}},
         .grad = nd_grad});
}

}  // namespace onnxtrain::ops
