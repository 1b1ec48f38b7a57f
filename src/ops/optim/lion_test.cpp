// Lion against its function body.
#include "tests/support/optimizer_case.hpp"

namespace onnxtrain {
namespace {

using testing::check_optimizer;

TEST(Lion, EqualsItsBody) {
  check_optimizer({"Lion", 0.01, {{"beta1", 0.9}, {"beta2", 0.99}, {"decay", 0.1}}, 1, false}, {});
}

}  // namespace
}  // namespace onnxtrain
