// Adadelta against PyTorch 2.13 and its function body, and in a prepared model.
#include "convert/prepare.hpp"
#include "engine/training.hpp"
#include "tests/support/optimizer_case.hpp"

namespace onnxtrain {
namespace {

using testing::check_optimizer;

TEST(Adadelta, IsTorchsAndItsBody) {
  check_optimizer({"Adadelta", 1, {{"rho", 0.9}, {"epsilon", 1e-6}, {"decay", 0}}, 2, false},
                  {0.494949967, -0.993991435, 1.99316227, 0.107386403, -0.00755840819});
  check_optimizer({"Adadelta", 0.5, {{"rho", 0.8}, {"epsilon", 1e-4}, {"decay", 0.1}}, 2, false},
                  {0.478754818, -0.973252416, 1.9673171, 0.126552388, -0.0271048173});
}

// y = w, loss = sum(y * x): the gradient of w is x.
TEST(Adadelta, InAPreparedModel) {
  for (bool lowered : {false, true}) {
    SCOPED_TRACE(lowered);
    Recipe r = recipe_from_json(R"({"loss": "output", "optimizer": {"kind": "adadelta", "lr": 0.5,
      "rho": 0.8, "eps": 1e-4, "weight_decay": 0.1}})");
    r.lowered = lowered;
    Model m = prepare(parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
      line (float[5] x) => (float loss) <float[5] w = {0.5, -1.0, 2.0, 0.1, 0.0}>
      { p = Mul (x, w)  loss = ReduceSum <keepdims = 0> (p) })",
                                  all_ops()),
                      r, all_ops());
    Training t(
        std::make_shared<Model>(load_model_bytes(serialize_model(m, all_ops()), "", all_ops())), 0);
    for (int step = 0; step < 5; ++step) t.step({{"x", testing::optimizer_gradient(step)}});
    const double torch[] = {0.478754818, -0.973252416, 1.9673171, 0.126552388, -0.0271048173};
    std::vector<double> w = t.state().get("w").to_doubles();
    for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(w[i], torch[i], 5e-7) << i;
    EXPECT_TRUE(t.state().has("w.square_avg"));
    EXPECT_TRUE(t.state().has("w.acc_delta"));
  }
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
