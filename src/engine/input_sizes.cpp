#include "engine/input_sizes.hpp"

#include <map>
#include <string>
#include <utility>

namespace onnxtrain {

void blame_inputs(const Graph& g, const std::vector<Value>& inputs, const Error& e) {
  if (e.kind() != ErrorKind::kModel) return;
  std::map<std::string, std::pair<int64_t, std::string>> seen;  // symbol -> size, input
  for (size_t k = 0; k < inputs.size(); ++k) {
    const ValueDef& d = g.value(g.inputs[k]);
    const Tensor* t = std::get_if<Tensor>(&inputs[k]);
    if (!t || !d.type.is_tensor() || !d.type.shape || d.type.shape->size() != t->shape().size())
      continue;
    for (size_t i = 0; i < t->shape().size(); ++i) {
      const Dim& dim = (*d.type.shape)[i];
      if (dim.known() || dim.symbol.empty()) continue;
      auto [it, fresh] = seen.try_emplace(dim.symbol, t->shape()[i], d.name);
      if (fresh || it->second.first == t->shape()[i]) continue;
      data_error("OT2165",
                 cat("'", it->second.second, "' and '", d.name,
                     "' have different sizes: ", it->second.first, " and ", t->shape()[i],
                     " (dimension '", dim.symbol, "' of both)\n  ", e.message()),
                 "give as many rows of one as of the other");
    }
  }
}

}  // namespace onnxtrain
