// cnn, resnet: images [channels, height, width] and series [channels, length].
#include <algorithm>

#include "convert/networks/layers.hpp"

namespace onnxtrain {

namespace {

int64_t smallest_side(const Shape& row) { return *std::min_element(row.begin() + 1, row.end()); }

ValueId conv_norm(Layers& l, ValueId x, const std::string& name, int64_t in, int64_t out,
                  int64_t kernel, int64_t stride, int64_t dims) {
  return l.batch_norm(l.conv(x, name, in, out, kernel, stride, dims), name + ".norm", out);
}

// Two convolutions per stage, half the size after each, until little is left.
ValueId cnn(Layers& l, ValueId x, const NetworkSpec& spec, std::vector<int64_t> sizes,
            int64_t& channels) {
  const auto dims = int64_t(spec.row.size()) - 1;
  int64_t side = smallest_side(spec.row);
  if (sizes.empty()) {
    for (int64_t s = side, c = 32; s >= 4 && sizes.size() < 4; s /= 2, c *= 2) sizes.push_back(c);
    if (sizes.empty()) sizes = {32};
  }
  channels = spec.row[0];
  int stage = 0;
  for (const int64_t out : sizes) {
    const std::string name = "stage" + std::to_string(++stage);
    for (int k = 1; k <= 2; ++k) {
      const std::string conv = name + ".conv" + std::to_string(k);
      x = l.relu(conv_norm(l, x, conv, channels, out, 3, 1, dims), conv + ".relu");
      channels = out;
    }
    if (side >= 2) {
      const std::vector<int64_t> two(size_t(dims), 2);
      x = l.node("MaxPool", {x}, name + ".pool", {{"kernel_shape", two}, {"strides", two}});
      side /= 2;
    }
  }
  return x;
}

// Two 3x3 convolutions around a shortcut; a 1x1 convolution where sizes differ.
ValueId residual_block(Layers& l, ValueId x, const std::string& name, int64_t in, int64_t out,
                       int64_t stride, int64_t dims) {
  ValueId y = l.relu(conv_norm(l, x, name + ".conv1", in, out, 3, stride, dims), name + ".relu1");
  y = conv_norm(l, y, name + ".conv2", out, out, 3, 1, dims);
  if (in != out || stride != 1) x = conv_norm(l, x, name + ".shortcut", in, out, 1, stride, dims);
  return l.relu(l.node("Add", {y, x}, name + ".add"), name + ".relu2");
}

ValueId resnet(Layers& l, ValueId x, const NetworkSpec& spec, std::vector<int64_t> sizes,
               int64_t& channels) {
  const auto dims = int64_t(spec.row.size()) - 1;
  if (sizes.empty()) sizes = {16, 32, 64};
  const bool large = smallest_side(spec.row) >= 96;
  channels = sizes[0];
  x = conv_norm(l, x, "stem", spec.row[0], channels, large ? 7 : 3, large ? 2 : 1, dims);
  x = l.relu(x, "stem.relu");
  int64_t side = smallest_side(spec.row) / (large ? 2 : 1);
  int stage = 0;
  for (const int64_t out : sizes) {
    const std::string name = "stage" + std::to_string(++stage);
    const int64_t stride = (stage > 1 || large) && side >= 4 ? 2 : 1;
    side /= stride;
    x = residual_block(l, x, name + ".block1", channels, out, stride, dims);
    x = residual_block(l, x, name + ".block2", out, out, 1, dims);
    channels = out;
  }
  return x;
}

}  // namespace

void build_image(Layers& l, ValueId x, const NetworkSpec& spec) {
  if (spec.row.size() < 2 || spec.row.size() > 3 || spec.vocabulary > 0)
    unsuitable(spec, "images [channels, height, width] or series [channels, length]",
               "onnxtrain new mlp takes any row");
  int64_t channels = 0;
  x = spec.kind == "cnn" ? cnn(l, x, spec, spec.hidden, channels)
                         : resnet(l, x, spec, spec.hidden, channels);
  x = l.node("GlobalAveragePool", {x}, "pool");
  x = l.node("Flatten", {x}, "flatten", {{"axis", int64_t(1)}});
  l.head(l.dropout(x, "dropout", spec.dropout), channels, spec);
}

}  // namespace onnxtrain
