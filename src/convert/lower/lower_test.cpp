// Lowered steps: no Gradient, the same numbers, as a training file and as a plain model.
#include <gtest/gtest.h>

#include <cmath>

#include "convert/prepare.hpp"
#include "convert/testing.hpp"
#include "engine/training.hpp"

namespace onnxtrain {
namespace {

using testing::random_ints;
using testing::random_tensor;

Model mlp() {
  using testing::weights;
  return parse_model(
      cat(R"(<ir_version: 8, opset_import: ["" : 17]>
mlp (float[N,4] x) => (float[N,3] logits)
<)",
          weights("w1", {4, 8}, 1), ", ", weights("b1", {8}, 2), ", ", weights("scale", {8}, 3),
          ", ", weights("bias", {8}, 4), ", ", weights("w2", {8, 3}, 5), R"(>
{
  a = MatMul (x, w1)
  c = Add (a, b1)
  n = LayerNormalization <axis = -1> (c, scale, bias)
  h = Relu (n)
  logits = MatMul (h, w2)
})"),
      all_ops());
}

Feeds batch(int64_t n) {
  return {{"x", random_tensor({n, 4}, -1, 1, 7)}, {"label", random_ints({n}, 0, 3, 8)}};
}

TEST(Lower, TrainsWithTheSameNumbers) {
  for (const char* kind : {"sgd", "momentum", "adamw", "adagrad", "onnx_adam"}) {
    SCOPED_TRACE(kind);
    Recipe r;
    r.optimizer.kind = kind;
    r.clip_norm = 0.5;
    Training compact(std::make_shared<Model>(prepare(mlp(), r, all_ops())), 0);
    r.lowered = true;
    Model low = prepare(mlp(), r, all_ops());
    for (const Node& n : low.training[0].algorithm.nodes) {
      EXPECT_NE(n.domain, kTrainingDomain) << n.label();
      EXPECT_TRUE(n.domain != kOwnDomain || all_ops().find(n)->function != nullptr) << n.label();
    }
    Model again = load_model_bytes(serialize_model(low, all_ops()), "", all_ops());
    Training t(std::make_shared<Model>(again), 0);
    Model flat = load_model_bytes(serialize_model(flatten_step(again), all_ops()), "", all_ops());
    Session plain(std::make_shared<Model>(flat));
    Feeds state;
    for (const auto& name : flat.input_names())
      if (name != "x" && name != "label") state[name] = again.initializer(name)->clone();
    for (int k = 0; k < 5; ++k) {
      Feeds f = batch(k == 3 ? 5 : 16);  // another batch size now and then
      double want = compact.step(f).loss;
      EXPECT_NEAR(t.step(f).loss, want, 1e-6) << "step " << k;
      Feeds all = state;
      all.insert(f.begin(), f.end());
      auto out = plain.run(all);
      EXPECT_NEAR(std::get<Tensor>(out[0].second).to_doubles()[0], want, 1e-6) << "step " << k;
      for (const auto& [key, value] : again.training[0].update_binding)
        for (auto& [name, v] : out)
          if (name == value && state.count(key)) state[key] = v;
    }
  }
}

}  // namespace
}  // namespace onnxtrain
