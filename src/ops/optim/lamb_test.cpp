// Lamb against its function body.
#include "tests/support/optimizer_case.hpp"

namespace onnxtrain {
namespace {

using testing::check_optimizer;

TEST(Lamb, EqualsItsBody) {
  check_optimizer({"Lamb",
                   0.01,
                   {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-7}, {"decay", 0.1}},
                   2,
                   true},
                  {});
}

}  // namespace
}  // namespace onnxtrain
