// Adagrad by Keras' formula and PyTorch's in float64 settings against function bodies and
// PyTorch 2.13.
#include "tests/support/optimizer_case.hpp"

namespace onnxtrain {
namespace {

using testing::check_optimizer;

TEST(AdagradKeras, EqualsItsBody) {
  check_optimizer({"AdagradKeras", 0.01, {{"epsilon", 1e-7}, {"decay", 0.1}}, 1, false, 0.1f}, {});
}

TEST(Adagrad, IsTorchsAndItsBody) {
  check_optimizer({"Adagrad", 0.1, {{"lr_decay", 0}, {"epsilon", 1e-6}, {"decay", 0.1}}, 1, true},
                  {0.374184132, -0.846253276, 1.81249189, 0.258944929, -0.1710044});
}

}  // namespace
}  // namespace onnxtrain
