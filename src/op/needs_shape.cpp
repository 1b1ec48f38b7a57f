// The one place where a rule that was left half way becomes a value. Rules are nested as deep as
// the expressions that they build, so they are left by an exception of this file's own.
#include "op/needs_shape.hpp"

namespace onnxtrain {

namespace {

class LeftRule : public Error {
 public:
  explicit LeftRule(Error why) : Error(std::move(why)) {}
};

}  // namespace

void needs_shape(std::string code, std::string message, std::string hint) {
  throw LeftRule(Error(ErrorKind::kModel, std::move(code), std::move(message), std::move(hint)));
}

void needs_shape(NeedsShape what) { throw LeftRule(std::move(what.why)); }

std::optional<NeedsShape> apply_rules(const std::function<void()>& rules) {
  try {
    rules();
  } catch (LeftRule& e) {
    return NeedsShape{std::move(e)};
  }
  return std::nullopt;
}

}  // namespace onnxtrain
