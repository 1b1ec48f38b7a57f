// RMSprop in all forms against PyTorch 2.13 and their function bodies.
#include "tests/support/optimizer_case.hpp"

namespace onnxtrain {
namespace {

using testing::check_optimizer;
using testing::OptimizerNumbers;

TEST(RMSprop, IsTorchsAndItsBody) {
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

TEST(RMSprop, KerasFormsEqualTheirBodies) {
  OptimizerNumbers s = {{"alpha", 0.9}, {"epsilon", 1e-7}, {"momentum", 0.5}, {"decay", 0.1}};
  check_optimizer({"RMSpropKeras", 0.01, s, 1, false}, {});
  check_optimizer({"RMSpropKerasMomentum", 0.01, s, 2, false}, {});
  check_optimizer({"RMSpropKerasCentered", 0.01, s, 2, false}, {});
  check_optimizer({"RMSpropKerasCenteredMomentum", 0.01, s, 3, false}, {});
}

}  // namespace
}  // namespace onnxtrain
