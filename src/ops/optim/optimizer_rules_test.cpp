// Our optimizers against PyTorch 2.13 (five steps from the same weights and gradients), and each
// kernel against its function body in standard operators.
#include "tests/support/optimizer_case.hpp"

namespace onnxtrain {
namespace {

using testing::check_optimizer;
using testing::OptimizerNumbers;

TEST(Optimizers, AreTorchsAndTheirBodies) {
  check_optimizer({"Sgd", 0.1, {{"decay", 0.05}}, 0, false},
                  {0.379600137, -0.863707781, 1.83767247, 0.209376022, -0.108638473});
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
  check_optimizer({"RMSprop",
                   0.01,
                   {{"alpha", 0.99}, {"epsilon", 1e-8}, {"momentum", 0}, {"decay", 0.1}},
                   1,
                   false},
                  {0.373728603, -0.845637918, 1.81176293, 0.259525895, -0.171495497});
  check_optimizer({"RMSpropCentered",
                   0.01,
                   {{"alpha", 0.9}, {"epsilon", 1e-8}, {"momentum", 0}, {"decay", 0}},
                   2,
                   false},
                  {0.459853202, -0.953161478, 1.94669068, 0.158543944, -0.0616884902});
  check_optimizer({"RMSpropMomentum",
                   0.01,
                   {{"alpha", 0.99}, {"epsilon", 1e-8}, {"momentum", 0.9}, {"decay", 0}},
                   2,
                   false},
                  {0.121661745, -0.570168793, 1.51732957, 0.630323887, -0.566558599});
  check_optimizer({"RMSpropCenteredMomentum",
                   0.01,
                   {{"alpha", 0.9}, {"epsilon", 1e-8}, {"momentum", 0.9}, {"decay", 0.05}},
                   3,
                   false},
                  {0.365143687, -0.841242313, 1.81487477, 0.284935236, -0.197341636});
}

TEST(Optimizers, KernelsEqualBodies) {
  OptimizerNumbers adam = {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-7}, {"decay", 0.1}};
  OptimizerNumbers rms = {{"alpha", 0.9}, {"epsilon", 1e-7}, {"momentum", 0.5}, {"decay", 0.1}};
  check_optimizer({"AdamKeras", 0.01, adam, 2, true}, {});
  check_optimizer({"AdamKerasAms", 0.01, adam, 3, true}, {});
  check_optimizer({"Lamb", 0.01, adam, 2, true}, {});
  check_optimizer({"Lion", 0.01, {{"beta1", 0.9}, {"beta2", 0.99}, {"decay", 0.1}}, 1, false}, {});
  check_optimizer({"AdagradKeras", 0.01, {{"epsilon", 1e-7}, {"decay", 0.1}}, 1, false, 0.1f}, {});
  check_optimizer({"RMSpropKeras", 0.01, rms, 1, false}, {});
  check_optimizer({"RMSpropKerasMomentum", 0.01, rms, 2, false}, {});
  check_optimizer({"RMSpropKerasCentered", 0.01, rms, 2, false}, {});
  check_optimizer({"RMSpropKerasCenteredMomentum", 0.01, rms, 3, false}, {});
}

}  // namespace
}  // namespace onnxtrain
