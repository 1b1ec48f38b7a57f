// The words of a step that was refused.
#include <cmath>

#include "engine/training.hpp"

namespace onnxtrain {

std::string NotFiniteError::history(double loss, double norm) {
  if (std::isnan(loss)) return "";
  return cat("; last finite loss ", loss, norm >= 0 ? cat(", gradient norm ", norm) : "");
}

NotFiniteError::NotFiniteError(std::string what, std::string where, uint64_t at, double loss,
                               double norm)
    : Error(ErrorKind::kDiverged, "OT3001",
            cat(what, " at step ", at, history(loss, norm), "\n  first bad tensor: ", where,
                ".   the state is as it was before this step"),
            "try a lower learning rate, or gradient clipping (clip_norm)"),
      subject(std::move(what)),
      origin(std::move(where)),
      step(at),
      last_loss(loss),
      last_norm(norm) {}

}  // namespace onnxtrain
