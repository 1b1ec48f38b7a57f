// The words of a step that was refused.
#include <cmath>

#include "engine/training.hpp"

namespace onnxtrain {

std::string NotFiniteError::history(double loss, double norm) {
  if (std::isnan(loss)) return "";
  return cat("; last finite loss ", loss, norm >= 0 ? cat(", gradient norm ", norm) : "");
}

std::string NotFiniteError::advice(uint64_t step, double last_loss) {
  if (step <= 1 && std::isnan(last_loss))
    return "no weight has changed yet: look at that operator and at the data it gets (the root of "
           "0, "
           "the logarithm of 0, a division by 0)";
  return "try a lower learning rate, or gradient clipping (clip_norm)";
}

NotFiniteError::NotFiniteError(std::string what, std::string where, uint64_t at, double loss,
                               double norm)
    : Error(ErrorKind::kDiverged, "OT3001",
            cat(what, " at step ", at, history(loss, norm), "\n  first bad tensor: ", where,
                ".   the state is as it was before this step"),
            where.find("', before the step") != std::string::npos
                ? std::string("that variable was NaN or infinite already: set it to numbers, or "
                              "load the file again")
                : advice(at, loss)),
      subject(std::move(what)),
      origin(std::move(where)),
      step(at),
      last_loss(loss),
      last_norm(norm) {}

}  // namespace onnxtrain
