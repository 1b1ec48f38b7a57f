// Lowering.
#include "convert/lower.hpp"

namespace onnxtrain {

Model lower(const Model&, const OpTable&) { usage_error("OT1299", "lowering is not written yet"); }

}  // namespace onnxtrain
