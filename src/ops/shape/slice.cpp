// Slice (attributes in opset 1, inputs since 10) and its gradient SliceGrad(dy, shape, starts,
// ends, axes, steps), which puts dy back where it was cut out.
#include <cstring>

#include "op/grad_builder.hpp"
#include "ops/common/movement_lower.hpp"
#include "ops/common/strided_copy_kernel.hpp"

namespace onnxtrain::ops {

namespace {

struct Cut {
  int64_t start = 0, step = 1, count = 0;
};
using Ints = std::vector<int64_t>;

// numpy's rules: negative positions count from the end, everything is clamped.
Cut cut_of(int64_t size, int64_t start, int64_t end, int64_t step) {
  if (step == 0) model_error("OT1133", "Slice has a step of 0");
  if (start < 0) start += size;
  if (end < 0) end += size;
  Cut c;
  c.step = step;
  __int128 span;
  if (step > 0) {
    start = std::clamp<int64_t>(start, 0, size);
    end = std::clamp<int64_t>(end, 0, size);
    span = (__int128(end) - start + step - 1) / step;
  } else {
    start = std::clamp<int64_t>(start, -1, size - 1);
    end = std::clamp<int64_t>(end, -1, size - 1);
    span = (__int128(end) - start + step + 1) / step;
  }
  c.start = start;
  c.count = span > 0 ? int64_t(span) : 0;
  return c;
}

std::vector<Cut> cuts_of(const Shape& s, const Ints& starts, const Ints& ends, const Ints* axes,
                         const Ints* steps) {
  std::vector<Cut> cuts(s.size());
  for (size_t d = 0; d < s.size(); ++d) cuts[d].count = s[d];
  std::vector<char> seen(s.size(), 0);
  size_t n = starts.size();
  if (ends.size() != n || (axes && axes->size() != n) || (steps && steps->size() != n) ||
      (!axes && n > s.size()))
    model_error("OT1133",
                cat("Slice of a tensor of rank ", s.size(), ": starts, ends, axes and steps have ",
                    n, ", ", ends.size(), ", ", axes ? axes->size() : n, " and ",
                    steps ? steps->size() : n, " entries"));
  for (size_t k = 0; k < n; ++k) {
    size_t d =
        size_t(normalize_axis(axes ? (*axes)[k] : int64_t(k), int64_t(s.size()), "axes of Slice"));
    if (seen[d]) model_error("OT1133", cat("axis ", d, " of Slice is named twice"));
    seen[d] = 1;
    cuts[d] = cut_of(s[d], starts[k], ends[k], steps ? (*steps)[k] : 1);
  }
  return cuts;
}

// C: ShapeCtx or a Prepare whose inputs are constant; `first`: where starts is among the inputs.
template <class HasFn, class IntsFn>
std::vector<Cut> cuts(const Node& n, const Shape& s, int first, HasFn has, IntsFn ints) {
  if (n.domain == kOnnxDomain && n.version < 10) {
    Ints starts = n.ints("starts"), ends = n.ints("ends"), axes = n.ints("axes");
    return cuts_of(s, starts, ends, n.has("axes") ? &axes : nullptr, nullptr);
  }
  Ints axes, steps;
  bool a = has(first + 2), t = has(first + 3);
  if (a) axes = ints(first + 2);
  if (t) steps = ints(first + 3);
  return cuts_of(s, ints(first), ints(first + 1), a ? &axes : nullptr, t ? &steps : nullptr);
}

std::vector<Cut> cuts(ShapeCtx& c, const Shape& s, int first) {
  return cuts(
      c.node(), s, first, [&](int i) { return c.has(i); }, [&](int i) { return c.ints(i); });
}
std::vector<Cut> cuts(const Prepare& p, const Shape& s, int first) {
  return cuts(
      p.node(), s, first, [&](int i) { return p.has(i); },
      [&](int i) { return p.constant(i)->to_ints(); });
}

Shape counts(const std::vector<Cut>& cuts) {
  Shape s;
  for (const Cut& c : cuts) s.push_back(c.count);
  return s;
}

// Strides of the cut part inside the whole, and the offset of its first element.
Shape cut_strides(const std::vector<Cut>& cuts, const Shape& whole, int64_t& offset) {
  Shape s = strides_of(whole);
  offset = 0;
  for (size_t d = 0; d < cuts.size(); ++d) {
    if (cuts[d].count > 0) offset += cuts[d].start * s[d];
    s[d] = cuts[d].count > 1 ? s[d] * cuts[d].step : 0;
  }
  return s;
}

void shape(ShapeCtx& c) { c.set(0, c.dtype(0), counts(cuts(c, c.shape(0), 1))); }

Kernel make(Prepare& p) {
  int64_t offset;
  Shape src = cut_strides(cuts(p, p.in(0).shape, 1), p.in(0).shape, offset);
  StridedCopy copy(p.in(0).dtype, p.out(0).shape, src, strides_of(p.out(0).shape), offset);
  return [copy](const Run& r) { copy.run(*r.pool, r.inputs[0], r.outputs[0]); };
}

std::vector<ValueId> grad(GradBuilder& b) {
  std::vector<ValueId> g(size_t(b.inputs()), kNone), in = {b.dy(), b.shape_of(b.x(0))};
  if (b.node().version < 10) {
    for (const char* key : {"starts", "ends", "axes"})
      if (b.node().has(key)) in.push_back(b.constant_ints(b.node().ints(key)));
  } else {
    for (int i = 1; i < b.inputs(); ++i) in.push_back(b.x(i));
  }
  g[0] = b.own("SliceGrad", in);
  return g;
}

void back_shape(ShapeCtx& c) {
  Shape s = c.ints(1);
  num_elements(s);
  if (counts(cuts(c, s, 2)) != c.shape(0))
    model_error("OT1133",
                cat("SliceGrad of ", to_string(c.shape(0)), " does not fit ", to_string(s)));
  c.set(0, c.dtype(0), s);
}

Kernel make_back(Prepare& p) {
  int64_t offset;
  const Shape& whole = p.out(0).shape;
  Shape dst = cut_strides(cuts(p, whole, 2), whole, offset);
  StridedCopy copy(p.in(0).dtype, p.in(0).shape, strides_of(p.in(0).shape), dst, 0, offset);
  int64_t bytes = p.out(0).size() * int64_t(dtype_size(p.out(0).dtype));
  return [copy, bytes](const Run& r) {
    char* y = r.out<char>(0);
    parallel_for(*r.pool, bytes, 128 * 1024,
                 [&](int64_t b, int64_t e) { std::memset(y + b, 0, size_t(e - b)); });
    copy.run(*r.pool, r.inputs[0], y);
  };
}

// Linear in dy: the gradient of the gradient is the same cut again.
std::vector<ValueId> back_grad(GradBuilder& b) {
  std::vector<ValueId> g(size_t(b.inputs()), kNone), in = {b.dy()};
  for (int i = 2; i < b.inputs(); ++i) in.push_back(b.x(i));
  g[0] = b.call("Slice", in);
  return g;
}

std::vector<ValueId> back_lower(GradBuilder& b) {
  std::vector<ValueId> in = {element_numbers(b, b.x(1))};
  for (int i = 2; i < b.inputs(); ++i) in.push_back(b.x(i));
  return {scatter_add_elements(b, b.x(0), b.call("Slice", in), b.x(1))};
}

}  // namespace

void register_slice(OpTable& t) {
  add_moving_op(t, "Slice",
                {shape,
                 make,
                 grad,
                 back_shape,
                 make_back,
                 back_grad,
                 back_lower,
                 {1, 2, 3, 4},
                 {1, 2, 3, 4, 5}});
}

}  // namespace onnxtrain::ops
