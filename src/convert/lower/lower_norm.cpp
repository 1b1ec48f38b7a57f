// BatchNormalization in training mode, spelled out. The operator itself is standard, but runtimes
// may write its new statistics over the old ones, which the same step still reads.
#include "convert/lower.hpp"
#include "convert/step/step_builder.hpp"

namespace onnxtrain {

bool is_training_norm(const Node& n) {
  if (!n.is("BatchNormalization")) return false;
  if (n.version >= 14) return n.i("training_mode", 0) != 0;
  return n.version >= 7 && n.outputs.size() > 1;
}

std::vector<ValueId> lower_training_norm(GradBuilder& b) {
  const Node& node = b.node();
  ValueId in = b.x(0), x = in;
  DType type = b.dtype(in);
  bool half = type == DType::kFloat16 || type == DType::kBFloat16;
  auto cast = [&](ValueId v, DType to) {
    return b.dtype(v) == to ? v : b.call("Cast", {v}, {{"to", int64_t(to)}});
  };
  DType wide = half ? DType::kFloat : type;
  x = cast(x, wide);
  std::vector<int64_t> axes = {0}, lead;
  int64_t rank = b.need_rank(in);
  for (int64_t d = 2; d < rank; ++d) axes.push_back(d), lead.push_back(d - 1);
  auto channels = [&](ValueId v) {
    v = cast(v, wide);
    return lead.empty() ? v : b.unsqueeze(v, lead);
  };
  ValueId n = b.div(cast(b.call("Size", {x}), wide), cast(b.call("Size", {b.x(1)}), wide));
  ValueId mean = b.div(b.reduce_sum(x, axes), n), centred = b.sub(x, mean);
  ValueId var = b.div(b.reduce_sum(b.mul(centred, centred), axes), n);
  double epsilon = double(node.f("epsilon", 1e-5f)), keep = double(node.f("momentum", 0.9f));
  ValueId deviation = b.call("Sqrt", {b.add(var, b.scalar(epsilon, wide))});
  ValueId y = b.mul(b.div(centred, deviation), channels(b.x(1)));
  y = cast(b.add(y, channels(b.x(2))), type);
  std::vector<ValueId> out = {y}, batch = {mean, var};
  for (ValueId& v : batch) v = b.reshape_like(v, b.x(1));
  for (int k = 0; k < 2; ++k) {
    ValueId old = b.x(3 + k), fresh = cast(batch[size_t(k)], b.dtype(old));
    out.push_back(b.add(b.mul(old, b.scalar(keep, old)), b.mul(fresh, b.scalar(1 - keep, old))));
  }
  for (size_t k = 3; k < node.outputs.size(); ++k) out.push_back(batch[k - 3]);
  return out;
}

}  // namespace onnxtrain
