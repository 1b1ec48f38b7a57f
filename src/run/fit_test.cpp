// A run that is asked to stop before its first step leaves a place to go on from.
#include "run/fit.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "convert/prepare.hpp"
#include "convert/testing.hpp"
#include "tests/support/op_case.hpp"
#include "run/feeds.hpp"
#include "run/run_folder.hpp"

namespace onnxtrain {
namespace {

namespace fs = std::filesystem;

Model small_model() {
  return prepare(parse_model(cat(R"(<ir_version: 8, opset_import: ["" : 17]>
line (float[N,4] x) => (float[N,3] logits) <)",
                                 testing::weights("w", {4, 3}, 1), R"(>
{ logits = MatMul (x, w) })"),
                             all_ops()),
                 Recipe(), all_ops());
}

TEST(Fit, StoppedBeforeItsFirstStep) {
  const fs::path root = fs::temp_directory_path() / cat("onnxtrain_fit_", ::getpid());
  fs::create_directories(root);
  const Dataset data = Dataset::from_tensors({{"x", testing::random_tensor({20, 4}, -1, 1, 5)},
                                              {"label", testing::random_ints({20}, 0, 3, 6)}});
  FitObserver silent;
  std::atomic<int> stop{1};
  FitOptions o;
  o.epochs = 2;
  o.batch = 8;
  o.stop = &stop;
  o.folder = (root / "stopped").string();
  Training first(std::make_shared<const Model>(small_model()), 7);
  Position at;
  at.seed = 7;
  FitResult r = fit(first, feeds_for(data, first, {}).feeds, nullptr, o, at, silent);
  EXPECT_TRUE(r.interrupted);
  EXPECT_EQ(r.at.step, 0u);

  stop = 0;
  o.goes_on = true;
  Position resumed;
  Training second(
      std::make_shared<const Model>(load_checkpoint(RunFolder(o.folder).last(), resumed)), 7);
  r = fit(second, feeds_for(data, second, {}).feeds, nullptr, o, resumed, silent);
  EXPECT_EQ(r.at.step, 6u);
  EXPECT_FALSE(fs::exists(o.folder + "/earlier-001"));

  o.folder.clear();
  Training whole(std::make_shared<const Model>(small_model()), 7);
  fit(whole, feeds_for(data, whole, {}).feeds, nullptr, o, at, silent);
  EXPECT_EQ(whole.state().get("w").to_doubles(), second.state().get("w").to_doubles());
  fs::remove_all(root);
}

}  // namespace
}  // namespace onnxtrain
