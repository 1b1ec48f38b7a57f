// Adamax against PyTorch 2.13 and its function body, and in a prepared model.
#include "tests/support/prepared_optimizer.hpp"

namespace onnxtrain {
namespace {

using testing::check_optimizer;

TEST(Adamax, IsTorchsAndItsBody) {
  check_optimizer(
      {.op = "Adamax",
       .lr = 0.01,
       .settings = {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"decay", 0.1}},
       .states = 2,
       .counts = true},
      {0.479094326, -0.976168394, 1.97109222, 0.122334912, -0.0209032465});
  check_optimizer({.op = "Adamax",
                   .lr = 0.01,
                   .settings = {{"beta1", 0.8}, {"beta2", 0.9}, {"epsilon", 1e-8}, {"decay", 0}},
                   .states = 2,
                   .counts = true},
                  {0.480889827, -0.979797065, 1.97834873, 0.122757956, -0.0207492467});
}

TEST(Adamax, InAPreparedModel) {
  testing::check_prepared(R"("kind": "adamax", "lr": 0.01, "weight_decay": 0.1)",
                          {0.479094326, -0.976168394, 1.97109222, 0.122334912, -0.0209032465},
                          {"w.exp_avg", "w.exp_inf"});
}

}  // namespace
}  // namespace onnxtrain
