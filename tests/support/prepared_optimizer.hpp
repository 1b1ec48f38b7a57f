// Five steps of an optimizer in a prepared model, plain and lowered, for the tests beside the
// optimizers.
#pragma once
#include "convert/prepare.hpp"
#include "engine/training.hpp"
#include "tests/support/optimizer_case.hpp"

namespace onnxtrain::testing {

// y = w * x, loss = sum(y): the gradient of w is x. `optimizer`: what stands in the recipe's
// object.
inline void check_prepared(const std::string& optimizer, const std::vector<double>& weights,
                           const std::vector<std::string>& state) {
  for (bool lowered : {false, true}) {
    SCOPED_TRACE(lowered);
    Recipe r = recipe_from_json(cat(R"({"loss": "output", "optimizer": {)", optimizer, "}}"));
    r.lowered = lowered;
    Model m = prepare(parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
      line (float[5] x) => (float loss) <float[5] w = {0.5, -1.0, 2.0, 0.1, 0.0}>
      { p = Mul (x, w)  loss = ReduceSum <keepdims = 0> (p) })",
                                  all_ops()),
                      r, all_ops());
    Training t(
        std::make_shared<Model>(load_model_bytes(serialize_model(m, all_ops()), "", all_ops())), 0);
    for (int step = 0; step < 5; ++step) t.step({{"x", optimizer_gradient(step)}});
    const std::vector<double> w = t.state().get("w").to_doubles();
    for (size_t i = 0; i < 5; ++i) EXPECT_NEAR(w[i], weights[i], 5e-7) << i;
    for (const std::string& name : state) EXPECT_TRUE(t.state().has(name)) << name;
  }
}

}  // namespace onnxtrain::testing
