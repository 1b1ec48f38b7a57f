// Which form: measured in ONNX Runtime 1.31, one thread
// (docs/decisions/0200-forms-for-onnxruntime.md).
#include "convert/portable/fast_conv.hpp"

#include <algorithm>

namespace onnxtrain::portable {

namespace {

using Values = std::vector<ValueId>;

constexpr double kLargeProblem = 5e6;        // floating-point operations: from here on tap by tap
constexpr double kVeryLarge = 1e8;           // the same where slices are slow, or a matrix is small
constexpr double kLargeDepthwise = 2e7;      // the same of a convolution with groups
constexpr int64_t kLikelyRows = 32;          // of an open batch
constexpr int64_t kLargeKernel = 16;         // taps: from here on the Conv as it is
constexpr int64_t kSmallMatrix = 16384;      // elements of the matrix that picks what taps see
constexpr int64_t kDepthwiseMatrix = 36864;  // the same for one kernel per channel
constexpr int64_t kPixelsPerRow = 16;  // an image may have this many for each row of the batch

std::vector<int64_t> joined(std::vector<int64_t> a, const std::vector<int64_t>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// v before batch and channels (`channels` of them) changed places; kNone if it was not made so.
ValueId swapped_back(Site& s, ValueId v, int64_t channels) {
  auto swaps = [](const Node& t, const std::vector<int64_t>& first) {
    const std::vector<int64_t> perm = t.ints("perm");
    if (perm.size() < first.size()) return false;
    for (size_t d = 0; d < perm.size(); ++d)
      if (perm[d] != (d < first.size() ? first[d] : int64_t(d))) return false;
    return true;
  };
  if (const Node* t = s.maker(v, "Transpose")) return swaps(*t, {1, 0}) ? t->inputs[0] : kNone;
  // written for groups: [N, G, C, ...] -> [C, G, N, ...] -> [C, G N, ...]
  const Node* merge = s.maker(v, "Reshape");
  const Node* t = merge ? s.maker(merge->inputs[0], "Transpose") : nullptr;
  const Node* cut = t && swaps(*t, {2, 1, 0}) ? s.maker(t->inputs[0], "Reshape") : nullptr;
  if (!cut) return kNone;
  const std::vector<int64_t> was = s.sizes(cut->inputs[0]), now = s.sizes(v);
  if (was.size() != now.size() || was.size() < 3 || was[1] != channels) return kNone;
  return std::equal(was.begin() + 2, was.end(), now.begin() + 2) ? cut->inputs[0] : kNone;
}

int64_t rows_of(Site& s, ValueId v) {
  const std::vector<int64_t> sizes = s.sizes(v);
  return sizes.empty() || sizes[0] < 0 ? kLikelyRows : sizes[0];
}

double operations(Site& s, const WeightGradient& p) {
  const std::vector<int64_t> ks = s.sizes(s.x(1));
  double n = 2.0 * double(p.channels) * double(p.kernels) * double(p.w.taps());
  for (size_t d = 1; d < ks.size(); ++d) n *= double(ks[d] < 0 ? kLikelyRows : ks[d]);
  return n;
}

// ---------------------------------------------------------------- what taps see
// Calls f(tap, place of the image, place of the result) wherever a tap sees the image.
template <class F>
void each_seen(const Windows& w, const F& f) {
  const int64_t places = num_elements(w.out);
  for (int64_t tap = 0; tap < w.taps(); ++tap) {
    const std::vector<int64_t> k = w.at(tap);
    for (int64_t p = 0; p < places; ++p) {
      int64_t rest = p, at = 0, stride = 1;
      bool inside = true;
      for (size_t d = w.dims(); d-- > 0;) {
        const int64_t i = rest % w.out[d] * w.strides[d] + k[d] * w.dilations[d] - w.begin[d];
        rest /= w.out[d];
        inside &= i >= 0 && i < w.in[d];
        at += i * stride;
        stride *= w.in[d];
      }
      if (inside) f(tap, at, p);
    }
  }
}

int64_t picks(const Windows& w) { return w.taps() * num_elements(w.in) * num_elements(w.out); }

Tensor zeros(const Shape& shape) {
  Tensor t(DType::kFloat, shape);
  std::fill_n(t.as<float>(), t.size(), 0.0F);
  return t;
}

// What taps see of a tensor, either of the image for every place of the result, or of the result
// for every pixel of the image, which is the same seen from the other side.
struct View {
  ValueId v;
  int64_t channels;
  bool of_result;
};

// [N, C, from...] -> [N, C taps, to]: a matrix with a single 1 in every column picks it.
ValueId seen_by_matrix(Site& s, const View& view, const Windows& w) {
  const int64_t pixels = num_elements(w.in), places = num_elements(w.out), taps = w.taps();
  const int64_t from = view.of_result ? places : pixels, to = view.of_result ? pixels : places;
  Tensor m = zeros({from, taps * to});
  each_seen(w, [&](int64_t tap, int64_t pixel, int64_t place) {
    const int64_t row = view.of_result ? place : pixel, column = view.of_result ? pixel : place;
    m.as<float>()[(row * taps + tap) * to + column] = 1;
  });
  const ValueId seen = s.call("MatMul", {s.reshape(view.v, {-1, from}), s.tensor(m)});
  return s.reshape(seen, {-1, view.channels * taps, to});
}

// The windows of a Conv over the result that has one value for each pixel; strides of 1 only.
Windows from_the_other_side(const Windows& w) {
  Windows o = w;
  o.in = w.out;
  o.out = w.in;
  for (size_t d = 0; d < w.dims(); ++d) {
    const int64_t reach = (w.kernel[d] - 1) * w.dilations[d];
    o.begin[d] = reach - w.begin[d];
    o.end[d] = w.in[d] + reach - w.out[d] - o.begin[d];
  }
  return o;
}

// Does a Conv with these windows have as many results as it should?
bool windows_fit(const Windows& w) {
  for (size_t d = 0; d < w.dims(); ++d) {
    const int64_t covers = (w.kernel[d] - 1) * w.dilations[d] + 1;
    const int64_t room = w.in[d] + w.begin[d] + w.end[d] - covers;
    if (w.begin[d] < 0 || w.end[d] < 0 || room < 0 || room / w.strides[d] + 1 != w.out[d])
      return false;
  }
  return true;
}

// The same by a Conv of each channel with kernels that have a single 1.
ValueId seen_by_conv(Site& s, const View& view, const Windows& w) {
  const int64_t taps = w.taps();
  Tensor kernels = zeros(joined({view.channels * taps, 1}, w.kernel));
  for (int64_t c = 0; c < view.channels; ++c)
    for (int64_t t = 0; t < taps; ++t)
      kernels.as<float>()[(c * taps + t) * taps + (view.of_result ? taps - 1 - t : t)] = 1;
  const ValueId seen = s.call("Conv", {view.v, s.tensor(kernels)},
                              {{"group", view.channels},
                               {"kernel_shape", w.kernel},
                               {"strides", w.strides},
                               {"dilations", w.dilations},
                               {"pads", joined(w.begin, w.end)}});
  return s.call("Reshape", {seen, s.ints({0, view.channels * taps, -1})});
}

bool all_are(const std::vector<int64_t>& v, int64_t n) {
  return std::all_of(v.begin(), v.end(), [&](int64_t k) { return k == n; });
}

ValueId seen_of(Site& s, const View& view, const Windows& w) {
  if (w.taps() == 1 && all_are(w.strides, 1) && all_are(w.begin, 0) && all_are(w.end, 0))
    return s.call("Reshape", {view.v, s.ints({0, view.channels, -1})});
  if (picks(w) <= kSmallMatrix) return seen_by_matrix(s, view, w);
  if (view.of_result && !all_are(w.strides, 1)) return kNone;
  const Windows o = view.of_result ? from_the_other_side(w) : w;
  return windows_fit(o) ? seen_by_conv(s, view, o) : kNone;
}

// [rows, columns] from a [N, rows, P] and b [N, columns, P], summed over N and P.
ValueId multiplied(Site& s, ValueId a, ValueId b, int64_t rows, int64_t columns, int64_t places) {
  const ValueId turned = s.transpose(b, {0, 2, 1});
  if (rows * columns <= (rows + columns) * places)  // an image at a time, and their sum
    return s.reduce_sum(s.call("MatMul", {a, turned}), {0}, false);
  return s.call("MatMul", {s.reshape(s.transpose(a, {1, 0, 2}), {rows, -1}),
                           s.reshape(turned, {-1, columns})});
}

// [channels, kernels, taps...]
ValueId dense_weight_gradient(Site& s, ValueId x, ValueId dy, const WeightGradient& p) {
  const int64_t taps = p.w.taps();
  if (p.kernels < p.channels && taps > 1) {
    if (const ValueId seen = seen_of(s, {dy, p.kernels, true}, p.w); seen != kNone) {
      const ValueId flat = s.call("Reshape", {x, s.ints({0, p.channels, -1})});
      const ValueId dw =
          multiplied(s, flat, seen, p.channels, p.kernels * taps, num_elements(p.w.in));
      return s.reshape(dw, joined({p.channels, p.kernels}, p.w.kernel));
    }
  }
  const ValueId seen = seen_of(s, {x, p.channels, false}, p.w);
  if (seen == kNone) return kNone;
  const ValueId flat = s.call("Reshape", {dy, s.ints({0, p.kernels, -1})});
  const ValueId dw =
      s.reshape(multiplied(s, flat, seen, p.kernels, p.channels * taps, num_elements(p.w.out)),
                joined({p.kernels, p.channels}, p.w.kernel));
  std::vector<int64_t> perm{1, 0};
  for (size_t d = 0; d < p.w.dims(); ++d) perm.push_back(int64_t(d) + 2);
  return s.transpose(dw, perm);
}

// ---------------------------------------------------------------- one kernel per channel
// [taps, in out]: 1 where a tap takes a place of the image to a place of the result. A kernel times
// this is the matrix [in, out] that its convolution is.
ValueId placement(Site& s, const Windows& w) {
  const int64_t pixels = num_elements(w.in), places = num_elements(w.out);
  Tensor m = zeros({w.taps(), pixels * places});
  each_seen(w, [&](int64_t tap, int64_t from, int64_t to) {
    m.as<float>()[(tap * pixels + from) * places + to] = 1;
  });
  return s.tensor(m);
}

bool small_images(Site& s, const Windows& w, ValueId batch) {
  return picks(w) <= kDepthwiseMatrix && num_elements(w.in) <= kPixelsPerRow * rows_of(s, batch);
}

// [N, C, D...] -> [C, N, D]
ValueId by_channel(Site& s, ValueId v, int64_t channels, int64_t size) {
  return s.transpose(s.reshape(v, {-1, channels, size}), {1, 0, 2});
}

// Every pixel times every place of dy, summed over the batch; then those that a tap joins.
ValueId depthwise_weight_gradient(Site& s, ValueId x, ValueId dy, const WeightGradient& p) {
  const int64_t pixels = num_elements(p.w.in), places = num_elements(p.w.out), c = p.groups;
  const ValueId a = by_channel(s, x, c, pixels), b = by_channel(s, dy, c, places);
  const ValueId all = s.call("MatMul", {s.transpose(a, {0, 2, 1}), b});
  const ValueId dw = s.call("Gemm", {s.reshape(all, {c, pixels * places}), placement(s, p.w)},
                            {{"transB", int64_t(1)}});
  return s.reshape(dw, joined({1, c}, p.w.kernel));
}

}  // namespace

bool fast_weight_gradient(Site& s, const WeightGradient& p, ValueId& dw) {
  const double size = operations(s, p);
  const ValueId x = swapped_back(s, s.x(0), p.groups * p.channels),
                dy = swapped_back(s, s.x(1), p.kernels);
  const bool found = x != kNone && dy != kNone;
  dw = kNone;
  if (p.groups > 1) {
    if (found && p.channels == 1 && p.kernels == p.groups && small_images(s, p.w, x))
      dw = depthwise_weight_gradient(s, x, dy, p);
    return dw != kNone || size < kLargeDepthwise;
  }
  const bool slices =
      all_are(p.w.strides, 1) && picks(p.w) > kSmallMatrix && p.w.taps() < kLargeKernel;
  if (!found || size >= (slices ? kLargeProblem : kVeryLarge)) return false;
  if (p.w.taps() < kLargeKernel) dw = dense_weight_gradient(s, x, dy, p);
  return true;
}

Values depthwise(Site& s) {
  if (!s.context().few_nodes || s.inputs() < 2 || s.dtype(s.x(0)) != DType::kFloat) return {};
  const bool back = s.node().is("ConvTranspose");
  const ValueId image = back ? s.y() : s.x(0), result = back ? s.x(0) : s.y();
  const std::vector<int64_t> ks = s.sizes(s.x(1)), xs = s.sizes(s.x(0));
  const int64_t groups = s.node().i("group", 1);
  if (groups < 2 || ks.size() < 3 || xs.size() != ks.size() || ks[0] != groups || ks[1] != 1)
    return {};
  if (xs[1] != groups || (back && s.node().s("auto_pad", "NOTSET") != "NOTSET")) return {};
  Windows w;
  if (!windows_of(s, s.node(), image, result, {ks.begin() + 2, ks.end()}, w)) return {};
  if (!small_images(s, w, s.x(0))) return {};
  const int64_t pixels = num_elements(w.in), places = num_elements(w.out);
  const ValueId all = s.call("MatMul", {s.reshape(s.x(1), {groups, w.taps()}), placement(s, w)});
  const ValueId matrix = s.reshape(all, {groups, pixels, places});
  const ValueId x = by_channel(s, s.x(0), groups, back ? places : pixels);
  ValueId y = s.call("MatMul", {x, back ? s.transpose(matrix, {0, 2, 1}) : matrix});
  y = s.reshape(s.transpose(y, {1, 0, 2}), joined({-1, groups}, back ? w.in : w.out));
  if (s.has(2)) {
    std::vector<int64_t> shape(ks.size() - 1, 1);
    shape[0] = groups;
    y = s.add(y, s.reshape(s.x(2), shape));
  }
  return {y};
}

}  // namespace onnxtrain::portable
