// A convolution whose kernel is computed from the data is the weight gradient of another one: its
// kernel is as large as an image, and its result as small as a kernel. Written as one matrix
// multiplication per element of the result's windows, or as a single one over all of them where
// that is small. Runtimes that want kernels of constant shape run it, and others run it faster.
#include <algorithm>

#include "convert/portable/fast_conv.hpp"

namespace onnxtrain::portable {

namespace {

using Values = std::vector<ValueId>;

constexpr int64_t kMostTaps = 512;  // more than a kernel has
constexpr int64_t kSmallRows = 64;  // rows of the single multiplication

bool problem_of(Site& s, WeightGradient& p) {
  const ValueId x = s.x(0), k = s.x(1), y = s.y();
  const std::vector<int64_t> xs = s.sizes(x), ks = s.sizes(k), ys = s.sizes(y);
  if (xs.size() < 3 || ks.size() != xs.size() || ys.size() != xs.size()) return false;
  p.groups = s.node().i("group", 1);
  p.channels = xs[0];
  p.kernels = ks[0];
  if (p.channels < 0 || p.kernels < 0) return false;
  Windows w;
  if (!windows_of(s, s.node(), x, y, {ks.begin() + 2, ks.end()}, w)) return false;
  // what one element of the result sees, over all elements of the kernel
  p.w = w;
  p.w.kernel = w.out;
  p.w.out = w.kernel;
  p.w.strides = w.dilations;
  p.w.dilations = w.strides;
  return p.w.taps() <= kMostTaps;
}

// [channels, groups * rows, image] -> what a tap sees as a matrix: [channels, P], with groups
// [groups, channels, P].
ValueId as_matrix(Site& s, ValueId v, const WeightGradient& p) {
  if (p.groups == 1) return s.reshape(v, {p.channels, -1});
  const ValueId split = s.reshape(v, {p.channels, p.groups, -1});
  return p.channels == 1 ? s.reshape(split, {p.groups, 1, -1}) : s.transpose(split, {1, 0, 2});
}

// [kernels, rows, image] -> [P, kernels], with groups [groups, P, kernels / groups].
ValueId kernel_matrix(Site& s, ValueId v, const WeightGradient& p) {
  if (p.groups == 1) return s.transpose(s.reshape(v, {p.kernels, -1}), {1, 0});
  return s.transpose(s.reshape(v, {p.groups, p.kernels / p.groups, -1}), {0, 2, 1});
}

Values conv(Site& s) {
  WeightGradient p;
  if (!s.depends_on_data(s.x(1))) return depthwise(s);
  if (s.has(2) || !problem_of(s, p)) return {};
  if (s.context().few_nodes && s.dtype(s.x(0)) == DType::kFloat) {
    ValueId fast = kNone;
    if (fast_weight_gradient(s, p, fast)) return fast == kNone ? Values{} : Values{fast};
  }
  const ValueId around = padded(s, s.x(0), p.w, 0), k = kernel_matrix(s, s.x(1), p);
  const int64_t taps = p.w.taps(), each = p.kernels / p.groups;
  std::vector<ValueId> parts;
  for (int64_t t = 0; t < taps; ++t) parts.push_back(as_matrix(s, seen_by(s, around, p.w, t), p));
  const int64_t axis = p.groups == 1 ? 0 : 1;
  ValueId y = kNone;
  if (p.channels * taps <= kSmallRows && taps > 1) {
    y = s.call("MatMul", {s.call("Concat", parts, {{"axis", axis}}), k});
  } else {
    for (ValueId& v : parts) v = s.call("MatMul", {v, k});
    y = taps == 1 ? parts[0] : s.call("Concat", parts, {{"axis", axis}});
  }
  // [groups, taps, channels, each] -> [channels, groups, each, taps]
  y = s.reshape(y, {p.groups, taps, p.channels, each});
  y = s.transpose(y, {2, 0, 3, 1});
  std::vector<int64_t> shape{p.channels, p.kernels};
  shape.insert(shape.end(), p.w.kernel.begin(), p.w.kernel.end());
  return {s.reshape(y, shape)};
}

}  // namespace

namespace {

// The gradient of AveragePool: every channel is an image of its own, with a kernel of ones. IREE
// has no ConvTranspose in groups of one channel.
Values channels_as_rows(Site& s) {
  const std::vector<int64_t> xs = s.sizes(s.x(0)), ks = s.sizes(s.x(1)), ys = s.sizes(s.y());
  if (s.context().few_nodes || s.has(2) || xs.size() < 3 || ks.size() != xs.size()) return {};
  if (ys.size() != xs.size() || xs[1] < 2 || xs[1] != s.node().i("group", 1) || ks[1] != 1)
    return {};
  auto open = [](int64_t n) { return n < 0; };
  for (const auto& sizes : {xs, ks, ys})
    if (std::any_of(sizes.begin() + 1, sizes.end(), open)) return {};
  if (!s.is_all(s.x(1), 1)) return {};
  std::vector<int64_t> rows = xs, kernel = ks, back = ys;
  rows[0] = back[0] = -1;
  rows[1] = kernel[0] = 1;
  Tensor ones(DType::kFloat, kernel);
  std::fill_n(ones.as<float>(), ones.size(), 1.0F);
  GradBuilder::Attrs attrs = s.node().attrs;
  attrs["group"] = int64_t(1);
  const ValueId y =
      s.call("ConvTranspose", {s.reshape(s.x(0), rows), s.tensor(ones)}, std::move(attrs));
  return {s.reshape(y, back)};
}

// The kernels turned around: the last tap first along every axis of the image.
ValueId turned(Site& s, ValueId kernels, const Windows& w) {
  for (size_t d = 0; d < w.dims(); ++d) {
    std::vector<int64_t> back(static_cast<size_t>(w.kernel[d]));
    for (size_t k = 0; k < back.size(); ++k) back[k] = w.kernel[d] - 1 - int64_t(k);
    if (back.size() > 1)
      kernels = s.call("Gather", {kernels, s.ints(back)}, {{"axis", int64_t(d) + 2}});
  }
  return kernels;
}

// One kernel per channel: an ordinary convolution by the turned kernels, of the image with zeros
// between its elements where there are strides.
Values one_kernel_per_channel(Site& s) {
  const int64_t groups = s.node().i("group", 1);
  const std::vector<int64_t> xs = s.sizes(s.x(0)), ks = s.sizes(s.x(1));
  if (s.context().few_nodes || groups < 2 || xs.size() < 3 || ks.size() != xs.size()) return {};
  if (xs[1] != groups || ks[1] != 1 || s.node().s("auto_pad", "NOTSET") != "NOTSET") return {};
  Windows w;  // of the convolution that this one goes back through
  if (!windows_of(s, s.node(), s.y(), s.x(0), {ks.begin() + 2, ks.end()}, w)) return {};
  std::vector<int64_t> begin, end, size;
  for (size_t d = 0; d < w.dims(); ++d) {
    const int64_t reach = (w.kernel[d] - 1) * w.dilations[d], n = w.out[d];
    begin.push_back(reach - w.begin[d]);
    const int64_t room = w.in[d] + reach - begin[d];
    if (begin[d] < 0 || room < (n - 1) * w.strides[d] + 1) return {};
    size.push_back(n == 1 ? 1 : std::min(n * w.strides[d], room));
    end.push_back(room - size[d]);
  }
  ValueId image = s.x(0);
  for (size_t d = 0; d < w.dims(); ++d)
    if (w.strides[d] > 1 && w.out[d] > 1)
      image = spread(s, image, int64_t(d) + 2, 0, w.strides[d], size[d]);
  begin.insert(begin.end(), end.begin(), end.end());
  std::vector<ValueId> in{image, turned(s, s.x(1), w)};
  if (s.has(2)) in.push_back(s.x(2));
  return {s.call("Conv", in, {{"group", groups}, {"dilations", w.dilations}, {"pads", begin}})};
}

// Group by group: onnx's ReferenceEvaluator has groups of one channel only.
Values conv_transpose(Site& s) {
  if (Values v = depthwise(s); !v.empty()) return v;
  const int64_t groups = s.node().i("group", 1);
  const std::vector<int64_t> xs = s.sizes(s.x(0)), ks = s.sizes(s.x(1));
  constexpr int64_t kMostGroups = 64;
  if (Values v = channels_as_rows(s); !v.empty()) return v;
  if (Values v = one_kernel_per_channel(s); !v.empty()) return v;
  if (groups < 2 || groups > kMostGroups || s.context().few_nodes) return {};
  if (xs.size() < 3 || xs[1] < 0 || ks.size() != xs.size() || ks[1] < 0) return {};
  if (xs[1] == groups && ks[1] == 1) return {};
  const int64_t each = xs[1] / groups;
  GradBuilder::Attrs attrs = s.node().attrs;
  attrs["group"] = int64_t(1);
  std::vector<ValueId> parts;
  for (int64_t k = 0; k < groups; ++k) {
    std::vector<ValueId> in{s.slice(s.x(0), 1, k * each, (k + 1) * each),
                            s.slice(s.x(1), 0, k * each, (k + 1) * each)};
    if (s.has(2)) in.push_back(s.slice(s.x(2), 0, k * ks[1], (k + 1) * ks[1]));
    parts.push_back(s.call("ConvTranspose", in, attrs));
  }
  return {s.call("Concat", parts, {{"axis", int64_t(1)}})};
}

}  // namespace

Rules conv_rules() {
  return {{"Conv", "weight_gradient", conv}, {"ConvTranspose", "group_by_group", conv_transpose}};
}

}  // namespace onnxtrain::portable
