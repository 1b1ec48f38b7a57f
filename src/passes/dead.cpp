// Removes nodes that nothing needs.
#include "passes/passes.hpp"

namespace onnxtrain {

void pass_dead(Graph& g, const PassContext& c) { g.remove_dead(c.keep); }

}  // namespace onnxtrain
