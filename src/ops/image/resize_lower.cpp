// Each axis is a multiplication by its matrix.
#include "ops/image/resize_lower.hpp"

#include <algorithm>

#include "op/needs_shape.hpp"
#include "ops/common/lower_shape.hpp"
#include "ops/common/widened_kernel.hpp"
#include "ops/image/resize_operands.hpp"

namespace onnxtrain::ops {

namespace {

struct Constants {
  GradBuilder& b;
  const Node& node() const { return b.node(); }
  bool has(int i) const { return b.has(i); }
};

ValueId numbers(GradBuilder& b, const std::vector<double>& values, Shape shape, DType type) {
  return dispatch<float, double, Half, BFloat16>(type, "Resize", [&]<class T>() {
    std::vector<T> e;
    for (double d : values) e.push_back(T(compute_t<T>(d)));
    return b.tensor(Tensor::vector<T>(e).reshaped(std::move(shape)));
  });
}

// v times the matrix, along one axis.
ValueId along(GradBuilder& b, ValueId v, int64_t axis, int64_t rank, ValueId matrix) {
  std::vector<int64_t> perm;
  for (int64_t d = 0; d < rank; ++d) perm.push_back(d);
  std::swap(perm[size_t(axis)], perm.back());
  const bool moved = axis + 1 != rank;
  if (moved) v = b.transpose(v, perm);
  v = b.call("MatMul", {v, matrix});
  return moved ? b.transpose(v, perm) : v;
}

std::vector<double> transposed(const std::vector<double>& m, int64_t rows, int64_t columns) {
  std::vector<double> t(m.size());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t j = 0; j < columns; ++j) t[size_t(j * rows + i)] = m[size_t(i * columns + j)];
  return t;
}

// What a Resize says about its sizes. An open size that stays as it is counts as 1.
struct Known {
  Shape in;
  std::vector<double> scales;  // one per axis that is named, or none
  std::vector<int64_t> sizes;  // the same
};

bool same_open(const Dim& a, const Dim& b) {
  return !a.known() && !a.symbol.empty() && a.symbol == b.symbol;
}

bool known_sizes(GradBuilder& b, const ResizeOperands& o, Known& k) {
  const Node& n = b.node();
  const TypeInfo &x = b.type(b.x(0)), &y = b.type(b.y());
  if (!x.is_tensor() || !x.shape || x.shape->empty()) return false;
  const int64_t rank = int64_t(x.shape->size());
  std::vector<int64_t> axes = n.ints("axes");
  if (!n.has("axes"))
    for (int64_t d = 0; d < rank; ++d) axes.push_back(d);
  auto constant = [&](int i) { return i >= 0 && b.has(i) ? b.constant(b.x(i)) : nullptr; };
  const Tensor *scales = constant(o.scales), *sizes = constant(o.sizes);
  Tensor from_attribute;
  if (o.scales < 0) {
    from_attribute = resize_attribute_scales(n, rank);
    scales = &from_attribute;
  }
  if (scales && scales->size() == int64_t(axes.size())) k.scales = scales->to_doubles();
  if (sizes && sizes->size() == int64_t(axes.size())) k.sizes = sizes->to_ints();
  for (const Dim& d : *x.shape) k.in.push_back(d.known() ? d.value : -1);
  const bool typed = y.is_tensor() && y.shape && y.shape->size() == x.shape->size();
  const bool by_size = o.sizes >= 0 && b.has(o.sizes) && k.scales.empty();
  if (by_size && k.sizes.empty()) k.sizes.assign(axes.size(), -1);
  if (k.scales.empty() && k.sizes.empty()) return false;
  for (size_t a = 0; a < axes.size(); ++a) {
    const size_t d = size_t(axes[a] < 0 ? axes[a] + rank : axes[a]);
    if (d >= x.shape->size()) return false;
    if (by_size && k.sizes[a] < 0 && typed) {
      const Dim& to = (*y.shape)[d];
      if (to.known())
        k.sizes[a] = to.value;
      else if (same_open((*x.shape)[d], to))
        k.in[d] = k.sizes[a] = 1;
    }
    if (by_size && k.sizes[a] < 0) return false;
    if (!by_size && k.in[d] < 0 && k.scales[a] == 1) k.in[d] = 1;
    if (k.in[d] < 0) return false;
  }
  for (int64_t& d : k.in)
    if (d < 0) d = 1;  // not an axis of the node
  return true;
}

// Output elements that lie outside the cropped input get a number instead.
ValueId extrapolated(GradBuilder& b, ValueId v, const ResizeSpec& s) {
  std::vector<double> inside{1};
  Shape shape;
  for (size_t d = 0; d < s.out.size(); ++d) {
    const auto it = std::find_if(s.axes.begin(), s.axes.end(),
                                 [&](const ResizeAxis& a) { return a.axis == int64_t(d); });
    const int64_t size = it == s.axes.end() || !it->any_outside ? 1 : it->out;
    std::vector<double> more;
    for (double have : inside)
      for (int64_t i = 0; i < size; ++i)
        more.push_back(size > 1 && it->outside[size_t(i)] ? 0 : have);
    if (size == 1 && it != s.axes.end() && it->any_outside)
      for (double& m : more) m = it->outside[0] ? 0 : m;
    inside = std::move(more);
    shape.push_back(size);
  }
  for (double& m : inside) m = (1 - m) * s.extrapolation;
  return b.add(v, numbers(b, inside, shape, b.dtype(v)));
}

}  // namespace

