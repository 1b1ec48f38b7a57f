// Load -> save of whole files is lossless; written from the graph they still load to the same
// graph. Runs over tests/files/ and over the folder in ONNXTRAIN_MODELS
// (tests/files/export_suite.py).
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "onnx/testing.hpp"

namespace onnxtrain {
namespace {

using namespace testing_onnx;

std::vector<std::string> files() {
  std::vector<std::string> out;
  std::vector<std::string> folders = {"tests/files"};
  if (const char* more = std::getenv("ONNXTRAIN_MODELS")) folders.emplace_back(more);
  for (const std::string& f : folders) {
    if (!std::filesystem::is_directory(f)) continue;
    for (const auto& e : std::filesystem::directory_iterator(f))
      if (e.path().extension() == ".onnx") out.push_back(e.path().string());
  }
  return out;
}

onnx::ModelProto read(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  onnx::ModelProto p;
  EXPECT_TRUE(p.ParseFromString(text.str())) << path;
  return p;
}

TEST(OnnxFiles, LoadAndSaveIsLossless) {
  for (const std::string& path : files())
    for (const OpTable* ops : {&primitives(), &everything()}) try {
        const Model m = load_model(path, *ops);
        m.main.verify(path.c_str());
        onnx::ModelProto q;
        ASSERT_TRUE(q.ParseFromString(serialize_model(m, *ops)));
        EXPECT_EQ(differences(read(path), q), "") << path;
      } catch (const Error& e) {
        ADD_FAILURE() << path << ": " << e.what();
      }
}

TEST(OnnxFiles, WrittenFromTheGraphTheyMeanTheSame) {
  for (const std::string& path : files()) try {
      Model m = load_model(path, primitives());
      m.edit_main();
      for (auto& t : m.training) t.edit_algorithm();
      const Model again = load_model_bytes(serialize_model(m, primitives()), "", primitives());
      again.main.verify(path.c_str());
      EXPECT_EQ(again.main.nodes.size(), m.main.nodes.size()) << path;
      EXPECT_EQ(again.training.size(), m.training.size()) << path;
      EXPECT_EQ(again.state_names(), m.state_names()) << path;
    } catch (const Error& e) {
      ADD_FAILURE() << path << ": " << e.what();
    }
}

}  // namespace
}  // namespace onnxtrain
