// A model's graphs change through calls that mark them; reading and new weights do not.
#include "model/model.hpp"

#include <gtest/gtest.h>

#include "onnx/onnx.hpp"

namespace onnxtrain {
namespace {

Model line() {
  return parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
    line (float[N,2] x) => (float[N,2] y) <float[2] w = {1, 1}> { y = Mul (x, w) })",
                     all_ops());
}

TEST(ModelEdits, AreMarked) {
  Model m = line();
  EXPECT_FALSE(m.main_generated());
  EXPECT_FALSE(m.edit_main_if([](Graph&) { return false; }));
  m.set_initializer("w", Tensor::vector<float>({2, 3}));
  m.unshare_main();
  EXPECT_FALSE(m.main_generated());
  EXPECT_TRUE(m.edit_main_if([](Graph& g) {
    g.name = "other";
    return true;
  }));
  EXPECT_TRUE(m.main_generated());
  EXPECT_EQ(m.main.name, "other");
  TrainingStep t;
  EXPECT_FALSE(t.generated());
  t.edit_algorithm().name = "step";
  EXPECT_TRUE(t.generated());
  EXPECT_EQ(t.algorithm.name, "step");
}

TEST(ModelEdits, CopiesHaveGraphsOfTheirOwn) {
  Model a = line(), b = a;
  b.edit_main().name = "b";
  EXPECT_EQ(a.main.name, "line");
  EXPECT_EQ(b.main.name, "b");
  a = b;
  EXPECT_EQ(a.main.name, "b");
  EXPECT_TRUE(a.main_generated());
  Model c = std::move(b);
  c.edit_main().name = "c";
  EXPECT_EQ(a.main.name, "b");
  EXPECT_EQ(c.main.name, "c");
  std::vector<TrainingStep> steps(1);
  steps[0].edit_algorithm().name = "first";
  for (int k = 0; k < 20; ++k) steps.emplace_back();  // moves them
  steps[0].edit_algorithm().name = "moved";
  EXPECT_EQ(steps[0].algorithm.name, "moved");
  EXPECT_EQ(steps[1].algorithm.name, "");
}

TEST(ModelEdits, ReplacedInitializers) {
  Model m = line();
  m.replace_initializers([](const std::string& name) {
    return name == "w" ? Tensor::vector<float>({5, 6}) : Tensor();
  });
  EXPECT_EQ(m.initializer("w")->to_doubles(), (std::vector<double>{5, 6}));
  EXPECT_FALSE(m.main_generated());
}

}  // namespace
}  // namespace onnxtrain
