// Operators that only change how a tensor is seen: Identity, Reshape, Flatten, Squeeze, Unsqueeze;
// and the ones that read nothing but a shape: Shape, Size.
#include <algorithm>
#include <cstring>

#include "op/grad_builder.hpp"

namespace onnxtrain::ops {

namespace {

// Used when the planner cannot alias (dynamic execution, folding).
Kernel make_copy(Prepare& p) {
  int64_t n = p.out(0).size();
  if (p.in(0).dtype == DType::kString)
    return [n](const Run& r) { std::copy_n(r.in<std::string>(0), n, r.out<std::string>(0)); };
  size_t bytes = size_t(n) * dtype_size(p.in(0).dtype);
  return [bytes](const Run& r) {
    if (bytes) std::memcpy(r.outputs[0], r.inputs[0], bytes);
  };
}

void identity_shape(ShapeCtx& c) { c.set(0, c.dtype(0), c.shape(0)); }
// Sequences, optionals, maps, and tensors whose shape is known at run time only.
void identity_values(ValueCtx& c) { c.out(0, c.in(0) ? *c.in(0) : Value()); }

void reshape_shape(ShapeCtx& c) {
  // opset 1 has the shape as an attribute
  Shape target = c.version() < 5 ? c.node().ints("shape") : c.ints(1);
  bool allow_zero = c.node().i("allowzero", 0) != 0;
  const Shape& in = c.shape(0);
  int64_t known = 1, unknown = -1;
  for (size_t d = 0; d < target.size(); ++d) {
    if (target[d] == 0 && !allow_zero) {
      if (d >= in.size())
        model_error("OT1131", cat("Reshape to ", to_string(target), " copies dimension ", d,
                                  " of an input of shape ", to_string(in)));
      target[d] = in[d];
    }
    if (target[d] == -1) {
      if (unknown >= 0) model_error("OT1131", cat("Reshape to ", to_string(target), " has two -1"));
      unknown = int64_t(d);
    } else if (target[d] < -1) {
      model_error("OT1131", cat("Reshape to ", to_string(target), " has a negative dimension"));
    }
  }
  Shape rest = target;
  if (unknown >= 0) rest.erase(rest.begin() + unknown);
  known = num_elements(rest);
  int64_t n = num_elements(in);
  if (unknown >= 0) {
    if (known == 0 ? n != 0 : n % known != 0)
      model_error("OT1131", cat("cannot reshape ", to_string(in), " to ", to_string(target)));
    target[size_t(unknown)] = known == 0 ? 0 : n / known;
  } else if (known != n) {
    model_error("OT1131", cat("cannot reshape ", to_string(in), " to ", to_string(target)));
  }
  c.set(0, c.dtype(0), target);
}

void flatten_shape(ShapeCtx& c) {
  int64_t rank = c.rank(0), axis = c.node().i("axis", 1);
  if (axis < 0) axis += rank;
  if (axis < 0 || axis > rank)
    model_error("OT1130", cat("axis of Flatten is out of range for rank ", rank));
  const Shape& s = c.shape(0);
  c.set(0, c.dtype(0), {product(s, 0, size_t(axis)), product(s, size_t(axis), s.size())});
}

// axes moved from an attribute to an input in opset 13
std::vector<int64_t> axes_of(ShapeCtx& c, bool& given) {
  given = true;
  if (c.version() < 13) {
    given = c.node().has("axes");
    return c.node().ints("axes");
  }
  if (!c.has(1)) {
    given = false;
    return {};
  }
  return c.ints(1);
}

void squeeze_shape(ShapeCtx& c) {
  bool given;
  std::vector<int64_t> axes = axes_of(c, given);
  const Shape& s = c.shape(0);
  std::vector<char> drop(s.size(), 0);
  for (int64_t a : axes) {
    a = normalize_axis(a, c.rank(0), "axes of Squeeze");
    if (s[size_t(a)] != 1)
      model_error("OT1130",
                  cat("Squeeze of dimension ", a, " of ", to_string(s), ", which is not 1"));
    drop[size_t(a)] = 1;
  }
  Shape out;
  for (size_t d = 0; d < s.size(); ++d)
    if (given ? !drop[d] : s[d] != 1) out.push_back(s[d]);
  c.set(0, c.dtype(0), out);
}

void unsqueeze_shape(ShapeCtx& c) {
  bool given;
  std::vector<int64_t> axes = axes_of(c, given);
  const Shape& s = c.shape(0);
  int64_t rank = c.rank(0) + int64_t(axes.size());
  std::vector<char> fresh(size_t(rank), 0);
  for (int64_t a : axes) {
    a = normalize_axis(a, rank, "axes of Unsqueeze");
    if (fresh[size_t(a)]) model_error("OT1130", cat("axis ", a, " of Unsqueeze is named twice"));
    fresh[size_t(a)] = 1;
  }
  Shape out;
  size_t next = 0;
  for (int64_t d = 0; d < rank; ++d) out.push_back(fresh[size_t(d)] ? 1 : s[next++]);
  c.set(0, c.dtype(0), out);
}

// Shape-15 has start and end.
std::pair<int64_t, int64_t> shape_range(const Node& n, int64_t rank) {
  auto clamp = [&](int64_t v) { return std::clamp<int64_t>(v < 0 ? v + rank : v, 0, rank); };
  int64_t start = clamp(n.i("start", 0)), end = clamp(n.i("end", rank));
  return {start, std::max(start, end)};
}

void shape_shape(ShapeCtx& c) {
  auto [start, end] = shape_range(c.node(), c.rank(0));
  c.set(0, DType::kInt64, {end - start});
}

Kernel make_shape(Prepare& p) {
  auto [start, end] = shape_range(p.node(), int64_t(p.in(0).shape.size()));
  Shape s(p.in(0).shape.begin() + start, p.in(0).shape.begin() + end);
  return [s](const Run& r) { std::copy(s.begin(), s.end(), r.out<int64_t>(0)); };
}

void size_shape(ShapeCtx& c) { c.set(0, DType::kInt64, {}); }
Kernel make_size(Prepare& p) {
  int64_t n = p.in(0).size();
  return [n](const Run& r) { *r.out<int64_t>(0) = n; };
}

std::vector<ValueId> reshape_grad(GradBuilder& b) {
  std::vector<ValueId> g(size_t(b.inputs()), kNone);
  g[0] = b.reshape_like(b.dy(), b.x(0));
  return g;
}

void add_view(OpTable& t, const char* name, ShapeFn shape, GradFn grad) {
  t.add({.name = name,
         .shape = shape,
         .shape_values = {1},
         .impls = {{"copy", nullptr, make_copy}},
         .grad = grad,
         .view_of = 0});
}

constexpr const char* kInteger = "its result is a shape, there is no gradient";

}  // namespace

void register_views(OpTable& t) {
  add_view(t, "Reshape", reshape_shape, reshape_grad);
  add_view(t, "Flatten", flatten_shape, reshape_grad);
  add_view(t, "Squeeze", squeeze_shape, reshape_grad);
  add_view(t, "Unsqueeze", unsqueeze_shape, reshape_grad);
  t.add({.name = "Identity",
         .shape = identity_shape,
         .impls = {{"copy", nullptr, make_copy}},
         .run_values = identity_values,
         .grad = grad_passes_through,
         .view_of = 0});
  t.add({.name = "Shape",
         .shape = shape_shape,
         .impls = {{"ref", nullptr, make_shape}},
         .no_grad = kInteger,
         .types_only = true});
  t.add({.name = "Size",
         .shape = size_shape,
         .impls = {{"ref", nullptr, make_size}},
         .no_grad = kInteger,
         .types_only = true});
}

}  // namespace onnxtrain::ops
