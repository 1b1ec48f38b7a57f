// The loop: a run that is asked to stop before its first step leaves a place to go on from; streams
// of batches train as rows do; what is written at the best epoch.
#include "run/fit.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "convert/prepare.hpp"
#include "convert/testing.hpp"
#include "onnx/onnx.hpp"
#include "run/data/feeds.hpp"
#include "run/folder/epoch_log.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::run {
namespace {

namespace fs = std::filesystem;
using testing::random_ints;
using testing::random_tensor;

Model small_model() {
  return prepare(parse_model(cat(R"(<ir_version: 8, opset_import: ["" : 17]>
line (float[N,4] x) => (float[N,3] logits) <)",
                                 testing::weights("w", {4, 3}, 1), R"(>
{ logits = MatMul (x, w) })"),
                             all_ops()),
                 Recipe(), all_ops());
}

class FitLoop : public ::testing::Test {
 protected:
  void SetUp() override {
    root_ = fs::temp_directory_path() / cat("onnxtrain_fit_", ::getpid());
    fs::create_directories(root_);
    o_.epochs = 2;
    o_.batch = 8;
    at_.seed = 7;
  }
  void TearDown() override { fs::remove_all(root_); }
  FitResult run(Training& t, const Folder* folder, const Position& at) {
    const FeedColumns feeds = feeds_for(data_, t.source(), t.slots(), {}).feeds;
    auto batches = column_batches(feeds, o_.batch, at.seed, o_.shuffle, false);
    NativeStepper stepper(t);
    return fit(stepper, {*batches, nullptr, folder, {}}, o_, at, silent_);
  }
  static std::string content(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  fs::path root_;
  Dataset data_ = Dataset::from_tensors(
      {{"x", random_tensor({20, 4}, -1, 1, 5)}, {"label", random_ints({20}, 0, 3, 6)}});
  FitOptions o_;
  Position at_;
  Observer silent_;
};

TEST_F(FitLoop, StoppedBeforeItsFirstStep) {
  std::atomic<int> stop{1};
  o_.stop = &stop;
  const Folder folder = Folder::open((root_ / "stopped").string());
  Training first(std::make_shared<const Model>(small_model()), 7);
  FitResult r = run(first, &folder, at_);
  EXPECT_TRUE(r.interrupted);
  EXPECT_EQ(r.at.step, 0u);

  stop = 0;
  Position resumed;
  Training second(std::make_shared<const Model>(load_checkpoint(folder.last(), resumed)), 7);
  r = run(second, &folder, resumed);
  EXPECT_EQ(r.at.step, 6u);

  Training whole(std::make_shared<const Model>(small_model()), 7);
  run(whole, nullptr, at_);
  EXPECT_EQ(whole.state().get("w").to_doubles(), second.state().get("w").to_doubles());
}

TEST_F(FitLoop, TheBestCheckpointIsTheLastOneWhenTheLastEpochIsTheBest) {
  const Folder folder = Folder::open((root_ / "run").string());
  Training t(std::make_shared<const Model>(small_model()), 7);
  const FitResult r = run(t, &folder, at_);
  ASSERT_EQ(r.best_epoch, 2);
  EXPECT_EQ(content(folder.best()), content(folder.last()));
  Position best, previous;
  load_checkpoint(folder.best(), best);
  load_checkpoint(folder.last() + ".previous", previous);
  EXPECT_EQ(best.epoch, 2);
  EXPECT_EQ(previous.epoch, 1);
  EXPECT_TRUE(load_model(folder.model(), all_ops()).training.empty());
}

// The order of writing, seen by what is there when one file cannot be written.
TEST_F(FitLoop, LogThenBestThenModelThenLast) {
  o_.epochs = 1;
  {
    const Folder folder = Folder::open((root_ / "a").string());
    fs::create_directory(folder.best());  // in the way
    Training t(std::make_shared<const Model>(small_model()), 7);
    EXPECT_THROW(run(t, &folder, at_), Error);
    EXPECT_EQ(folder.logged_epochs(), 1);
    EXPECT_FALSE(fs::exists(folder.model()));
    EXPECT_FALSE(fs::exists(folder.last()));
  }
  const Folder folder = Folder::open((root_ / "b").string());
  fs::create_directory(folder.model());
  Training t(std::make_shared<const Model>(small_model()), 7);
  EXPECT_THROW(run(t, &folder, at_), Error);
  EXPECT_TRUE(fs::exists(folder.best()));
  EXPECT_FALSE(fs::exists(folder.last()));
  // the same epoch again, now that it can be written: its line is there once
  fs::remove(folder.model());
  Training again(std::make_shared<const Model>(small_model()), 7);
  run(again, &folder, at_);
  EXPECT_TRUE(fs::exists(folder.model()) && fs::exists(folder.last()));
  EXPECT_EQ(epoch_lines(folder.path()).size(), 1u);
}

// What somebody assigns in on_epoch is in the last checkpoint, although the best one has been
// written before.
TEST_F(FitLoop, AnAssignmentAfterTheEpochIsSaved) {
  struct Assigns : Observer {
    void on_epoch(const EpochResult&) override { t->set_lr(0.125); }
    Training* t = nullptr;
  } assigns;
  const Folder folder = Folder::open((root_ / "run").string());
  Training t(std::make_shared<const Model>(small_model()), 7);
  assigns.t = &t;
  auto batches =
      column_batches(feeds_for(data_, t.source(), t.slots(), {}).feeds, 8, 7, true, false);
  NativeStepper stepper(t);
  o_.epochs = 1;
  fit(stepper, {*batches, nullptr, &folder, {}}, o_, at_, assigns);
  Position ignored;
  const Model last = load_checkpoint(folder.last(), ignored);
  const std::string rate = t.source().metadata.at("onnxtrain.rate");
  EXPECT_EQ(last.initializer(rate)->to_doubles()[0], 0.125);
  EXPECT_NE(load_checkpoint(folder.best(), ignored).initializer(rate)->to_doubles()[0], 0.125);
}

// Rows in order, in batches of eight.
class Rows : public BatchStream {
 public:
  explicit Rows(const Dataset& d) : x_(d.gather_all("x")), y_(d.gather_all("label")) {}
  void begin(int64_t) override { at_ = 0; }
  bool next(Values& out) override {
    if (at_ >= 20) return false;
    const int64_t n = std::min<int64_t>(8, 20 - at_);
    out = {{"x", Tensor(DType::kFloat, {n, 4}, x_.as<float>() + at_ * 4, x_.owner())},
           {"label", Tensor(DType::kInt64, {n}, y_.as<int64_t>() + at_, y_.owner())}};
    at_ += n;
    return true;
  }

