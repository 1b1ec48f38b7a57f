// Concat joins tensors along an axis; Split cuts one: each is the other's gradient.
#include "op/grad_builder.hpp"
#include "ops/common/forward_outputs.hpp"
#include "ops/common/strided_copy_kernel.hpp"

namespace onnxtrain::ops {

namespace {

int64_t concat_axis(const Node& n, int64_t rank) {
  // opset 1 has a default, later ones require the attribute
  if (n.version >= 4 && !n.has("axis")) model_error("OT1130", "Concat has no axis");
  return normalize_axis(n.i("axis", 1), rank, "axis of Concat");
}

void concat_shape(ShapeCtx& c) {
  if (c.inputs() == 0) model_error("OT1107", "Concat has no inputs");
  int64_t axis = concat_axis(c.node(), c.rank(0));
  Shape out = c.shape(0);
  for (int i = 1; i < c.inputs(); ++i) {
    const Shape& s = c.shape(i);
    bool fits = s.size() == out.size() && c.dtype(i) == c.dtype(0);
    for (size_t d = 0; d < s.size() && fits; ++d) fits = int64_t(d) == axis || s[d] == out[d];
    if (!fits)
      model_error("OT1132",
                  cat("Concat along axis ", axis, " of ", dtype_name(c.dtype(0)),
                      to_string(c.shape(0)), " and ", dtype_name(c.dtype(i)), to_string(s)));
    if (__builtin_add_overflow(out[size_t(axis)], s[size_t(axis)], &out[size_t(axis)]))
      model_error("OT1103", "Concat: the size along the axis overflows");
  }
  c.set(0, c.dtype(0), out);
}

// One copy between a whole tensor and the piece of it that starts at `at` along the axis.
StridedCopy piece(DType t, const Shape& whole, const Shape& part, int64_t axis, int64_t at,
                  bool into) {
  Shape big = strides_of(whole), small = strides_of(part);
  int64_t offset = at * big[size_t(axis)];
  return into ? StridedCopy(t, part, small, big, 0, offset)
              : StridedCopy(t, part, big, small, offset, 0);
}

Kernel make_concat(Prepare& p) {
  int64_t axis = concat_axis(p.node(), int64_t(p.in(0).shape.size())), at = 0;
  std::vector<StridedCopy> copies;
  for (int i = 0; i < p.inputs(); ++i) {
    copies.push_back(piece(p.in(0).dtype, p.out(0).shape, p.in(i).shape, axis, at, true));
    at += p.in(i).shape[size_t(axis)];
  }
  return [copies](const Run& r) {
    for (size_t i = 0; i < copies.size(); ++i) copies[i].run(*r.pool, r.inputs[i], r.outputs[0]);
  };
}

// Sizes along an axis as an int64 vector: numbers when known.
ValueId sizes_along(GradBuilder& b, const std::vector<ValueId>& values, int64_t axis) {
  std::vector<int64_t> known;
  std::vector<ValueId> parts;
  for (ValueId v : values) {
    if (b.shape_known(v)) {
      Shape s = b.shape(v);
      known.push_back(s[size_t(normalize_axis(axis, int64_t(s.size())))]);
      parts.push_back(b.constant_ints({known.back()}));
    } else {
      parts.push_back(b.call("Gather", {b.call("Shape", {v}), b.constant_ints({axis})}));
    }
  }
  return known.size() == values.size() ? b.constant_ints(known)
                                       : b.call("Concat", parts, {{"axis", int64_t(0)}});
}

std::vector<ValueId> concat_grad(GradBuilder& b) {
  int64_t axis = b.node().i("axis", 1);
  if (b.inputs() == 1) return {b.dy()};
  ValueId sizes = sizes_along(b, b.node().inputs, axis);
  return b.call_n("Split", {b.dy(), sizes}, b.inputs(), {{"axis", axis}});
}

// opset 1, 13 and later may give sizes as an input, 2 to 12 (and 1) as an attribute, 18 a count
std::vector<int64_t> split_sizes(ShapeCtx& c, int64_t axis) {
  int64_t size = c.shape(0)[size_t(axis)], n = c.outputs();
  std::vector<int64_t> sizes;
  if (c.has(1)) {
    sizes = c.ints(1);
  } else if (c.version() < 13 && c.node().has("split")) {
    sizes = c.node().ints("split");
  } else {
    int64_t count = c.node().i("num_outputs", n);
    if (count != n)
      model_error("OT1130", cat("Split has num_outputs ", count, " and ", n, " outputs"));
    if (c.version() < 18 && size % n != 0)
      model_error("OT1130", cat("Split of size ", size, " into ", n, " equal parts"));
    int64_t each = (size + n - 1) / n;
    for (int64_t k = 0; k < n; ++k)
      sizes.push_back(std::max<int64_t>(0, std::min(each, size - k * each)));
  }
  int64_t sum = 0;
  for (int64_t s : sizes)
    if (s < 0 || __builtin_add_overflow(sum, s, &sum))
      model_error("OT1130", cat("Split has a size of ", s));
  if (sum != size || int64_t(sizes.size()) != n)
    model_error("OT1130",
                cat("Split of size ", size, " into ", n, " outputs of ", to_string(sizes)));
  return sizes;
}

void split_shape(ShapeCtx& c) {
  int64_t axis = normalize_axis(c.node().i("axis", 0), c.rank(0), "axis of Split");
  std::vector<int64_t> sizes = split_sizes(c, axis);
  for (int k = 0; k < c.outputs(); ++k) {
    Shape s = c.shape(0);
    s[size_t(axis)] = sizes[size_t(k)];
    c.set(k, c.dtype(0), s);
  }
}

Kernel make_split(Prepare& p) {
  const Shape& whole = p.in(0).shape;
  int64_t axis = normalize_axis(p.node().i("axis", 0), int64_t(whole.size())), at = 0;
  struct Part {
    int output;
    StridedCopy copy;
  };
  std::vector<Part> parts;
  // an unwanted output has no type: its size is what the others leave, or comes from the sizes
  std::vector<int64_t> sizes = p.constant(1) ? p.constant(1)->to_ints() : p.node().ints("split");
  int64_t n = p.outputs(), each = (whole[size_t(axis)] + n - 1) / n;
  for (int k = 0; k < p.outputs(); ++k) {
    if (p.wants(k)) {
      parts.push_back({k, piece(p.in(0).dtype, whole, p.out(k).shape, axis, at, false)});
      at += p.out(k).shape[size_t(axis)];
    } else {
      at += size_t(k) < sizes.size() ? sizes[size_t(k)] : each;
    }
  }
  return [parts](const Run& r) {
    for (const Part& part : parts) part.copy.run(*r.pool, r.inputs[0], r.outputs[part.output]);
  };
}

std::vector<ValueId> split_grad(GradBuilder& b) {
  std::vector<ValueId> dys;
  for (size_t k = 0; k < b.node().outputs.size(); ++k) {
    if (b.node().outputs[k] == kNone) {
      TypeInfo type = TypeInfo::tensor(b.dtype(b.x(0)));
      dys.push_back(b.zeros_like(ensure_output(b, int(k), type, "part")));
    } else {
      dys.push_back(b.dy(int(k)));
    }
  }
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  g[0] = dys.size() == 1 ? dys[0] : b.call("Concat", dys, {{"axis", b.node().i("axis", 0)}});
  return g;
}

}  // namespace

void register_concat_split(OpTable& t) {
  t.add({.name = "Concat",
         .shape = concat_shape,
         .impls = {{"ref", nullptr, make_concat}},
         .grad = concat_grad});
  t.add({.name = "Split",
         .shape = split_shape,
         .shape_values = {1},
         .impls = {{"ref", nullptr, make_split}},
         .grad = split_grad});
}

}  // namespace onnxtrain::ops
