// Gather along an axis, and GatherGrad(dy, indices, shape), which adds dy to the rows it came from:
// always in the order of the indices, so results do not depend on the number of threads.
#include <cstring>

#include "op/grad_builder.hpp"
#include "ops/common/indices.hpp"
#include "ops/common/movement_lower.hpp"
#include "ops/common/strided_copy_kernel.hpp"
#include "ops/common/wide.hpp"

namespace onnxtrain::ops {

namespace {

// data seen as [outer, size, block], the result as [outer, n, block]
struct Layout {
  int64_t outer, size, block, n;
};

Layout layout_of(const Shape& data, int64_t axis, int64_t n) {
  size_t a = size_t(axis);
  return {product(data, 0, a), data[a], product(data, a + 1, data.size()), n};
}

int64_t axis_of(const Node& n, int64_t rank) {
  return normalize_axis(n.i("axis", 0), rank, "axis of Gather");
}

Shape gathered(const Shape& data, const Shape& indices, int64_t axis) {
  Shape out(data.begin(), data.begin() + axis);
  out.insert(out.end(), indices.begin(), indices.end());
  out.insert(out.end(), data.begin() + axis + 1, data.end());
  return out;
}

void shape(ShapeCtx& c) {
  require_index_type(c.dtype(1), "Gather");
  c.set(0, c.dtype(0), gathered(c.shape(0), c.shape(1), axis_of(c.node(), c.rank(0))));
}

Kernel make(Prepare& p) {
  Layout l =
      layout_of(p.in(0).shape, axis_of(p.node(), int64_t(p.in(0).shape.size())), p.in(1).size());
  DType index_type = p.in(1).dtype;
  return dispatch_size(p.in(0).dtype, [&]<class T>() -> Kernel {
    return [l, index_type](const Run& r) {
      IndexReader ix(r.inputs[1], index_type);
      if (l.outer * l.block > 0) check_indices(ix, l.n, l.size, "Gather");
      const T* x = r.in<T>(0);
      T* y = r.out<T>(0);
      int64_t grain = std::max<int64_t>(1, 32 * 1024 / std::max<int64_t>(1, l.block));
      if (l.block == 0) return;
      parallel_for(*r.pool, l.outer * l.n, grain, [&](int64_t b, int64_t e) {
        for (int64_t k = b; k < e; ++k) {
          const T* from = x + ((k / l.n) * l.size + ix.at(k % l.n, l.size)) * l.block;
          if constexpr (std::is_trivially_copyable_v<T>) {
            if (l.block == 1)
              y[k] = *from;
            else
              std::memcpy(y + k * l.block, from, size_t(l.block) * sizeof(T));
          } else {
            std::copy_n(from, l.block, y + k * l.block);
          }
        }
      });
    };
  });
}

std::vector<ValueId> grad(GradBuilder& b) {
  return {
      b.own("GatherGrad", {b.dy(), b.x(1), b.shape_of(b.x(0))}, {{"axis", b.node().i("axis", 0)}}),
      kNone};
}

void back_shape(ShapeCtx& c) {
  require_index_type(c.dtype(1), "GatherGrad");
  Shape s = c.ints(2);
  num_elements(s);
  if (gathered(s, c.shape(1), axis_of(c.node(), int64_t(s.size()))) != c.shape(0))
    model_error("OT1134",
                cat("GatherGrad of ", to_string(c.shape(0)), " does not fit ", to_string(s)));
  c.set(0, c.dtype(0), s);
}

constexpr int64_t kLongSum = 4096;  // terms in the sum of a row, on average

// Columns [c0, c1) of one outer slice: rows are added in the order of the indices.
template <class T, class C>
void add_rows(const T* dy, C* dx, const IndexReader& ix, const Layout& l, int64_t o, int64_t c0,
              int64_t c1) {
  for (int64_t i = 0; i < l.n; ++i) {
    const T* from = dy + (o * l.n + i) * l.block;
    C* to = dx + (o * l.size + ix.at(i, l.size)) * l.block;
    for (int64_t c = c0; c < c1; ++c) to[c] += C(from[c]);
  }
}

// Adds in type C, in a workspace where that is not the type of the result.
template <class T, class C>
Kernel adding_in(Prepare& p, const Layout& l) {
  constexpr bool same = std::is_same_v<T, C>;
  const int64_t total = p.out(0).size();
  const DType index_type = p.in(1).dtype;
  if (!same) p.workspace = size_t(total) * sizeof(C);
  // a task owns a block of columns of one outer slice
  int64_t width = 64, strips = (l.block + width - 1) / width;
  int64_t grain =
      std::max<int64_t>(1, 16 * 1024 / std::max<int64_t>(1, l.n * std::min(width, l.block)));
  return [=](const Run& r) {
    IndexReader ix(r.inputs[1], index_type);
    if (l.outer * l.block > 0) check_indices(ix, l.n, l.size, "GatherGrad");
    C* dx = same ? r.out<C>(0) : static_cast<C*>(r.workspace);
    parallel_for(*r.pool, total, 32 * 1024,
                 [&](int64_t b, int64_t e) { std::fill(dx + b, dx + e, C(0)); });
    parallel_for(*r.pool, l.outer * strips, grain, [&](int64_t b, int64_t e) {
      for (int64_t k = b; k < e; ++k) {
        int64_t c0 = (k % strips) * width;
        add_rows(r.in<T>(0), dx, ix, l, k / strips, c0, std::min(c0 + width, l.block));
      }
    });
    if constexpr (!same)
      for (int64_t i = 0; i < total; ++i) r.out<T>(0)[i] = T(dx[i]);
  };
}

Kernel make_back(Prepare& p) {
  const Shape& s = p.out(0).shape;
  const Layout l = layout_of(s, axis_of(p.node(), int64_t(s.size())), p.in(1).size());
  // thousands of terms in every sum: float32 would lose their last digits
  const bool long_sums = l.n / kLongSum >= std::max<int64_t>(1, l.size);
  return dispatch<float, double, Half, BFloat16>(p.in(0).dtype, "GatherGrad",
                                                 [&]<class T>() -> Kernel {
                                                   using C = compute_t<T>;
                                                   if constexpr (std::is_same_v<C, float>)
                                                     if (long_sums)
                                                       return adding_in<T, double>(p, l);
                                                   return adding_in<T, C>(p, l);
                                                 });
}

std::vector<ValueId> back_grad(GradBuilder& b) {
  return {b.call("Gather", {b.dy(), b.x(1)}, {{"axis", b.node().i("axis", 0)}}), kNone, kNone};
}

std::vector<ValueId> back_lower(GradBuilder& b) {
  ValueId dy = b.x(0), indices = b.x(1), shape = b.x(2);
  int64_t axis = b.node().i("axis", 0);
  if (axis == 0) {
    ValueId zeros = b.call("Expand", {b.scalar(0, dy), shape});
    ValueId wide = b.dtype(indices) == DType::kInt64
                       ? indices
                       : b.call("Cast", {indices}, {{"to", int64_t(7)}});
    return {scatter_sum(b, "ScatterND", zeros, b.unsqueeze(wide, {-1}), dy)};
  }
  ValueId from = b.call("Gather", {element_numbers(b, shape), indices}, {{"axis", axis}});
  return {scatter_add_elements(b, dy, from, shape)};
}

}  // namespace

void register_gather(OpTable& t) {
  add_moving_op(t, "Gather",
                {shape, make, grad, back_shape, make_back, back_grad, back_lower, {}, {2}});
}

}  // namespace onnxtrain::ops
