// linear, mlp: every number of a row feeds every unit.
#include "convert/networks/layers.hpp"
#include "core/shape.hpp"

namespace onnxtrain {

namespace {
// Two layers: wide enough for the row, never larger than a small network needs.
std::vector<int64_t> hidden_of(int64_t width) {
  int64_t first = 64;
  while (first < 4 * width && first < 256) first *= 2;
  return {first, first / 2};
}
}  // namespace

void build_dense(Layers& l, ValueId x, const NetworkSpec& spec) {
  int64_t width = num_elements(spec.row);
  if (spec.vocabulary > 0) {
    constexpr int64_t kVector = 16;
    x = l.embedding(x, "embedding", spec.vocabulary, kVector);
    width *= kVector;
  }
  if (spec.row.size() != 1 || spec.vocabulary > 0)
    x = l.node("Flatten", {x}, "flatten", {{"axis", int64_t(1)}});
  if (spec.kind == "mlp") {
    const std::vector<int64_t> sizes = spec.hidden.empty() ? hidden_of(width) : spec.hidden;
    int layer = 0;
    for (const int64_t size : sizes) {
      const std::string name = "layer" + std::to_string(++layer);
      x = l.relu(l.dense(x, name, width, size, 2), name + ".relu");
      x = l.dropout(x, name + ".dropout", spec.dropout);
      width = size;
    }
  }
  l.head(x, width, spec);
}

}  // namespace onnxtrain
