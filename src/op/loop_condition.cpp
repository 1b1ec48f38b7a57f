// Follows the condition of a Loop's body back to a constant or to its input.
#include "op/loop_condition.hpp"

namespace onnxtrain {

bool always_goes_on(const Graph& body) {
  ValueId v = body.outputs[0];
  for (size_t hops = 0; hops <= body.nodes.size(); ++hops) {
    const ValueDef& d = body.value(v);
    if (d.is_constant())
      return d.constant.dtype() == DType::kBool && d.constant.size() == 1 && *d.constant.as<bool>();
    if (v == body.inputs[1]) return true;
    NodeId p = body.producer_of(v);
    if (p < 0 || !body.nodes[size_t(p)].is("Identity")) return false;
    v = body.nodes[size_t(p)].inputs[0];
  }
  return false;
}

}  // namespace onnxtrain
