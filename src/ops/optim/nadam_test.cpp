// NAdam against PyTorch 2.13 and its function body, and in a prepared model.
#include "tests/support/prepared_optimizer.hpp"

namespace onnxtrain {
namespace {

using testing::check_optimizer;

TEST(NAdam, IsTorchsAndItsBody) {
  check_optimizer({.op = "NAdam",
                   .lr = 0.01,
                   .settings = {{"beta1", 0.9},
                                {"beta2", 0.999},
                                {"epsilon", 1e-8},
                                {"decay", 0.1},
                                {"momentum_decay", 0.004}},
                   .states = 3,
                   .counts = true,
                   .firsts = {0, 0, 1},
                   .scalar_last = true},
                  {0.483645976, -0.980268538, 1.97608149, 0.119387433, -0.0205550641});
  check_optimizer({.op = "NAdamW",
                   .lr = 0.01,
                   .settings = {{"beta1", 0.8},
                                {"beta2", 0.99},
                                {"epsilon", 1e-6},
                                {"decay", 0.1},
                                {"momentum_decay", 0.01}},
                   .states = 3,
                   .counts = true,
                   .firsts = {0, 0, 1},
                   .scalar_last = true},
                  {0.48170191, -0.977129757, 1.97023141, 0.120781951, -0.0221509859});
}

TEST(NAdam, InAPreparedModel) {
  testing::check_prepared(R"("kind": "nadam", "lr": 0.01, "weight_decay": 0.1)",
                          {0.483645976, -0.980268538, 1.97608149, 0.119387433, -0.0205550641},
                          {"w.exp_avg", "w.exp_avg_sq", "w.mu_product"});
}

}  // namespace
}  // namespace onnxtrain
