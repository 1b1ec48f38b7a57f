// The command line: usage errors and their exit codes, -v and -vv.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cli/common/commands.hpp"
#include "core/error.hpp"
#include "core/error_trace.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain::testing {

namespace {

struct Said {
  int code;
  std::string out, err;
};

Said command(std::vector<std::string> words) {
  words.insert(words.begin(), "onnxtrain");
  std::vector<char*> argv;
  for (std::string& w : words) argv.push_back(w.data());
  ::testing::internal::CaptureStdout();
  ::testing::internal::CaptureStderr();
  int code = cli::run_command_line(int(argv.size()), argv.data());
  set_error_traces(false);
  return {code, ::testing::internal::GetCapturedStdout(), ::testing::internal::GetCapturedStderr()};
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

// A folder that is gone afterwards.
struct Folder {
  std::filesystem::path path;
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "onnxtrain_cli_XXXXXX").string();
    path = mkdtemp(name.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string model() const {
    std::string file = path / "m.onnx";
    save_model(parse_model(R"(<ir_version: 8, opset_import: ["" : 17]>
      g (float[N,3] x) => (float[N,2] y) <float[3,2] w = {1,2,3,4,5,6}> {
        h = MatMul(x, w)
        y = Relu(h)
      })",
                           all_ops()),
               file, all_ops());
    return file;
  }
};

}  // namespace

TEST(CommandLine, UsageErrorsEndWithTwo) {
  Said s = command({});
  EXPECT_EQ(s.code, 2);
  EXPECT_TRUE(has(s.out, "onnxtrain demo")) << s.out;
  s = command({"trian"});
  EXPECT_EQ(s.code, 2);
  EXPECT_TRUE(has(s.err, "error[OT0001]: there is no command 'trian'")) << s.err;
  EXPECT_TRUE(has(s.err, "did you mean train?")) << s.err;
  s = command({"info", "--jsn", "x.onnx"});
  EXPECT_EQ(s.code, 2);
  EXPECT_TRUE(has(s.err, "there is no option --jsn of info")) << s.err;
  s = command({"bench"});
  EXPECT_EQ(s.code, 2);
  EXPECT_TRUE(has(s.err, "MODEL is required")) << s.err;
  s = command({"bench", "m.onnx", "--batch", "-3"});
  EXPECT_EQ(s.code, 2);
  EXPECT_TRUE(has(s.err, "error[OT0001]")) << s.err;
  s = command({"bench", "m.onnx", "--mode", "fast"});
  EXPECT_EQ(s.code, 2);
  s = command({"train"});
  EXPECT_EQ(s.code, 2);
  EXPECT_TRUE(has(s.err, "error[OT0005]: train needs a MODEL or --resume RUN")) << s.err;
}

TEST(CommandLine, HelpAndVersionEndWithZero) {
  EXPECT_EQ(command({"--version"}).code, 0);
  Said s = command({"train", "--help"});
  EXPECT_EQ(s.code, 0);
  EXPECT_TRUE(has(s.out, "--epochs")) << s.out;
  EXPECT_FALSE(has(s.out, "--verbose")) << s.out;  // among those that are used rarely
  EXPECT_TRUE(has(command({"train", "--help-all"}).out, "--verbose"));
}

TEST(CommandLine, ErrorsOfFilesHaveTheirCodes) {
  Folder f;
  EXPECT_EQ(command({"info", f.path / "none.onnx"}).code, 3);
  std::ofstream(f.path / "bad.onnx") << "no model";
  Said s = command({"info", f.path / "bad.onnx"});
  EXPECT_EQ(s.code, 3);
  EXPECT_EQ(s.err.find("error[OT"), 0u) << s.err;
  EXPECT_FALSE(has(s.err, "trace")) << s.err;
  EXPECT_EQ(command({"explain", "OT9999"}).code, 2);
}

TEST(CommandLine, TwiceVerboseShowsWhereAnErrorComesFrom) {
  Folder f;
  Said s = command({"info", "-vv", f.path / "none.onnx"});
  EXPECT_EQ(s.code, 3);
  EXPECT_TRUE(has(s.err, "error[OT")) << s.err;
#if __has_include(<execinfo.h>)
  EXPECT_TRUE(has(s.err, "trace (addr2line")) << s.err;
#endif
  s = command({"info", "-v", f.path / "none.onnx"});
  EXPECT_FALSE(has(s.err, "trace")) << s.err;
}

TEST(CommandLine, VerboseSaysTimeAndMemory) {
  Folder f;
  Said s = command({"info", f.model(), "-v"});
  EXPECT_EQ(s.code, 0) << s.err;
  EXPECT_TRUE(has(s.err, "took")) << s.err;
  EXPECT_FALSE(has(command({"info", f.model()}).err, "took"));
}

TEST(CommandLine, BenchShowsKernelsRefusalsAndPasses) {
  Folder f;
  std::vector<std::string> words = {"bench", f.model(), "--mode", "infer", "--seconds", "0.01"};
  Said plain = command(words);
  EXPECT_EQ(plain.code, 0) << plain.err;
  EXPECT_TRUE(has(plain.out, "preparation, once")) << plain.out;
  EXPECT_TRUE(has(plain.out, "fuse_matmul")) << plain.out;
  EXPECT_FALSE(has(plain.out, "faster ones that refused")) << plain.out;
  words.push_back("-v");
  Said more = command(words);
  EXPECT_TRUE(has(more.out, "faster ones that refused")) << more.out;
  EXPECT_TRUE(has(more.out, "(simd)")) << more.out;
}

}  // namespace onnxtrain::testing
