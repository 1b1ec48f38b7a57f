// Rprop against PyTorch 2.13 and its function body, and in a prepared model.
#include "tests/support/prepared_optimizer.hpp"

namespace onnxtrain {
namespace {

using testing::check_optimizer;

TEST(Rprop, IsTorchsAndItsBody) {
  check_optimizer(
      {.op = "Rprop",
       .lr = 0.01,
       .settings = {{"eta_minus", 0.5}, {"eta_plus", 1.2}, {"step_min", 1e-6}, {"step_max", 50}},
       .states = 2,
       .counts = false,
       .firsts = {0, 0.01f},
       .rated = false},
      {0.4648, -0.9648, 1.9648, 0.135200009, -0.0351999998});
  check_optimizer(
      {.op = "Rprop",
       .lr = 0.05,
       .settings = {{"eta_minus", 0.4}, {"eta_plus", 1.5}, {"step_min", 0.03}, {"step_max", 0.06}},
       .states = 2,
       .counts = false,
       .firsts = {0, 0.05f},
       .rated = false},
      {0.314999998, -0.814999998, 1.81500018, 0.284999996, -0.185000002});
}

TEST(Rprop, InAPreparedModel) {
  testing::check_prepared(R"("kind": "rprop", "lr": 0.05, "etas": [0.4, 1.5],
                             "step_sizes": [0.03, 0.06])",
                          {0.314999998, -0.814999998, 1.81500018, 0.284999996, -0.185000002},
                          {"w.prev", "w.step_size"});
}

}  // namespace
}  // namespace onnxtrain
