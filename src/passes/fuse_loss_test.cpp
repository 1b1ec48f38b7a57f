// Loss and its gradient as one node: text in, text out, and the same numbers.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

namespace {

// attrs: of the loss and of its gradient.
std::string loss_graph(const std::string& shape, const std::string& loss_attrs,
                       const std::string& grad_attrs, const std::string& dloss) {
  return "g (float" + shape + " x, int64[4] label, float d) => (float loss, float" + shape +
         " dx) <float one = {1}, float half = {0.5}> {\n  loss = SoftmaxCrossEntropyLoss" +
         loss_attrs + "(x, label)\n  dx = ai.onnxtrain.SoftmaxCrossEntropyLossGrad" + grad_attrs +
         "(" + dloss + ", x, label)\n}";
}

}  // namespace

TEST(FuseLoss, LossAndGradientBecomeOne) {
  EXPECT_EQ(after_pass(pass_fuse_loss, loss_graph("[4,3]", "", "", "half")),
            "loss, dx = ai.onnxtrain.SoftmaxCrossEntropyBoth<dloss=0.5>(x, label)\n");
  EXPECT_EQ(
      after_pass(pass_fuse_loss, loss_graph("[4,3]", "<reduction = \"sum\", ignore_index = 1>",
                                            "<reduction = \"sum\", ignore_index = 1>", "one")),
      "loss, dx = ai.onnxtrain.SoftmaxCrossEntropyBoth<dloss=1, ignore_index=1, "
      "reduction=\"sum\">(x, label)\n");
}

TEST(FuseLoss, StaysApart) {
  auto apart = [](const std::string& graph) {
    EXPECT_NE(after_pass(pass_fuse_loss, graph).find("SoftmaxCrossEntropyLossGrad"),
              std::string::npos)
        << graph;
  };
  apart(loss_graph("[4,3]", "", "", "d"));  // a factor that is known only in the run
  apart(loss_graph("[4,3]", "", "<reduction = \"sum\">", "one"));
  apart(loss_graph("[4,3]", "<ignore_index = 1>", "", "one"));
  apart(R"(g (float[4,3] x, int64[4] label) => (float[4] loss, float[4,3] dx)
    <float[4] ones = {1, 1, 1, 1}> {
      loss = SoftmaxCrossEntropyLoss<reduction = "none">(x, label)
      dx = ai.onnxtrain.SoftmaxCrossEntropyLossGrad<reduction = "none">(ones, x, label)
    })");  // a loss for every sample
  apart(R"(g (float[4,3] x, float[4,3] z, int64[4] label) => (float loss, float[4,3] dx)
    <float one = {1}> {
      loss = SoftmaxCrossEntropyLoss(x, label)
      dx = ai.onnxtrain.SoftmaxCrossEntropyLossGrad(one, z, label)
    })");  // of other scores
}

TEST(FuseLoss, SameNumbers) {
  const std::string text = loss_graph("[4,3]", "", "", "half");
  Feeds feeds = {{"x", random_tensor({4, 3})},
                 {"label", Tensor::vector<int64_t>({0, 2, 1, 2})},
                 {"d", Tensor::scalar<float>(1)}};
  ProgramOptions apart;
  apart.skip_passes = {"fuse_loss"};
  std::vector<NamedValue> a = Session(text_model(text)).run(feeds),
                          b = Session(text_model(text), apart).run(feeds);
  for (size_t k = 0; k < 2; ++k) {
    std::vector<double> x = std::get<Tensor>(a[k].second).to_doubles(),
                        y = std::get<Tensor>(b[k].second).to_doubles();
    ASSERT_EQ(x.size(), y.size());
    for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 1e-6) << k << " " << i;
  }
}

}  // namespace onnxtrain::testing
