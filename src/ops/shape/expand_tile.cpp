// Expand broadcasts a tensor to a shape; Tile repeats it along each dimension.
#include "op/grad_builder.hpp"
#include "op/needs_shape.hpp"
#include "ops/common/strided_copy_kernel.hpp"

namespace onnxtrain::ops {

namespace {

void expand_shape(ShapeCtx& c) {
  Shape to = c.ints(1);
  num_elements(to);
  c.set(0, c.dtype(0), broadcast(c.shape(0), to));
}

Kernel make_expand(Prepare& p) {
  const Shape& out = p.out(0).shape;
  StridedCopy copy(p.in(0).dtype, out, broadcast_strides(p.in(0).shape, out), strides_of(out));
  return [copy](const Run& r) { copy.run(*r.pool, r.inputs[0], r.outputs[0]); };
}

std::vector<ValueId> expand_grad(GradBuilder& b) {
  return {b.sum_to_shape_of(b.dy(), b.x(0)), kNone};
}

// opset 1: a count and an axis, both inputs of the tensor's own type
std::vector<int64_t> repeats_of(ShapeCtx& c) {
  if (c.version() >= 6) return c.ints(1);
  std::vector<double> tiles = c.value(1).to_doubles(), axis = c.value(2).to_doubles();
  if (tiles.size() != 1 || axis.size() != 1)
    model_error("OT1130", "tiles and axis of Tile must have one element");
  std::vector<int64_t> r(size_t(c.rank(0)), 1);
  if (!(std::abs(axis[0]) < 1e9) || !(std::abs(tiles[0]) < 1e18))
    model_error("OT1130", "tiles or axis of Tile is out of range");
  r[size_t(normalize_axis(int64_t(axis[0]), c.rank(0), "axis of Tile"))] = int64_t(tiles[0]);
  return r;
}

void tile_shape(ShapeCtx& c) {
  Shape s = c.shape(0);
  std::vector<int64_t> r = repeats_of(c);
  if (r.size() != s.size())
    model_error("OT1130",
                cat("repeats of Tile has ", r.size(), " entries, the input has rank ", s.size()));
  for (size_t d = 0; d < s.size(); ++d)
    if (r[d] < 0 || __builtin_mul_overflow(s[d], r[d], &s[d]))
      model_error("OT1130", cat("Tile cannot repeat dimension ", d, " ", r[d], " times"));
  c.set(0, c.dtype(0), s);
}

Kernel make_tile(Prepare& p) {
  const Shape &in = p.in(0).shape, &out = p.out(0).shape;
  Shape s = strides_of(in), dims, src;
  for (size_t d = 0; d < in.size(); ++d) {
    dims.push_back(in[d] ? out[d] / in[d] : 0);
    src.push_back(0);
    dims.push_back(in[d]);
    src.push_back(s[d]);
  }
  StridedCopy copy(p.in(0).dtype, dims, src, strides_of(dims));
  return [copy](const Run& r) { copy.run(*r.pool, r.inputs[0], r.outputs[0]); };
}

// dy seen as [r0, d0, r1, d1, ...] and summed over the repeats.
std::vector<ValueId> tile_grad(GradBuilder& b) {
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  ValueId x = b.x(0);
  if (b.shape_known(x) && b.shape_known(b.dy())) {
    Shape in = b.shape(x), out = b.shape(b.dy()), dims;
    std::vector<int64_t> axes;
    for (size_t d = 0; d < in.size(); ++d) {
      axes.push_back(int64_t(dims.size()));
      dims.insert(dims.end(), {in[d] ? out[d] / in[d] : 1, in[d]});
    }
    if (in.empty()) return g[0] = b.dy(), g;
    ValueId wide = b.call("Reshape", {b.dy(), b.constant_ints(dims)}, {{"allowzero", int64_t(1)}});
    g[0] = b.reduce_sum(wide, axes, false);
    return g;
  }
  if (b.node().version < 6)
    needs_shape("OT1205", "the gradient of Tile-1 needs the shape of its input",
                "convert the model to opset 6 or later");
  ValueId flat = b.constant_ints({-1});
  ValueId pairs = b.call("Concat", {b.unsqueeze(b.x(1), {1}), b.unsqueeze(b.shape_of(x), {1})},
                         {{"axis", int64_t(1)}});
  ValueId dims = b.call("Reshape", {pairs, flat});
  ValueId wide = b.call("Reshape", {b.dy(), dims}, {{"allowzero", int64_t(1)}});
  ValueId count = b.call("Size", {dims});
  ValueId axes = b.call("Range", {b.constant_int(0), count, b.constant_int(2)});
  g[0] = b.call("ReduceSum", {wide, axes},
                {{"keepdims", int64_t(0)}, {"noop_with_empty_axes", int64_t(1)}});
  return g;
}

}  // namespace

void register_expand_tile(OpTable& t) {
  t.add({.name = "Expand",
         .shape = expand_shape,
         .shape_values = {1},
         .impls = {{"ref", nullptr, make_expand}},
         .grad = expand_grad});
  t.add({.name = "Tile",
         .shape = tile_shape,
         .shape_values = {1, 2},
         .impls = {{"ref", nullptr, make_tile}},
         .grad = tile_grad});
}

}  // namespace onnxtrain::ops
