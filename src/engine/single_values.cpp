#include "engine/single_values.hpp"

#include "core/error.hpp"
#include "core/shell.hpp"
#include "distributed/rows.hpp"

namespace onnxtrain {

void refuse_single_values(const Graph& g) {
  std::string first, names;
  for (const Node& n : g.nodes) {
    if (!uses_batch_statistics(n) || n.inputs.size() < 3) continue;
    const TypeInfo& x = g.value(n.inputs[0]).type;
    if (!x.concrete()) continue;
    const Shape shape = x.concrete_shape();
    if (shape.size() < 2) continue;
    int64_t each = 1;
    for (size_t d = 0; d < shape.size(); ++d)
      if (d != 1) each *= shape[d];
    if (each != 1) continue;
    if (first.empty())
      first = cat(n.label(), " would train on one value per channel: its input is ",
                  to_string(shape), ", and the variance of one value is 0");
    for (size_t k : {1, 2}) names += " " + shell_word(g.value_name(n.inputs[k]));
  }
  if (!first.empty())
    model_error("OT1286", first,
                cat("use a larger batch, such that no batch has a single row, or keep such layers "
                    "as they are:  --freeze",
                    names));
}

}  // namespace onnxtrain
