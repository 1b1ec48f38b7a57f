// RoiAlign in standard operators. Bilinear taps are products of a weight down and a weight across,
// so the mean over the samples of a bin is (weights down) * image * (weights across).
#include "ops/image/roi_lower.hpp"

#include "op/needs_shape.hpp"

namespace onnxtrain::ops {

namespace {

// One direction of the sampling points.
struct Line {
  ValueId at;     // [regions, bins, samples]: places between 0 and the last pixel
  ValueId used;   // the same shape: 1 for samples that exist and lie in the image, 0 for others
  ValueId count;  // [regions, 1, 1]: samples per bin, at least 1
  ValueId real;   // [regions, 1, samples]: does the sample exist?
  int64_t bins, size;
};

class Align {
 public:
  Align(GradBuilder& b, const Node& n, ValueId x, ValueId rois, ValueId index)
      : b_(b), type_(b.dtype(x)), rois_(rois), index_(index) {
    Shape image = {1, 1, 1, 1}, regions = {1, 4};
    for (size_t d = 2; d < 4; ++d) image[d] = size_of(x, d);
    s_ = roi_shape(n, 16, image, regions);
  }

  // The pool of z where maxima are those of x.
  ValueId pool(ValueId z, ValueId x) {
    Line down = line(1, 3, s_.out_h, s_.height), across = line(0, 2, s_.out_w, s_.width);
    if (s_.is_max) return best(z, x, down, across);
    ValueId left = b_.unsqueeze(weights(down), {1}), right = b_.unsqueeze(weights(across), {1});
    ValueId half = b_.call("MatMul", {left, images(z)});
    return b_.call("MatMul", {half, b_.transpose(right, {0, 1, 3, 2})});
  }

 private:
  ValueId num(double v) { return b_.scalar(v, type_); }
  ValueId images(ValueId v) { return b_.call("Gather", {v, index_}, {{"axis", int64_t(0)}}); }
  int64_t size_of(ValueId x, size_t d) {
    const TypeInfo& t = b_.type(x);
    if (!t.is_tensor() || !t.shape || t.shape->size() != 4 || !(*t.shape)[d].known())
      needs_shape("OT1206", cat("the gradient of ", b_.node().label(),
                                " in standard operators needs the height and width of the image"));
    return (*t.shape)[d].value;
  }
  // Column k of the regions in pixels, [regions, 1, 1].
  ValueId edge(int64_t k) {
    ValueId v = b_.call("Gather", {rois_, b_.constant_ints({k})}, {{"axis", int64_t(1)}});
    v = b_.mul(v, num(double(s_.scale)));
    if (s_.half_pixel) v = b_.sub(v, num(0.5));
    return b_.unsqueeze(v, {2});
  }
  ValueId flag(ValueId cond) { return b_.call("Cast", {cond}, {{"to", int64_t(type_)}}); }
  // 0, 1, ... in the element type, [1, n, 1] or [1, 1, n].
  ValueId numbers(int64_t n, bool last) {
    std::vector<double> v;
    for (int64_t k = 0; k < n; ++k) v.push_back(double(k));
    Tensor t = Tensor::vector<double>(v).reshaped(last ? Shape{1, 1, n} : Shape{1, n, 1});
    return b_.call("Cast", {b_.tensor(t)}, {{"to", int64_t(type_)}});
  }

  Line line(int64_t from, int64_t to, int64_t bins, int64_t size) {
    ValueId start = edge(from), length = b_.sub(edge(to), start);
    if (!s_.half_pixel) length = b_.call("Max", {length, num(1)});
    ValueId bin = b_.div(length, num(double(bins)));
    ValueId grid, k;  // how many samples; which
    if (s_.sampling > 0) {
      grid = num(double(s_.sampling));
      k = numbers(s_.sampling, true);
    } else {
      grid = b_.call("Ceil", {b_.own("Detach", {bin})});
      grid = b_.call("Max", {b_.call("Min", {grid, num(double(4 * size + 64))}), num(0)});
      ValueId whole = b_.call("Cast", {grid}, {{"to", int64_t(DType::kInt64)}});
      ValueId most = b_.call("ReduceMax", {whole}, {{"keepdims", int64_t(0)}});
      k = b_.call("Range", {b_.constant_int(0), most, b_.constant_int(1)});
      k = b_.unsqueeze(b_.call("Cast", {k}, {{"to", int64_t(type_)}}), {0, 1});
    }
    Line l;
    l.bins = bins, l.size = size;
    l.count = b_.call("Max", {grid, num(1)});
    l.real = b_.call("Less", {k, grid});
    ValueId share = b_.div(b_.add(k, num(0.5)), l.count);
    ValueId place = b_.add(start, b_.mul(bin, b_.add(numbers(bins, false), share)));
    ValueId fixed = b_.own("Detach", {place});
    ValueId inside = b_.call("And", {b_.call("GreaterOrEqual", {fixed, num(-1)}),
                                     b_.call("LessOrEqual", {fixed, num(double(size))})});
    l.used = b_.mul(flag(inside), flag(l.real));
    l.at = b_.call("Min", {b_.call("Max", {place, num(0)}), num(double(size - 1))});
    return l;
  }

