#include "graph/reads.hpp"

namespace onnxtrain {

std::vector<char> values_read(const Graph& g) {
  std::vector<char> read(g.values.size(), 0);
  for (const Node& n : g.nodes)
    for (ValueId v : g.reads(n)) read[size_t(v)] = 1;
  return read;
}

std::vector<char> values_used(const Graph& g, const std::vector<ValueId>& keep) {
  std::vector<char> used = values_read(g);
  for (ValueId v : g.outputs) used[size_t(v)] = 1;
  for (ValueId v : keep) used[size_t(v)] = 1;
  return used;
}

}  // namespace onnxtrain
