// MaxPool and its gradient as ONNX Runtime runs them fastest: with Indices it is 2 to 20 times as
// slow as without.
#include <algorithm>

#include "convert/portable/stages.hpp"
#include "convert/portable/windows.hpp"

namespace onnxtrain::portable {

namespace {

constexpr int64_t kManyPixels = 8192;  // from here on Indices are slower
constexpr int64_t kLikelyRows = 32;    // of an open batch

bool same_windows(const Node& a, const Node& b) {
  for (const char* key : {"kernel_shape", "strides", "pads", "dilations"})
    if (a.ints(key) != b.ints(key)) return false;
  for (const char* key : {"ceil_mode", "storage_order"})
    if (a.i(key, 0) != b.i(key, 0)) return false;
  return a.s("auto_pad", "NOTSET") == b.s("auto_pad", "NOTSET");
}

// 4 at the first of the four pixels of a window, 1 at the last.
ValueId order_in_window(Site& s, int64_t height, int64_t width) {
  Tensor t(DType::kFloat, {height, width});
  for (int64_t i = 0; i < height; ++i)
    for (int64_t j = 0; j < width; ++j) t.as<float>()[i * width + j] = float(4 - i % 2 * 2 - j % 2);
  return s.tensor(t);
}

ValueId doubled(Site& s, ValueId v) {
  Tensor scales(DType::kFloat, {4});
  std::copy_n(std::initializer_list<float>{1, 1, 2, 2}.begin(), 4, scales.as<float>());
  return s.call("Resize", {v, kNone, s.tensor(scales)},
                {{"mode", std::string("nearest")},
                 {"nearest_mode", std::string("floor")},
                 {"coordinate_transformation_mode", std::string("asymmetric")}});
}

}  // namespace

ValueId halving_pool_gradient(Site& s, const Node& pool, ValueId dy) {
  const ValueId x = pool.inputs[0];
  const std::vector<int64_t> sizes = s.sizes(x), two{2, 2};
  Windows w;
  if (sizes.size() != 4 || sizes[1] < 0 || s.dtype(x) != DType::kFloat) return kNone;
  if (!windows_of(s, pool, x, pool.outputs[1], pool.ints("kernel_shape"), w)) return kNone;
  if (w.kernel != two || w.strides != two || w.dilations != std::vector<int64_t>{1, 1})
    return kNone;
  for (size_t d = 0; d < 2; ++d)
    if (w.begin[d] != 0 || w.in[d] != 2 * w.out[d]) return kNone;
  if ((sizes[0] < 0 ? kLikelyRows : sizes[0]) * sizes[1] * sizes[2] * sizes[3] < kManyPixels)
    return kNone;
  const GradBuilder::Attrs attrs = pool.attrs;
  auto largest = [&](ValueId v) { return s.call("MaxPool", {v}, attrs); };
  const ValueId hit = s.call("Equal", {x, doubled(s, largest(x))});
  const ValueId order = s.mul(s.call("Cast", {hit}, {{"to", int64_t(DType::kFloat)}}),
                              order_in_window(s, sizes[2], sizes[3]));
  const ValueId first = s.call("Equal", {order, doubled(s, largest(order))});
  return s.mul(s.call("Cast", {first}, {{"to", int64_t(DType::kFloat)}}), doubled(s, dy));
}

void share_pools(Graph& g) {
  g.renumber();
  auto is_output = [&](ValueId v) {
    return std::find(g.outputs.begin(), g.outputs.end(), v) != g.outputs.end();
  };
  for (size_t k = 0; k < g.nodes.size(); ++k) {
    for (size_t j = k + 1; j < g.nodes.size(); ++j) {
      Node &one = g.nodes[k], &two = g.nodes[j];
      if (!one.is("MaxPool") || !two.is("MaxPool") || two.inputs != one.inputs) continue;
      if (!same_windows(one, two) || one.outputs.size() > 1) continue;
      const ValueId values = two.outputs[0];
      if (values == kNone || one.outputs[0] == kNone || is_output(values)) continue;
      if (two.outputs.size() > 1) {
        one.outputs.push_back(two.outputs[1]);
        two.outputs = {values};
      }
      g.replace_uses(values, one.outputs[0]);  // nobody reads the second node now
    }
  }
  g.remove_dead();
  g.renumber();
}

}  // namespace onnxtrain::portable
