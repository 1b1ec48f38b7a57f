// RAdam against PyTorch 2.13 and its function body, before and after the adaptive step begins, and
// in a prepared model.
#include "tests/support/prepared_optimizer.hpp"

namespace onnxtrain {
namespace {

using testing::check_optimizer;

TEST(RAdam, IsTorchsAndItsBody) {
  check_optimizer(
      {.op = "RAdam",
       .lr = 0.01,
       .settings = {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"decay", 0.1}},
       .states = 2,
       .counts = true},
      {0.481275588, -0.979358256, 1.97525692, 0.113066107, -0.0121056046});
  check_optimizer({.op = "RAdam",
                   .lr = 0.01,
                   .settings = {{"beta1", 0.9}, {"beta2", 0.9}, {"epsilon", 1e-8}, {"decay", 0.1}},
                   .states = 2,
                   .counts = true,
                   .steps = 9},
                  {0.479590803, -0.976677477, 1.97074234, 0.11363972, -0.012866511});
  check_optimizer({.op = "RAdamW",
                   .lr = 0.01,
                   .settings = {{"beta1", 0.8}, {"beta2", 0.95}, {"epsilon", 1e-8}, {"decay", 0.1}},
                   .states = 2,
                   .counts = true,
                   .steps = 9},
                  {0.480221689, -0.976200879, 1.96799874, 0.112131372, -0.0117230304});
}

TEST(RAdam, InAPreparedModel) {
  testing::check_prepared(R"("kind": "radam", "lr": 0.01, "weight_decay": 0.1)",
                          {0.481275588, -0.979358256, 1.97525692, 0.113066107, -0.0121056046},
                          {"w.exp_avg", "w.exp_avg_sq"});
}

}  // namespace
}  // namespace onnxtrain
