// Checkpoints too large for one protobuf message: their tensors stand in a file beside them.
#include "run/folder/checkpoint.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "convert/prepare.hpp"
#include "convert/testing.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::run {
namespace {

namespace fs = std::filesystem;

// Two trained layers around one that is frozen.
Model model() {
  using testing::weights;
  Recipe r;
  r.optimizer.kind = "adamw";
  r.freeze = {"w2"};
  return prepare(parse_model(cat(R"(<ir_version: 8, opset_import: ["" : 17]>
mlp (float[N,40] x) => (float[N,3] logits)
<)",
                                 weights("w1", {40, 40}, 1), ", ", weights("w2", {40, 40}, 2), ", ",
                                 weights("w3", {40, 3}, 3), R"(>
{
  a = MatMul (x, w1)
  b = Tanh (a)
  c = MatMul (b, w2)
  d = Tanh (c)
  logits = MatMul (d, w3)
})"),
                             all_ops()),
                 r, all_ops());
}

class LargeCheckpoint : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() / cat("onnxtrain_large_checkpoint_", ::getpid());
    fs::create_directories(folder_);
    path_ = (folder_ / "last.train.onnx").string();
  }
  void TearDown() override { fs::remove_all(folder_); }
  void step_and_save(Training& t) {
    t.step({{"x", testing::random_tensor({8, 40}, -1, 1, 5)},
            {"label", testing::random_ints({8}, 0, 3, 6)}});
    ++at_.step;
    save_checkpoint(t, at_, path_, {}, /*one_file=*/100);
  }
  std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& e : fs::directory_iterator(folder_))
      names.push_back(e.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  fs::path folder_;
  std::string path_;
  Position at_;
};

TEST_F(LargeCheckpoint, GoesOnBitForBit) {
  Training t(std::make_shared<Model>(model()), 0);
  for (int k = 0; k < 3; ++k) step_and_save(t);
  Position p;
  Training again(std::make_shared<Model>(load_checkpoint(path_, p)), 0);
  EXPECT_EQ(p.step, 3u);
  EXPECT_LT(fs::file_size(path_), 40u * 40 * 4 * 2);  // the message has none of the weights
  for (const std::string& name : t.state().names())
    EXPECT_EQ(t.state().get(name).to_doubles(), again.state().get(name).to_doubles()) << name;
}

TEST_F(LargeCheckpoint, TheOneBeforeStaysWhole) {
  Training t(std::make_shared<Model>(model()), 0);
  for (int k = 0; k < 5; ++k) {
    step_and_save(t);
    Position p;
    load_checkpoint(path_, p);
    EXPECT_EQ(p.step, at_.step);
    if (k == 0) continue;
    load_checkpoint(path_ + ".previous", p);
    EXPECT_EQ(p.step, at_.step - 1);
    EXPECT_EQ(files().size(), 4u);  // two checkpoints, each with its tensors
  }
}

TEST_F(LargeCheckpoint, DamageBesideIsSeen) {
  Training t(std::make_shared<Model>(model()), 0);
  step_and_save(t);
  const std::string data = path_ + ".0.data";
  ASSERT_TRUE(fs::exists(data));
  for (uint64_t at = 100; at < fs::file_size(data); at += 40 * 40 * 4) {  // frozen weights too
    std::fstream f(data, std::ios::in | std::ios::out | std::ios::binary);
    f.seekg(int64_t(at));
    const char was = char(f.get());
    f.seekp(int64_t(at));
    f.put(char(was ^ 1));
    f.close();
    Position p;
    try {
      load_checkpoint(path_, p);
      ADD_FAILURE() << "byte " << at << " was changed unseen";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "OT4201");
    }
    std::fstream back(data, std::ios::in | std::ios::out | std::ios::binary);
    back.seekp(int64_t(at));
    back.put(was);
  }
}

}  // namespace
}  // namespace onnxtrain::run