 private:
  Tensor x_, y_;
  int64_t at_ = 0;
};

TEST_F(FitLoop, AStreamTrainsAsRowsDo) {
  o_.shuffle = false;
  Training rows(std::make_shared<const Model>(small_model()), 7);
  run(rows, nullptr, at_);
  Training streamed(std::make_shared<const Model>(small_model()), 7);
  Rows stream(data_);
  auto batches = stream_batches(stream, streamed.source(), streamed.slots());
  NativeStepper stepper(streamed);
  const FitResult r = fit(stepper, {*batches, nullptr, nullptr, {}}, o_, at_, silent_);
  ASSERT_EQ(r.epochs.size(), 2u);
  EXPECT_EQ(r.epochs[0].steps, 3);
  EXPECT_EQ(rows.state().get("w").to_doubles(), streamed.state().get("w").to_doubles());
}

TEST_F(FitLoop, AStreamGoesOnInsideAnEpoch) {
  o_.shuffle = false;
  o_.epochs = 1;
  Training whole(std::make_shared<const Model>(small_model()), 7);
  run(whole, nullptr, at_);
  Training t(std::make_shared<const Model>(small_model()), 7);
  Rows stream(data_);
  auto batches = stream_batches(stream, t.source(), t.slots());
  NativeStepper stepper(t);
  o_.max_steps = 2;
  FitResult r = fit(stepper, {*batches, nullptr, nullptr, {}}, o_, at_, silent_);
  EXPECT_EQ(r.at.batch, 2);
  o_.max_steps = 0;
  r = fit(stepper, {*batches, nullptr, nullptr, {}}, o_, r.at, silent_);
  EXPECT_EQ(r.epochs.back().steps, 1);
  EXPECT_EQ(whole.state().get("w").to_doubles(), t.state().get("w").to_doubles());
}

}  // namespace
}  // namespace onnxtrain::run
