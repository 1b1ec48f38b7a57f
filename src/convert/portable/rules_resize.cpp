// Resize: known sizes by a matrix per axis (the operator's own lowering); where a size is open, the
// same matrix from the sizes that come.
#include <algorithm>
#include <cstdint>

#include "convert/portable/rules.hpp"

namespace onnxtrain::portable {

namespace {

using Values = std::vector<ValueId>;

// Every pixel twice in both directions.
bool doubles(Site& s) {
  const Tensor* scales = s.has(2) ? s.constant(s.x(2)) : nullptr;
  return scales && scales->to_doubles() == std::vector<double>{1, 1, 2, 2} &&
         s.node().s("mode", "nearest") == "nearest" && s.node().s("nearest_mode", "") == "floor" &&
         s.node().s("coordinate_transformation_mode", "") == "asymmetric";
}

// One axis whose size is known only when the step runs. All numbers are float32; products of sizes
// stay whole numbers below 2^24 for images of up to 2900 pixels a side, so positions are exact.
class OpenAxis {
 public:
  OpenAxis(Site& s, int64_t axis, ValueId shape) : s_(s), axis_(axis) {
    in_ = s.call("Gather", {shape, s.constant_int(axis)}, {{"axis", int64_t(0)}});
    size_ = f(in_);
  }
  ValueId size() const { return size_; }
  // Pixels per pixel: the output is p/q times as large.
  void set_scale(ValueId p, ValueId q, ValueId out) { p_ = p, q_ = q, out_ = out; }
  // Where output i takes its value from, at_ / parts_; false for a rule that has no form here.
  // `size`: of the output, -1 when it is open.
  bool place(int64_t size) {
    const std::string how = s_.node().s("coordinate_transformation_mode", "half_pixel");
    const ValueId i = range(s_.constant_int(0), out_), two = n(2);
    parts_ = s_.mul(p_, two);
    if (how == "half_pixel" || (how == "pytorch_half_pixel" && size > 1)) {
      at_ = s_.sub(s_.mul(s_.add(s_.mul(i, two), n(1)), q_), p_);  // (i + 1/2) q/p - 1/2
    } else if (how == "asymmetric") {
      at_ = s_.mul(s_.mul(i, two), q_);
    } else if (how == "align_corners" && size > 1) {
      at_ = s_.mul(i, s_.sub(size_, n(1)));
      parts_ = n(double(size - 1));
    } else {
      return false;
    }
    return true;
  }
  ValueId nearest(ValueId x) {
    const std::string how = s_.node().s("nearest_mode", "round_prefer_floor");
    const ValueId half = s_.mul(parts_, n(0.5));
    ValueId at = kNone;
    if (how == "floor") at = s_.call("Floor", {s_.div(at_, parts_)});
    if (how == "ceil") at = s_.call("Ceil", {s_.div(at_, parts_)});
    if (how == "round_prefer_floor") at = s_.call("Ceil", {s_.div(s_.sub(at_, half), parts_)});
    if (how == "round_prefer_ceil") at = s_.call("Floor", {s_.div(s_.add(at_, half), parts_)});
    if (at == kNone) return kNone;
    at = s_.call("Max", {s_.call("Min", {at, s_.sub(size_, n(1))}), n(0)});
    return s_.call("Gather", {x, s_.cast(at, DType::kInt64)}, {{"axis", axis_}});
  }
  // The matrix [in, out] of a linear or cubic filter.
  ValueId matrix() {
    const Node& node = s_.node();
    const bool cubic = node.s("mode", "nearest") == "cubic";
    const bool smooth = node.i("antialias", 0) != 0, inside = node.i("exclude_outside", 0) != 0;
    const ValueId one = n(1), zero = n(0);
    // a smaller image: the filter is as much wider
    const ValueId shrink = smooth ? s_.call("Min", {s_.div(p_, q_), one}) : kNone;
    ValueId margin = kNone, first = s_.constant_int(0), last = in_;
    if (!inside) {  // pixels beyond the edge are the edge's
      const ValueId reach = n(cubic ? 2 : 1);
      margin = s_.add(s_.call("Ceil", {smooth ? s_.div(reach, shrink) : reach}), one);
      const ValueId whole = s_.cast(margin, DType::kInt64);
      first = s_.neg(whole), last = s_.add(in_, whole);
    }
    const ValueId j = s_.unsqueeze(range(first, last), {1});
    const ValueId away = s_.div(s_.sub(s_.mul(j, parts_), s_.unsqueeze(at_, {0})), parts_);
    ValueId far = s_.call("Abs", {away});
    if (smooth) far = s_.mul(far, shrink);
    ValueId w = cubic ? cubic_weight(far) : s_.call("Max", {s_.sub(one, far), zero});
    if (smooth || inside) w = s_.div(w, s_.reduce_sum(w, {0}, true));
    if (inside) return w;
    const ValueId edge = s_.call("Max", {s_.call("Min", {j, s_.sub(size_, one)}), zero});
    const ValueId pixel = s_.unsqueeze(range(s_.constant_int(0), in_), {1});
    const ValueId fold = s_.cast(s_.call("Equal", {pixel, s_.transpose(edge, {1, 0})}), kFloat);
    return s_.call("MatMul", {fold, w});
  }

