// A convolution whose kernel is computed from the data is the weight gradient of another one: its
// kernel is as large as an image, and its result as small as a kernel. Written as one matrix
// multiplication per element of the result's windows, or as a single one over all of them where
// that is small. Runtimes that want kernels of constant shape run it, and others run it faster.
#include <algorithm>

#include "convert/portable/rules.hpp"
#include "convert/portable/windows.hpp"

namespace onnxtrain::portable {

namespace {

using Values = std::vector<ValueId>;

constexpr int64_t kMostTaps = 512;  // more than a kernel has
constexpr int64_t kSmallRows = 64;  // rows of the single multiplication

struct Problem {
  Windows w;  // turned round: `out` is the image that the kernel covers, taps are the results
  int64_t groups, channels, kernels;  // channels of x; kernels in all
};

bool problem_of(Site& s, Problem& p) {
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
ValueId as_matrix(Site& s, ValueId v, const Problem& p) {
  if (p.groups == 1) return s.reshape(v, {p.channels, -1});
  const ValueId split = s.reshape(v, {p.channels, p.groups, -1});
  return p.channels == 1 ? s.reshape(split, {p.groups, 1, -1}) : s.transpose(split, {1, 0, 2});
}

// [kernels, rows, image] -> [P, kernels], with groups [groups, P, kernels / groups].
ValueId kernel_matrix(Site& s, ValueId v, const Problem& p) {
  if (p.groups == 1) return s.transpose(s.reshape(v, {p.kernels, -1}), {1, 0});
  return s.transpose(s.reshape(v, {p.groups, p.kernels / p.groups, -1}), {0, 2, 1});
}

// ---------------------------------------------------------------- few nodes
// Measured in ONNX Runtime, one thread: from here on single taps are faster than windows by Conv.
constexpr double kLargeProblem = 1e8;    // floating-point operations
constexpr double kLargeDepthwise = 2e7;  // the same: from here on taps are faster than Conv itself
constexpr int64_t kLikelyRows = 32;      // of an open batch

// v before its first two dimensions changed places; kNone if it was not made so.
ValueId swapped_back(Site& s, ValueId v) {
  auto swaps = [](const Node* t, const std::vector<int64_t>& first) {
    if (!t) return false;
    const std::vector<int64_t> perm = t->ints("perm");
    if (perm.size() < first.size()) return false;
    for (size_t d = 0; d < perm.size(); ++d)
      if (perm[d] != (d < first.size() ? first[d] : int64_t(d))) return false;
    return true;
  };
  if (const Node* t = s.maker(v, "Transpose")) return swaps(t, {1, 0}) ? t->inputs[0] : kNone;
  // written for groups: [N, 1, C, ...] -> [C, 1, N, ...]
  const Node* merge = s.maker(v, "Reshape");
  const Node* t = merge ? s.maker(merge->inputs[0], "Transpose") : nullptr;
  const Node* cut = swaps(t, {2, 1, 0}) ? s.maker(t->inputs[0], "Reshape") : nullptr;
  if (!cut) return kNone;
  const std::vector<int64_t> was = s.sizes(cut->inputs[0]), now = s.sizes(v);
  if (was.size() != now.size() || was.size() < 3 || was[1] != now[0]) return kNone;
  return std::equal(was.begin() + 2, was.end(), now.begin() + 2) ? cut->inputs[0] : kNone;
}

double operations(Site& s, const Problem& p) {
  const std::vector<int64_t> ks = s.sizes(s.x(1));
  double n = 2.0 * double(p.channels) * double(p.kernels) * double(p.w.taps());
  for (size_t d = 1; d < ks.size(); ++d) n *= double(ks[d] < 0 ? kLikelyRows : ks[d]);
  return n;
}

// What each tap sees, as channels: [N, C, in...] -> [N, C taps, out...], a Conv of each channel
// with kernels that have a single 1.
ValueId windows(Site& s, ValueId x, const Problem& p) {
  const int64_t taps = p.w.taps();
  Shape shape{p.channels * taps, 1};
  shape.insert(shape.end(), p.w.kernel.begin(), p.w.kernel.end());
  Tensor picks(DType::kFloat, shape);
  float* at = picks.as<float>();
  std::fill(at, at + picks.size(), 0.0F);
  for (int64_t c = 0; c < p.channels; ++c)
    for (int64_t t = 0; t < taps; ++t) at[(c * taps + t) * taps + t] = 1;
  std::vector<int64_t> pads = p.w.begin;
  pads.insert(pads.end(), p.w.end.begin(), p.w.end.end());
  return s.call("Conv", {x, s.tensor(picks)},
                {{"group", p.channels},
                 {"kernel_shape", p.w.kernel},
                 {"strides", p.w.strides},
                 {"dilations", p.w.dilations},
                 {"pads", pads}});
}

// Does a Conv with these windows have as many results as there are places in dy?
bool windows_fit(const Problem& p) {
  for (size_t d = 0; d < p.w.dims(); ++d) {
    const int64_t covers = (p.w.kernel[d] - 1) * p.w.dilations[d] + 1;
    const int64_t room = p.w.in[d] + p.w.begin[d] + p.w.end[d] - covers;
    if (room < 0 || room / p.w.strides[d] + 1 != p.w.out[d]) return false;
  }
  return true;
}

// One multiplication for each image, and their sum.
ValueId by_windows(Site& s, ValueId x, ValueId dy, const Problem& p) {
  auto same = [](const std::vector<int64_t>& v, int64_t n) {
    return std::all_of(v.begin(), v.end(), [&](int64_t k) { return k == n; });
  };
  const int64_t taps = p.w.taps();
  const bool itself = taps == 1 && same(p.w.strides, 1) && same(p.w.begin, 0) && same(p.w.end, 0);
  const ValueId seen = itself ? x : windows(s, x, p);
  const ValueId a = s.call("Reshape", {dy, s.ints({0, p.kernels, -1})});
  const ValueId b = s.call("Reshape", {seen, s.ints({0, p.channels * taps, -1})});
  const ValueId each = s.call("MatMul", {a, s.transpose(b, {0, 2, 1})});
  const ValueId sum = s.reduce_sum(each, {0}, false);
  std::vector<int64_t> shape{p.kernels, p.channels};
  shape.insert(shape.end(), p.w.kernel.begin(), p.w.kernel.end());
  const ValueId dw = s.reshape(sum, shape);
  std::vector<int64_t> perm{1, 0};
  for (size_t d = 2; d < shape.size(); ++d) perm.push_back(int64_t(d));
  return s.transpose(dw, perm);
}

Values conv(Site& s) {
  Problem p;
  if (s.has(2) || !s.depends_on_data(s.x(1)) || !problem_of(s, p)) return {};
  if (s.context().few_nodes && s.dtype(s.x(0)) == DType::kFloat) {
    const double size = operations(s, p);
    if (p.groups > 1 && size < kLargeDepthwise) return {};
    const ValueId x = swapped_back(s, s.x(0)), dy = swapped_back(s, s.x(1));
    if (p.groups == 1 && x != kNone && dy != kNone && size < kLargeProblem && windows_fit(p))
      return {by_windows(s, x, dy, p)};
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

// Group by group: onnx's ReferenceEvaluator has groups of one channel only.
Values conv_transpose(Site& s) {
  const int64_t groups = s.node().i("group", 1);
  const std::vector<int64_t> xs = s.sizes(s.x(0)), ks = s.sizes(s.x(1));
  constexpr int64_t kMostGroups = 64;
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
