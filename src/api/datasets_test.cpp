// Parts of data through the C API and the C++ header.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "onnxtrain/onnxtrain.hpp"

namespace {

class DatasetParts : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() / ("parts" + std::to_string(getpid()));
    std::filesystem::create_directories(folder_);
    write("one.csv", 3);
    write("both/train.csv", 4);
    write("both/test.csv", 2);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  void write(const std::string& name, int rows) {
    const auto path = folder_ / name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream out(path);
    out << "a,y\n";
    for (int k = 0; k < rows; ++k) out << k << "," << k % 2 << "\n";
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }
  std::filesystem::path folder_;
};

TEST_F(DatasetParts, AreChosen) {
  EXPECT_EQ(ot::Dataset::open(path("both")).rows(), 4);
  EXPECT_EQ(ot::Dataset::open(path("both"), "train").rows(), 4);
  EXPECT_EQ(ot::Dataset::open(path("both"), "test", "y").rows(), 2);
  EXPECT_GT(ot::Dataset::open("synthetic:classes=2,rows=8,x=3", "test").rows(), 0);
}

TEST_F(DatasetParts, ThatAreNotThereAreRefusedOrSaid) {
  ot_dataset* d = nullptr;
  ASSERT_EQ(ot_dataset_open(path("one.csv").c_str(), R"({"part": "test"})", &d), OT_USAGE);
  EXPECT_STREQ(ot_last_error().code, "OT2194");
  EXPECT_EQ(std::string(ot_last_error().message).find("--part"), std::string::npos);
  EXPECT_EQ(d, nullptr);
  EXPECT_THROW(ot::Dataset::open(path("one.csv"), "test"), ot::Error);
  const std::string note = "the source has no parts";
  const ot::Dataset asked = ot::Dataset::open(path("one.csv"), "train");
  EXPECT_EQ(asked.rows(), 3);
  EXPECT_NE(asked.info_json().find(note), std::string::npos);
  const ot::Dataset all = ot::Dataset::open(path("one.csv"));
  EXPECT_EQ(all.rows(), 3);
  EXPECT_EQ(all.info_json().find(note), std::string::npos);
}

}  // namespace
