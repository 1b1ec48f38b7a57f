// Sgd against PyTorch 2.13 and its function body.
#include "tests/support/optimizer_case.hpp"

namespace onnxtrain {
namespace {

using testing::check_optimizer;

TEST(Sgd, IsTorchsAndItsBody) {
  check_optimizer({"Sgd", 0.1, {{"decay", 0.05}}, 0, false},
                  {0.379600137, -0.863707781, 1.83767247, 0.209376022, -0.108638473});
}

TEST(Sgd, WithAMomentumThatChanges) {
  testing::OptimizerRule r{.op = "MomentumCycled",
                           .lr = 0.1,
                           .settings = {{"decay", 0.1}, {"dampening", 0}},
                           .states = 1,
                           .counts = true,
                           .momentum = 0.8f};
  check_optimizer(r, {0.204140782, -0.650347054, 1.54488456, 0.306247771, -0.20122695});
  r.op = "NesterovCycled";
  check_optimizer(r, {0.140069678, -0.569894612, 1.43708229, 0.365225166, -0.263365835});
}

}  // namespace
}  // namespace onnxtrain
