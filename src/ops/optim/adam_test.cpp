// Adam and AdamW in all forms against PyTorch 2.13 and their function bodies.
#include "tests/support/optimizer_case.hpp"

namespace onnxtrain {
namespace {

using testing::check_optimizer;
using testing::OptimizerNumbers;

TEST(Adam, IsTorchsAndItsBody) {
  OptimizerNumbers s = {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"decay", 0.1}};
  check_optimizer({"Adam", 0.01, s, 2, true},
                  {0.475417882, -0.972448826, 1.96834397, 0.123709582, -0.023628084});
  check_optimizer({"AdamAms", 0.01, s, 3, true},
                  {0.475417882, -0.972448826, 1.96834397, 0.123709582, -0.023628084});
  check_optimizer({"AdamWAms", 0.01, s, 3, true},
                  {0.475163311, -0.971634209, 1.96599925, 0.123624273, -0.0236149523});
  check_optimizer({"AdamW",
                   0.01,
                   {{"beta1", 0.8}, {"beta2", 0.99}, {"epsilon", 1e-6}, {"decay", 0.1}},
                   2,
                   true},
                  {0.476527065, -0.972904682, 1.96715045, 0.122613586, -0.0227601789});
}

TEST(Adam, KerasFormsEqualTheirBodies) {
  OptimizerNumbers s = {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-7}, {"decay", 0.1}};
  check_optimizer({"AdamKeras", 0.01, s, 2, true}, {});
  check_optimizer({"AdamKerasAms", 0.01, s, 3, true}, {});
}

}  // namespace
}  // namespace onnxtrain
