// Initial values.
#include "convert/reset.hpp"

namespace onnxtrain {

void add_reset(Model&, const std::vector<std::string>&, uint64_t, const OpTable&) {
  usage_error("OT1299", "reset is not written yet");
}

}  // namespace onnxtrain