  // What each pixel counts in the mean of a bin, [regions, bins, size].
  ValueId weights(const Line& l) {
    ValueId pixel = b_.unsqueeze(numbers(l.size, true), {0});  // [1, 1, 1, size]
    ValueId apart = b_.call("Abs", {b_.sub(b_.unsqueeze(l.at, {3}), pixel)});
    ValueId tap = b_.call("Relu", {b_.sub(num(1), apart)});
    ValueId sum = b_.reduce_sum(b_.mul(tap, b_.unsqueeze(l.used, {3})), {2}, false);
    return b_.div(sum, l.count);
  }

  // Both taps of every sample, [regions, bins * samples * 2]: the pixel, its weight, is it real?
  struct Taps {
    ValueId pixel, weight, real;
  };
  Taps taps(const Line& l) {
    ValueId low = b_.call("Floor", {l.at}), part = b_.sub(l.at, low);
    ValueId high = b_.call("Min", {b_.add(low, num(1)), num(double(l.size - 1))});
    auto both = [&](ValueId v, ValueId w) {
      ValueId pair =
          b_.call("Concat", {b_.unsqueeze(v, {3}), b_.unsqueeze(w, {3})}, {{"axis", int64_t(3)}});
      return b_.call("Reshape", {pair, b_.constant_ints({0, -1})});
    };
    ValueId real = b_.add(flag(l.real), b_.mul(l.at, num(0)));
    ValueId index = b_.call("Cast", {both(low, high)}, {{"to", int64_t(DType::kInt64)}});
    return {index, both(b_.mul(b_.sub(num(1), part), l.used), b_.mul(part, l.used)),
            both(real, real)};
  }

  // The weighted pixels of every bin, [regions, channels, bins down, bins across, taps].
  ValueId tapped(ValueId v, const Line& down, const Line& across, const Taps& y, const Taps& x) {
    ValueId rows =
        b_.call("GatherND", {b_.transpose(images(v), {0, 2, 3, 1}), b_.unsqueeze(y.pixel, {2})},
                {{"batch_dims", int64_t(1)}});  // [r, ny, w, c]
    ValueId all =
        b_.call("GatherND", {b_.transpose(rows, {0, 2, 1, 3}), b_.unsqueeze(x.pixel, {2})},
                {{"batch_dims", int64_t(1)}});  // [r, nx, ny, c]
    ValueId weight = b_.mul(b_.unsqueeze(x.weight, {2, 3}), b_.unsqueeze(y.weight, {1, 3}));
    return by_bin(b_.mul(all, weight), down, across);
  }
  // [r, bins across * n, bins down * m, c] -> [r, c, bins down, bins across, n * m]
  ValueId by_bin(ValueId v, const Line& down, const Line& across) {
    if (b_.shape_known(v)) {
      Shape at = b_.shape(v);
      int64_t n = at[1] / across.bins, m = at[2] / down.bins;
      ValueId wide = b_.constant_ints({at[0], across.bins, n, down.bins, m, at[3]});
      ValueId bins = b_.transpose(b_.call("Reshape", {v, wide}), {0, 5, 3, 1, 2, 4});
      Shape flat = {at[0], at[3], down.bins, across.bins, n * m};
      return b_.call("Reshape", {bins, b_.constant_ints(flat)});
    }
    ValueId shape = b_.call("Shape", {v});
    auto part = [&](int64_t k) { return b_.call("Gather", {shape, b_.constant_ints({k})}); };
    auto ints = [&](int64_t k) { return b_.constant_ints({k}); };
    ValueId n = b_.div(part(1), ints(across.bins)), m = b_.div(part(2), ints(down.bins));
    ValueId wide = b_.call("Concat", {part(0), ints(across.bins), n, ints(down.bins), m, part(3)},
                           {{"axis", int64_t(0)}});
    ValueId bins = b_.transpose(b_.call("Reshape", {v, wide}), {0, 5, 3, 1, 2, 4});
    ValueId flat =
        b_.call("Concat", {part(0), part(3), ints(down.bins), ints(across.bins), b_.mul(n, m)},
                {{"axis", int64_t(0)}});
    ValueId out = b_.call("Reshape", {bins, flat});
    return out;
  }

