// Geometry of row normalisations.
#include "ops/norm/row_norm_shape.hpp"

namespace onnxtrain::ops {

namespace {

// A parameter that broadcasts to x, whose rows start at `axis`.
ParameterMap broadcast_map(const Shape& s, const Shape& x, size_t axis) {
  ParameterMap m;
  int64_t n = product(x, axis, x.size());
  Shape strides = broadcast_strides(s, x);
  Shape tail(x.begin() + long(axis), x.end()), full = strides_of(tail);
  bool plain = true, leads = false;
  for (size_t d = 0; d < tail.size(); ++d) plain &= tail[d] == 1 || strides[axis + d] == full[d];
  for (size_t d = 0; d < axis; ++d) leads |= x[d] != 1 && strides[d] != 0;
  if (plain) {
    m.length = n;
    m.step = 1;
  } else {
    m.segment.assign(size_t(n), 0);
    for (int64_t k = 0; k < n; ++k) {
      int64_t rest = k;
      for (size_t d = tail.size(); d-- > 0;) {
        m.segment[size_t(k)] += rest % tail[d] * strides[axis + d];
        rest /= tail[d];
      }
    }
  }
  if (leads) {
    int64_t rows = product(x, 0, axis);
    m.table.assign(size_t(rows), 0);
    for (int64_t r = 0; r < rows; ++r) {
      int64_t rest = r;
      for (size_t d = axis; d-- > 0;) {
        m.table[size_t(r)] += rest % x[d] * strides[d];
        rest /= x[d];
      }
    }
  }
  return m;
}

size_t layer_axis(const Node& n, const Shape& x) {
  return size_t(normalize_axis(n.i("axis", -1), int64_t(x.size()), "axis of a normalisation"));
}

RowNorm layer(std::string_view kind, const Node& n, const Shape& x, const Shape& scale,
              const Shape* bias) {
  RowNorm r;
  size_t axis = layer_axis(n, x);
  r.rows = product(x, 0, axis);
  r.n = product(x, axis, x.size());
  r.centred = kind == "LayerNormalization";
  r.scale = broadcast_map(scale, x, axis);
  if (bias) r.bias = broadcast_map(*bias, x, axis);
  return r;
}

RowNorm group(std::string_view kind, const Node& n, int version, const Shape& x, const Shape& scale,
              const Shape* bias) {
  if (x.size() < 2)
    model_error("OT1133", cat(kind, " of ", to_string(x), ", which has no channels"));
  bool instance = kind == "InstanceNormalization";
  int64_t groups = instance ? x[1] : n.i("num_groups", 0);
  if (groups <= 0 && !(instance && groups == 0))
    model_error("OT1134", cat("num_groups of ", kind, " is ", groups));
  if (groups != 0 && x[1] % groups != 0)
    model_error("OT1134", cat("num_groups of ", kind, " is ", groups,
                              ", which does not divide the ", x[1], " channels"));
  RowNorm r;
  int64_t s = product(x, 2, x.size()), per = groups ? x[1] / groups : 0;
  r.rows = x[0] * groups;
  r.n = per * s;
  bool per_group = !instance && version < 21;  // GroupNormalization-18 has parameters per group
  int64_t want = per_group ? groups : x[1];
  if (scale != Shape{want} || (bias && *bias != Shape{want}))
    model_error("OT1133", cat(kind, " of ", to_string(x), ": scale has shape ", to_string(scale),
                              ", not [", want, "]"));
  r.scale.mod = std::max<int64_t>(1, groups);
  r.scale.mul = per_group ? 1 : per;
  r.scale.length = per_group ? r.n : s;
  if (!per_group) {
    r.scale.segment.clear();
    for (int64_t c = 0; c < per; ++c) r.scale.segment.push_back(c);
  }
  r.bias = r.scale;
  return r;
}

}  // namespace

RowNorm row_norm(std::string_view kind, const Node& n, int version, const Shape& x,
                 const Shape& scale, const Shape* bias) {
  bool rows = kind == "LayerNormalization" || kind == "RMSNormalization";
  RowNorm r = rows ? layer(kind, n, x, scale, bias) : group(kind, n, version, x, scale, bias);
  r.epsilon = n.f("epsilon", 1e-5f);
  r.scale_size = num_elements(scale);
  r.bias_size = bias ? num_elements(*bias) : 0;
  return r;
}

Shape row_statistics_shape(const Node& n, const Shape& x) {
  Shape s = x;
  for (size_t d = layer_axis(n, x); d < s.size(); ++d) s[d] = 1;
  return s;
}

}  // namespace onnxtrain::ops