std::vector<ValueId> resize_lower(GradBuilder& b) {
  const Node& n = b.node();
  const ResizeOperands o = resize_operands(n);
  Known k;
  if (!known_sizes(b, o, k)) return {};
  const Tensor* roi = crops_input(n) && b.has(o.roi) ? b.constant(b.x(o.roi)) : nullptr;
  if (crops_input(n) && !roi) return {};
  const Tensor sizes = Tensor::vector<int64_t>(k.sizes);
  std::vector<float> floats(k.scales.begin(), k.scales.end());
  const Tensor scales = Tensor::vector<float>(floats);
  const ResizeSpec s =
      resize_spec(n, k.in, is_legacy_resize(n), roi, k.scales.empty() ? nullptr : &scales,
                  k.scales.empty() ? &sizes : nullptr, true);
  ValueId v = b.x(0);
  const DType type = b.dtype(v);
  const int64_t rank = int64_t(k.in.size());
  bool outside = false;
  for (const ResizeAxis& a : s.axes) {
    outside |= a.any_outside;
    if (!dtype_is_float(type)) {
      if (!s.nearest || a.any_outside) return {};
      v = b.call("Gather", {v, b.constant_ints({a.index.begin(), a.index.end()})},
                 {{"axis", a.axis}});
      continue;
    }
    v = along(b, v, a.axis, rank,
              numbers(b, transposed(axis_matrix(a), a.out, a.in), {a.in, a.out}, type));
  }
  return {outside && s.extrapolation != 0 ? extrapolated(b, v, s) : v};
}

std::vector<ValueId> resize_grad_lower(GradBuilder& b) {
  Constants c{b};
  Tensor sizes;
  auto get = [&](int i) -> const Tensor* {
    const Tensor* t = b.constant(b.x(i));
    if (!t && i == resize_operands(b.node()).sizes &&
        !b.node().has("axes")) {  // they are the shape of dy
      sizes = Tensor::vector<int64_t>(lowering_shape_of_one(b, kNone, b.x(0), "its result"));
      return &sizes;
    }
    if (!t)
      needs_shape(
          "OT1206",
          cat("the gradient of a Resize in standard operators needs constant scales and sizes"));
    return t;
  };
  Shape x = lowering_shape_of_one(b, b.x(kResizedShape), b.y(), "its input");
  ResizeSpec s = resize_spec_of(c, x, get, true);
  ValueId v = b.x(0);
  const DType type = b.dtype(v);
  for (size_t k = s.axes.size(); k-- > 0;) {
    const ResizeAxis& a = s.axes[k];
    v = along(b, v, a.axis, int64_t(x.size()), numbers(b, axis_matrix(a), {a.out, a.in}, type));
  }
  return {v};
}

}  // namespace onnxtrain::ops
