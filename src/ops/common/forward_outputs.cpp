// Adds optional outputs to forward nodes.
#include "ops/common/forward_outputs.hpp"

#include <algorithm>

namespace onnxtrain::ops {

ValueId ensure_output(GradBuilder& b, int k, const TypeInfo& type, std::string_view hint) {
  Graph& g = b.graph();
  // rules work on a copy of the node: find it by what it makes
  ValueId any = kNone;
  for (ValueId v : b.node().outputs)
    if (v != kNone) any = v;
  for (Node& f : g.nodes) {
    if (std::find(f.outputs.begin(), f.outputs.end(), any) == f.outputs.end()) continue;
    if (int(f.outputs.size()) > k && f.outputs[size_t(k)] != kNone) return f.outputs[size_t(k)];
    ValueId v = g.add_value(g.unique_name(cat(f.name, "_", hint)), type);
    if (int(f.outputs.size()) <= k) f.outputs.resize(size_t(k) + 1, kNone);
    f.outputs[size_t(k)] = v;
    g.value(v).producer = g.value(any).producer;
    return v;
  }
  model_error("OT1204", cat(b.node().op, " is not in the graph that is differentiated"));
}

}  // namespace onnxtrain::ops
