// Adadelta against PyTorch 2.13 and its function body, and in a prepared model.
#include "tests/support/prepared_optimizer.hpp"

namespace onnxtrain {
namespace {

using testing::check_optimizer;

TEST(Adadelta, IsTorchsAndItsBody) {
  check_optimizer({"Adadelta", 1, {{"rho", 0.9}, {"epsilon", 1e-6}, {"decay", 0}}, 2, false},
                  {0.494949967, -0.993991435, 1.99316227, 0.107386403, -0.00755840819});
  check_optimizer({"Adadelta", 0.5, {{"rho", 0.8}, {"epsilon", 1e-4}, {"decay", 0.1}}, 2, false},
                  {0.478754818, -0.973252416, 1.9673171, 0.126552388, -0.0271048173});
}

TEST(Adadelta, InAPreparedModel) {
  testing::check_prepared(
      R"("kind": "adadelta", "lr": 0.5, "rho": 0.8, "eps": 1e-4, "weight_decay": 0.1)",
      {0.478754818, -0.973252416, 1.9673171, 0.126552388, -0.0271048173},
      {"w.square_avg", "w.acc_delta"});
}

TEST(Adadelta, SettingsHaveRangesAndDefaults) {
  EXPECT_THROW(recipe_from_json(R"({"optimizer": {"kind": "adadelta", "rho": 1.5}})"), Error);
  EXPECT_THROW(recipe_from_json(R"({"optimizer": {"kind": "adadelta", "eps": -1}})"), Error);
  const Optimizer* o = all_ops().optimizer("adadelta");
  ASSERT_NE(o, nullptr);
  EXPECT_EQ(o->setting("lr")->value, 1);
  EXPECT_EQ(o->setting("rho")->value, 0.9);
}

}  // namespace
}  // namespace onnxtrain
