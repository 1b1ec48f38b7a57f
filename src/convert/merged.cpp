// Initializers that an exporter merged because their values were equal.
#include <cstring>

#include "convert/twin.hpp"

namespace onnxtrain {

namespace {

bool all_equal(const Tensor& t) {
  size_t size = dtype_size(t.dtype());
  const char* p = static_cast<const char*>(t.data());
  for (int64_t k = 1; k < t.size(); ++k)
    if (std::memcmp(p, p + size_t(k) * size, size) != 0) return false;
  return t.size() > 0;
}

}  // namespace

bool separate_merged_initializers(Model& m) {
  std::vector<char> statistics = running_statistics(m.main);
  std::vector<size_t> found;
  for (size_t k = 0; k < m.main.nodes.size(); ++k) {
    const Node& n = m.main.nodes[k];
    if (!n.is("Identity")) continue;
    const ValueDef& d = m.main.value(n.inputs[0]);
    if (!d.initializer || !d.constant.defined() || !dtype_is_differentiable(d.constant.dtype()))
      continue;
    bool statistic = statistics[size_t(n.outputs[0])] || statistics[size_t(n.inputs[0])];
    if (statistic || (d.constant.rank() >= 1 && all_equal(d.constant))) found.push_back(k);
  }
  if (found.empty()) return false;
  for (size_t k : found) {
    const Node& n = m.main.nodes[k];
    const Tensor value = m.main.value(n.inputs[0]).constant.clone();
    ValueDef& d = m.main.value(n.outputs[0]);
    d.constant = value;
    d.initializer = true;
    d.type = TypeInfo::tensor(value.dtype(), value.shape());
  }
  std::vector<Node> kept;
  for (size_t k = 0, f = 0; k < m.main.nodes.size(); ++k) {
    if (f < found.size() && found[f] == k)
      ++f;
    else
      kept.push_back(std::move(m.main.nodes[k]));
  }
  m.main.nodes = std::move(kept);
  m.main.renumber();
  m.main_generated = true;
  return true;
}

}  // namespace onnxtrain