  ValueId best(ValueId z, ValueId x, const Line& down, const Line& across) {
    Taps ty = taps(down), tx = taps(across);
    ValueId of_x = tapped(x, down, across, ty, tx);
    ValueId real = b_.mul(b_.unsqueeze(tx.real, {2, 3}), b_.unsqueeze(ty.real, {1, 3}));
    real = b_.call("Greater", {by_bin(real, down, across), num(0.5)});
    ValueId most = b_.call("Where", {real, of_x, num(-1e30)});
    ValueId which = b_.call("ArgMax", {most}, {{"axis", int64_t(4)}, {"keepdims", int64_t(1)}});
    ValueId of_z = z == x ? of_x : tapped(z, down, across, ty, tx);
    ValueId found = b_.call("GatherElements", {of_z, which}, {{"axis", int64_t(4)}});
    return b_.squeeze(found, {4});
  }

  GradBuilder& b_;
  DType type_;
  ValueId rois_, index_;
  RoiShape s_;
};

// Element types of new nodes whose shapes are not known before the run.
void settle_elements(Graph& g, size_t first) {
  for (size_t k = first; k < g.nodes.size(); ++k) {
    const Node& n = g.nodes[k];
    TypeInfo& t = g.value(n.outputs[0]).type;
    if (t.is_tensor() && t.elem != DType::kUndefined) continue;
    bool compares = n.op == "Less" || n.op == "Greater" || n.op == "And" ||
                    n.op == "GreaterOrEqual" || n.op == "LessOrEqual";
    DType elem = n.op == "Cast" ? DType(n.i("to", 1))
                 : compares     ? DType::kBool
                 : n.op == "Shape" || n.op == "ArgMax"
                     ? DType::kInt64
                     : g.value(n.inputs[n.op == "Where"]).type.elem;
    t = TypeInfo::tensor(elem);
  }
}

// The gradients of <dy, pool of z> with respect to z and the regions, which are values that only
// this computation reads.
std::vector<ValueId> gradients(GradBuilder& b, ValueId dy, ValueId z, ValueId x, ValueId rois,
                               ValueId index) {
  size_t before = b.graph().nodes.size();
  ValueId y = Align(b, b.node(), x, rois, index).pool(z, x);
  settle_elements(b.graph(), before);
  std::vector<ValueId> g = b.differentiate(b.graph(), {y}, {dy}, {z, rois});
  if (g[0] == kNone) g[0] = b.zeros_like(z);
  if (g[1] == kNone) g[1] = b.zeros_like(rois);
  return g;
}

ValueId copy(GradBuilder& b, ValueId v) { return b.call("Identity", {v}); }

}  // namespace

std::vector<ValueId> roi_grad_form(GradBuilder& b) {
  if (b.node().i("sampling_ratio", 0) == 0)
    model_error("OT1247",
                cat("cannot lower the gradient of RoiAlign, ", b.node().label(),
                    ": without a sampling_ratio, how many points it needs depends on the "
                    "data"),
                "prepare the model without --lowered");
  ValueId x = b.x(1), z = copy(b, b.has(4) ? b.x(4) : x);
  return gradients(b, b.x(0), z, x, copy(b, b.x(2)), b.x(3));
}

std::vector<ValueId> roi_grad_of_grad_form(GradBuilder& b) {
  bool own_z = b.has(4);
  ValueId dy = copy(b, b.x(0)), x = b.x(1), z = copy(b, own_z ? b.x(4) : x), rois = copy(b, b.x(2));
  std::vector<ValueId> first = gradients(b, dy, z, x, rois, b.x(3));
  std::vector<ValueId> ys, cotangents;
  for (int k = 0; k < 2; ++k)
    if (b.has_dy(k)) ys.push_back(first[size_t(k)]), cotangents.push_back(b.dy(k));
  std::vector<ValueId> g = b.differentiate(b.graph(), ys, cotangents, {dy, z, rois});
  std::vector<ValueId> out(size_t(b.inputs()), kNone);
  out[0] = g[0];
  out[own_z ? 4 : 1] = g[1];
  out[2] = g[2];
  return out;
}

}  // namespace onnxtrain::ops
