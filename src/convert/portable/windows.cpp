// Windows as slices, and the gradient of MaxPool by them.
#include "convert/portable/windows.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

namespace onnxtrain::portable {

int64_t Windows::taps() const {
  return std::accumulate(kernel.begin(), kernel.end(), int64_t(1), std::multiplies<>());
}

std::vector<int64_t> Windows::at(int64_t tap) const {
  std::vector<int64_t> p(kernel.size());
  for (size_t d = kernel.size(); d-- > 0; tap /= kernel[d]) p[d] = tap % kernel[d];
  return p;
}

bool windows_of(Site& s, const Node& n, ValueId x, ValueId y, std::vector<int64_t> kernel,
                Windows& w) {
  const std::vector<int64_t> xs = s.sizes(x), ys = s.sizes(y);
  if (xs.size() < 3 || ys.size() != xs.size() || kernel.size() != xs.size() - 2) return false;
  w.kernel = std::move(kernel);
  const size_t dims = w.kernel.size();
  w.strides = n.ints("strides", std::vector<int64_t>(dims, 1));
  w.dilations = n.ints("dilations", std::vector<int64_t>(dims, 1));
  const std::vector<int64_t> pads = n.ints("pads", std::vector<int64_t>(2 * dims, 0));
  const std::string mode = n.s("auto_pad", "NOTSET");
  for (size_t d = 0; d < dims; ++d) {
    const int64_t in = xs[d + 2], out = ys[d + 2];
    if (in < 0 || out < 0 || w.kernel[d] < 1) return false;
    // what the last window reaches beyond the input
    const int64_t reach = (out - 1) * w.strides[d] + (w.kernel[d] - 1) * w.dilations[d] + 1;
    int64_t begin = pads[d];
    if (mode == "SAME_UPPER") begin = std::max<int64_t>(0, reach - in) / 2;
    if (mode == "SAME_LOWER") begin = (std::max<int64_t>(0, reach - in) + 1) / 2;
    if (mode == "VALID") begin = 0;
    w.in.push_back(in);
    w.out.push_back(out);
    w.begin.push_back(begin);
    w.end.push_back(std::max<int64_t>(0, reach - begin - in));
  }
  return true;
}

ValueId padded(Site& s, ValueId x, const Windows& w, double value) {
  std::vector<int64_t> before{0, 0}, after{0, 0};
  before.insert(before.end(), w.begin.begin(), w.begin.end());
  after.insert(after.end(), w.end.begin(), w.end.end());
  return s.pad(x, before, after, value);
}

ValueId seen_by(Site& s, ValueId v, const Windows& w, int64_t tap) {
  const std::vector<int64_t> at = w.at(tap);
  std::vector<int64_t> from, to, axes, steps;
  for (size_t d = 0; d < w.dims(); ++d) {
    from.push_back(at[d] * w.dilations[d]);
    to.push_back(from[d] + (w.out[d] - 1) * w.strides[d] + 1);
    axes.push_back(int64_t(d) + 2);
    steps.push_back(w.strides[d]);
  }
  return s.call("Slice", {v, s.ints(from), s.ints(to), s.ints(axes), s.ints(steps)});
}

namespace {

// 1 at the first maximum among the taps, which lie along axis 2 of v.
ValueId first_maximum(Site& s, ValueId v, int64_t taps) {
  const ValueId at = s.call("ArgMax", {v}, {{"axis", int64_t(2)}, {"keepdims", int64_t(0)}});
  return one_hot(s, at, taps, 2, s.dtype(v));
}

// A window over everything: one row per plane.
ValueId global_gradient(Site& s, ValueId x, ValueId dy, const Windows& w) {
  std::vector<int64_t> sizes = s.sizes(x);
  const int64_t size = w.taps();
  const ValueId hot = first_maximum(s, s.reshape(x, {sizes[0], sizes[1], size}), size);
  return s.reshape(s.mul(hot, s.reshape(dy, {sizes[0], sizes[1], 1})), sizes);
}

// Windows that lie side by side: the taps [N,C,K,out...] go to their places by Transpose.
ValueId side_by_side(Site& s, ValueId v, const Windows& w, const std::vector<int64_t>& lead) {
  std::vector<int64_t> split = lead, perm{0, 1}, whole = lead;
  const int64_t dims = int64_t(w.dims());
  split.insert(split.end(), w.kernel.begin(), w.kernel.end());
  split.insert(split.end(), w.out.begin(), w.out.end());
  for (int64_t d = 0; d < dims; ++d) {
    perm.insert(perm.end(), {2 + dims + d, 2 + d});
    whole.push_back(w.out[size_t(d)] * w.kernel[size_t(d)]);
  }
  return s.reshape(s.transpose(s.reshape(v, split), perm), whole);
}

ValueId tap_by_tap(Site& s, ValueId v, const Windows& w, const std::vector<int64_t>& lead) {
  ValueId sum = kNone;
  for (int64_t tap = 0; tap < w.taps(); ++tap) {
    std::vector<int64_t> shape = lead;
    shape.insert(shape.end(), w.out.begin(), w.out.end());
    ValueId part = s.reshape(s.slice(v, 2, tap, tap + 1), shape);
    const std::vector<int64_t> at = w.at(tap);
    for (size_t d = 0; d < w.dims() && part != kNone; ++d)
      part = spread(s, part, int64_t(d) + 2, at[d] * w.dilations[d], w.strides[d],
                    w.begin[d] + w.in[d] + w.end[d]);
    if (part == kNone) return kNone;
    sum = sum == kNone ? part : s.add(sum, part);
  }
  return sum;
}

}  // namespace

ValueId max_pool_gradient(Site& s, const Node& pool, ValueId dy) {
  const ValueId x = pool.inputs[0];
  Windows w;
  if (!windows_of(s, pool, x, pool.outputs[1], pool.ints("kernel_shape"), w)) return kNone;
  const std::vector<int64_t> sizes = s.sizes(x);
  const std::vector<int64_t> lead{sizes[0], sizes[1]};
  if (lead[1] < 0) return kNone;
  if (w.kernel == w.in && w.taps() > 1 &&
      std::all_of(w.out.begin(), w.out.end(), [](int64_t n) { return n == 1; }))
    return global_gradient(s, x, dy, w);
  // the smallest number: no runtime needs infinities in a file
  const ValueId around = padded(s, x, w, double(std::numeric_limits<float>::lowest()));
  std::vector<ValueId> seen;
  for (int64_t tap = 0; tap < w.taps(); ++tap)
    seen.push_back(s.unsqueeze(seen_by(s, around, w, tap), {2}));
  const ValueId all = seen.size() == 1 ? seen[0] : s.call("Concat", seen, {{"axis", int64_t(2)}});
  const ValueId parts = s.mul(first_maximum(s, all, w.taps()), s.unsqueeze(dy, {2}));
  const bool beside = w.kernel == w.strides && std::all_of(w.dilations.begin(), w.dilations.end(),
                                                           [](int64_t n) { return n == 1; });
  ValueId v = beside ? side_by_side(s, parts, w, lead) : tap_by_tap(s, parts, w, lead);
  if (v == kNone) return kNone;
  // back to the input: without the padding, with what no window reached
  for (size_t d = 0; d < w.dims(); ++d) {
    const int64_t axis = int64_t(d) + 2;
    int64_t have = beside ? w.out[d] * w.kernel[d] : w.begin[d] + w.in[d] + w.end[d];
    const int64_t take = std::min(have - w.begin[d], w.in[d]);
    if (w.begin[d] > 0 || take < have) v = s.slice(v, axis, w.begin[d], w.begin[d] + take);
    v = spread(s, v, axis, 0, 1, w.in[d]);
  }
  return v;
}

}  // namespace onnxtrain::portable