 private:
  static constexpr DType kFloat = DType::kFloat;
  ValueId f(ValueId v) { return s_.cast(v, kFloat); }
  ValueId n(double v) { return s_.scalar(v, kFloat); }
  ValueId range(ValueId from, ValueId to) {
    return f(s_.call("Range", {from, to, s_.constant_int(1)}));
  }
  ValueId cubic_weight(ValueId x) {
    const double a = double(s_.node().f("cubic_coeff_a", -0.75F));
    const ValueId xx = s_.mul(x, x);
    const ValueId near = s_.add(s_.mul(s_.sub(s_.mul(x, n(a + 2)), n(a + 3)), xx), n(1));
    const ValueId wide =
        s_.sub(s_.mul(s_.add(s_.mul(s_.sub(s_.mul(x, n(a)), n(5 * a)), x), n(8 * a)), x), n(4 * a));
    const ValueId tail = s_.call("Where", {s_.call("Less", {x, n(2)}), wide, n(0)});
    return s_.call("Where", {s_.call("Less", {x, n(1)}), near, tail});
  }

  Site& s_;
  int64_t axis_;
  ValueId in_, size_, p_ = kNone, q_ = kNone, out_ = kNone, at_ = kNone, parts_ = kNone;
};

std::vector<int64_t> axes_of(Site& s, int64_t rank) {
  std::vector<int64_t> axes = s.node().ints("axes");
  if (!s.node().has("axes"))
    for (int64_t d = 0; d < rank; ++d) axes.push_back(d);
  for (int64_t& a : axes)
    if (a < 0) a += rank;
  return axes;
}

// What is asked for, per axis: a size, or a scale. `same`: the axis stays as it is.
struct Wanted {
  int64_t axis, size = -1;
  double scale = 0;
  bool same = false;
};

bool wanted(Site& s, std::vector<Wanted>& all) {
  const int64_t rank = s.rank(s.x(0));
  const std::vector<int64_t> axes = axes_of(s, rank);
  std::vector<int64_t> sizes;
  const bool by_size = s.has(3) && s.numbers(s.x(3), sizes) && sizes.size() == axes.size();
  const Tensor* scales = s.has(2) ? s.constant(s.x(2)) : nullptr;
  const bool by_scale = !by_size && scales && scales->size() == int64_t(axes.size());
  const TypeInfo &x = s.type(s.x(0)), &y = s.type(s.y());
  const bool typed = y.is_tensor() && y.shape && int64_t(y.shape->size()) == rank;
  if (!by_size && !by_scale && !typed) return false;
  for (size_t k = 0; k < axes.size(); ++k) {
    Wanted w{axes[k]};
    const Dim& from = (*x.shape)[size_t(axes[k])];
    if (by_scale) {
      w.scale = scales->to_doubles()[k];
      w.same = w.scale == 1;
    } else {
      const Dim to = by_size ? Dim{sizes[k], {}} : (*y.shape)[size_t(axes[k])];
      w.size = to.known() ? to.value : -1;
      w.same =
          from.known() ? from.value == w.size : !from.symbol.empty() && from.symbol == to.symbol;
      if (!w.same && w.size < 0) return false;
    }
    all.push_back(w);
  }
  return true;
}

// The scale of every axis as p/q, and the size that comes out.
bool set_scales(Site& s, const std::vector<Wanted>& all, std::vector<OpenAxis>& axes) {
  const std::string policy = s.node().s("keep_aspect_ratio_policy", "stretch");
  auto number = [&](double v) { return s.scalar(v, DType::kFloat); };
  auto whole = [&](ValueId v) { return s.cast(s.call("Floor", {v}), DType::kInt64); };
  if (policy == "stretch" || all[0].scale > 0) {
    for (size_t k = 0; k < all.size(); ++k) {
      const Wanted& w = all[k];
      if (w.size >= 0)
        axes[k].set_scale(number(double(w.size)), axes[k].size(), s.constant_int(w.size));
      else
        axes[k].set_scale(number(w.scale), number(1),
                          whole(s.mul(axes[k].size(), number(w.scale))));
    }
    return true;
  }
  if (std::any_of(all.begin(), all.end(), [](const Wanted& w) { return w.size < 0; })) return false;
  // one scale for all: the smallest or the largest of size / in
  ValueId p = number(double(all[0].size)), q = axes[0].size();
  for (size_t k = 1; k < all.size(); ++k) {
    const ValueId pk = number(double(all[k].size)), qk = axes[k].size();
    const ValueId mine = s.mul(p, qk), other = s.mul(pk, q);
    const ValueId first =
        policy == "not_larger" ? s.call("Less", {other, mine}) : s.call("Less", {mine, other});
    p = s.call("Where", {first, pk, p});
    q = s.call("Where", {first, qk, q});
  }
  for (OpenAxis& a : axes)  // rounded, halves up
    a.set_scale(p, q, whole(s.add(s.div(s.mul(a.size(), p), q), number(0.5))));
  return true;
}

Values open_resize(Site& s) {
  const int64_t rank = s.rank(s.x(0));
  std::vector<Wanted> all;
  const bool nearest = s.node().s("mode", "nearest") == "nearest";
  if (rank < 1 || s.node().version < 11 || !wanted(s, all)) return {};
  if (!nearest && s.dtype(s.x(0)) != DType::kFloat) return {};
  const std::string policy = s.node().s("keep_aspect_ratio_policy", "stretch");
  if (policy == "stretch") std::erase_if(all, [](const Wanted& w) { return w.same; });
  if (all.empty()) return {s.x(0)};
  const ValueId shape = s.call("Shape", {s.x(0)});
  std::vector<OpenAxis> axes;
  for (const Wanted& w : all) axes.emplace_back(s, w.axis, shape);
  if (!set_scales(s, all, axes)) return {};
  ValueId v = s.x(0);
  for (size_t k = 0; k < all.size(); ++k) {
    if (!axes[k].place(policy == "stretch" ? all[k].size : -1)) return {};
    if (nearest) {
      v = axes[k].nearest(v);
      if (v == kNone) return {};
      continue;
    }
    std::vector<int64_t> perm;
    for (int64_t d = 0; d < rank; ++d) perm.push_back(d);
    std::swap(perm[size_t(all[k].axis)], perm.back());
    const bool moved = all[k].axis + 1 != rank;
    if (moved) v = s.transpose(v, perm);
    v = s.call("MatMul", {v, axes[k].matrix()});
    if (moved) v = s.transpose(v, perm);
  }
  return {v};
}

Values resize(Site& s) {
  if (s.context().few_nodes && doubles(s)) return {};
  const Op* op = s.context().ops.find(s.node());
  Values made = op && op->lower ? op->lower(s) : Values{};
  return made.empty() ? open_resize(s) : made;
}

}  // namespace

Rules resize_rules() { return {{"Resize", "matmul", resize}}; }

}  // namespace onnxtrain::portable
