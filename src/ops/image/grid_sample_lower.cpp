// Coordinates, taps and weights one dimension at a time, then a gather for each combination.
#include "ops/image/grid_sample_lower.hpp"

#include "op/needs_shape.hpp"
#include "ops/common/expr.hpp"

namespace onnxtrain::ops {

namespace {

Expr floor(Expr x) { return x("Floor"); }

// Back into low..high by reflection at both ends.
Expr reflected(Expr x, double low, double high) {
  double range = high - low;
  if (!(range > 0)) return where(x > low, low, where(x < low, low, x));
  Expr below = x<low, outside = x> high;
  Expr d = where(below, low - x, x - high);
  Expr n = floor(d / range), r = d - n * range;
  Expr odd = n - floor(n / 2.0) * 2.0;  // 0 or 1
  Expr from_low = low + r, from_high = high - r;
  Expr even_result = where(below, from_low, from_high),
       odd_result = where(below, from_high, from_low);
  Expr back = where(odd > 0.5, odd_result, even_result);
  return where(below, back, where(outside, back, x));
}

struct Tap {
  Expr index, weight;
};

// The taps of one dimension: indices inside 0..size-1 (as floating-point numbers) and weights,
// which are zero where nothing is there.
std::vector<Tap> taps_of(const GridSettings& s, Expr c, double size) {
  double low = s.align ? 0 : -0.5, high = s.align ? size - 1 : size - 0.5;
  Expr x = s.align ? (c + 1.0) / 2.0 * (size - 1) : ((c + 1.0) * size - 1.0) / 2.0;
  if (s.mode == GridMode::kNearest) x = x("Round");
  if (s.padding == GridPadding::kBorder && s.mode != GridMode::kCubic)
    x = where(x < low, 0.0, where(x > high, size - 1, x));
  else if (s.padding == GridPadding::kReflection)
    x = reflected(x, low, high);
  Expr base = s.mode == GridMode::kNearest ? x : floor(x), t = x - base;
  std::vector<Expr> weights;
  double first = 0;
  if (s.mode == GridMode::kNearest) {
    weights = {t * 0.0 + 1.0};
  } else if (s.mode == GridMode::kLinear) {
    weights = {1.0 - t, t};
  } else {
    first = -1;
    double a = -0.75;
    auto near = [&](Expr v) { return ((a + 2) * v - (a + 3)) * v * v + 1.0; };
    auto far = [&](Expr v) { return ((a * v - 5 * a) * v + 8 * a) * v - 4 * a; };
    weights = {far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)};
  }
  std::vector<Tap> taps;
  for (size_t k = 0; k < weights.size(); ++k) {
    Expr i = base + (first + double(k)), w = weights[k];
    if (s.padding == GridPadding::kZeros)
      w = where(i < 0.0, 0.0, where(i > size - 1, 0.0, w));
    else if (s.padding == GridPadding::kReflection)
      i = reflected(i, low, high);
    i = where(i < 0.0, 0.0, where(i > size - 1, size - 1, i));
    taps.push_back({i, w});
  }
  return taps;
}

}  // namespace

ValueId grid_sample_standard(GradBuilder& b, const GridSettings& s, ValueId x, ValueId grid) {
  if (!b.shape_known(x) || !b.shape_known(grid))
    needs_shape("OT1206", "GridSample in standard operators needs known shapes");
  Shape xs = b.shape(x), gs = b.shape(grid);
  int64_t dims = int64_t(xs.size()) - 2, places = 1, plane = 1;
  for (size_t d = 1; d + 1 < gs.size(); ++d) places *= gs[d];
  for (size_t d = 2; d < xs.size(); ++d) plane *= xs[d];
  ValueId flat = b.call("Reshape", {x, b.constant_ints({xs[0], xs[1], plane})});
  ValueId points = b.call("Reshape", {grid, b.constant_ints({gs[0], places, dims})});
  std::vector<std::vector<Tap>> taps;
  for (int64_t d = 0; d < dims; ++d) {
    // the grid names the last dimension first
    ValueId c = b.call("Gather", {points, b.constant_int(dims - 1 - d)}, {{"axis", int64_t(2)}});
    taps.push_back(taps_of(s, Expr{b, c}, double(xs[size_t(d) + 2])));
  }
  size_t per = taps[0].size(), total = 1;
  for (int64_t d = 0; d < dims; ++d) total *= per;
  ValueId wide = b.constant_ints({xs[0], xs[1], places}), sum = kNone;
  for (size_t c = 0; c < total; ++c) {
    size_t rest = c;
    Expr at = taps[0][0].index, weight = at;
    double stride = 1;
    bool begun = false;
    for (int64_t d = dims; d-- > 0; rest /= per) {
      const Tap& tap = taps[size_t(d)][rest % per];
      at = begun ? at + tap.index * stride : tap.index * stride;
      weight = begun ? weight * tap.weight : tap.weight;
      begun = true;
      stride *= double(xs[size_t(d) + 2]);
    }
    ValueId index = b.call("Cast", {at.v}, {{"to", int64_t(DType::kInt64)}});
    index = b.call("Expand", {b.unsqueeze(index, {1}), wide});
    ValueId value = b.call("GatherElements", {flat, index}, {{"axis", int64_t(2)}});
    ValueId part = b.mul(value, b.unsqueeze(weight.v, {1}));
    sum = sum == kNone ? part : b.add(sum, part);
  }
  std::vector<int64_t> out{xs[0], xs[1]};
  out.insert(out.end(), gs.begin() + 1, gs.end() - 1);
  return b.call("Reshape", {sum, b.constant_ints(out)});
}

}  // namespace onnxtrain::ops
