// Adds optional outputs to forward nodes.
#include "ops/node_outputs_detail.hpp"

namespace onnxtrain::ops {

ValueId ensure_output(GradBuilder& b, int k, const TypeInfo& type, std::string_view hint) {
  Graph& g = b.graph();
  // rules work on a copy of the node: find it by what it makes
  for (Node& f : g.nodes) {
    if (f.outputs.empty() || f.outputs[0] == kNone || f.outputs[0] != b.y()) continue;
    if (int(f.outputs.size()) > k && f.outputs[size_t(k)] != kNone) return f.outputs[size_t(k)];
    ValueId v = g.add_value(g.unique_name(cat(f.name, "_", hint)), type);
    if (int(f.outputs.size()) <= k) f.outputs.resize(size_t(k) + 1, kNone);
    f.outputs[size_t(k)] = v;
    g.value(v).producer = g.value(b.y()).producer;
    return v;
  }
  model_error("OT1204", cat(b.node().op, " is not in the graph that is differentiated"));
}

}  // namespace onnxtrain::ops
