// Adagrad by Keras' formula against its function body.
#include "tests/support/optimizer_case.hpp"

namespace onnxtrain {
namespace {

using testing::check_optimizer;

TEST(AdagradKeras, EqualsItsBody) {
  check_optimizer({"AdagradKeras", 0.01, {{"epsilon", 1e-7}, {"decay", 0.1}}, 1, false, 0.1f}, {});
}

}  // namespace
}  // namespace onnxtrain
