#include "core/file.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>

namespace onnxtrain {
namespace {

namespace fs = std::filesystem;

class FileTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "onnxtrain-file-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    dir_ = name;
  }
  void TearDown() override { fs::remove_all(dir_); }
  std::string at(const std::string& name) const { return dir_ + "/" + name; }
  void put(const std::string& name, const std::string& text) { std::ofstream(at(name)) << text; }
  std::string get(const std::string& name) { return read_file(at(name), 1 << 20); }
  size_t count() const { return size_t(std::distance(fs::directory_iterator(dir_), {})); }
  static std::string code(const std::function<void()>& f) {
    try {
      f();
    } catch (const Error& e) {
      EXPECT_NE(e.message(), "");
      return e.code();
    }
    return "";
  }
  std::string dir_;
};

TEST_F(FileTest, ReadsRegularFilesOnly) {
  put("a", "hello");
  EXPECT_EQ(get("a"), "hello");
  EXPECT_EQ(code([&] { read_file(at("a"), 4); }), "OT4003");
  EXPECT_EQ(code([&] { read_file(at("none"), 4); }), "OT4001");
  EXPECT_EQ(code([&] { read_file(dir_, 4); }), "OT4002");
  ASSERT_EQ(mkfifo(at("pipe").c_str(), 0600), 0);
  EXPECT_EQ(code([&] { read_file(at("pipe"), 4); }), "OT4002");  // and does not wait
  put("empty", "");
  EXPECT_EQ(get("empty"), "");
  EXPECT_EQ(MappedFile(at("empty")).size(), 0u);
}

TEST_F(FileTest, ErrorsNamePathAndReason) {
  try {
    InputFile f(at("none"), ErrorKind::kData);
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::kData);
    EXPECT_NE(e.message().find(at("none")), std::string::npos);
    EXPECT_NE(e.message().find("No such file"), std::string::npos);
  }
}

TEST_F(FileTest, ShrinkingFileIsAnError) {
  put("a", std::string(10000, 'x'));
  InputFile f(at("a"));
  MappedFile m(at("a"));
  EXPECT_EQ(m.data()[9999], 'x');
  char buffer[100];
  f.read_at(9900, buffer, 100);
  fs::resize_file(at("a"), 5000);
  EXPECT_EQ(code([&] { f.read_at(4950, buffer, 100); }), "OT4005");
  EXPECT_EQ(code([&] { f.read_at(UINT64_MAX, buffer, 100); }), "OT4004");
  EXPECT_EQ(code([&] { m.check_size(); }), "OT4005");
}

TEST_F(FileTest, BeneathAFolder) {
  fs::create_directories(at("model/sub"));
  put("secret", "s");
  put("model/w.bin", "weights");
  put("model/sub/w.bin", "deep");
  const std::string model = at("model");
  EXPECT_EQ(open_beneath(model, "w.bin").size(), 7u);
  EXPECT_EQ(open_beneath(model, "./sub//w.bin").size(), 4u);
  for (std::string bad : {"../secret", "sub/../../secret", "/etc/passwd", "", "sub", ".", "sub/"})
    EXPECT_EQ(code([&] { open_beneath(model, bad); }), "OT1411") << bad;
  EXPECT_EQ(code([&] { open_beneath(model, std::string("w.bin\0x", 7)); }), "OT1411");
  EXPECT_EQ(code([&] { open_beneath(model, "none"); }), "OT4001");
  fs::create_symlink(at("secret"), at("model/link"));
  EXPECT_EQ(code([&] { open_beneath(model, "link"); }), "OT1411");
  fs::create_directory_symlink(dir_, at("model/up"));
  EXPECT_EQ(code([&] { open_beneath(model, "up/secret"); }), "OT1411");
  fs::create_hard_link(at("secret"), at("model/hard"));
  EXPECT_EQ(code([&] { open_beneath(model, "hard"); }), "OT1411");
  ASSERT_EQ(mkfifo(at("model/pipe").c_str(), 0600), 0);
  EXPECT_EQ(code([&] { open_beneath(model, "pipe"); }), "OT1411");
}

TEST_F(FileTest, WriteIsAllOrNothing) {
  put("a", "old");
  {
    AtomicWriter w(at("a"));
    w.write("new ");
    w.write(std::string(1 << 20, 'z'));
    EXPECT_EQ(get("a"), "old");
    EXPECT_EQ(code([&] { AtomicWriter second(at("a")); }), "OT4015");
  }  // no commit
  EXPECT_EQ(get("a"), "old");
  EXPECT_EQ(count(), 1u);
  AtomicWriter w(at("a"));
  w.write("one ");
  w.write("two");
  EXPECT_EQ(w.checksum(), hash64("one two", 7));
  EXPECT_EQ(w.bytes(), 7u);
  w.commit(at("a.prev"));
  EXPECT_EQ(get("a"), "one two");
  EXPECT_EQ(get("a.prev"), "old");
  EXPECT_EQ(count(), 2u);
  struct stat st;
  ASSERT_EQ(stat(at("a.prev").c_str(), &st), 0);
  EXPECT_EQ(st.st_nlink, 1u);
  EXPECT_EQ(code([&] { w.write("x"); }), "OT4011");
  AtomicWriter fresh(at("b"));
  fresh.commit(at("b.prev"));  // nothing before: nothing to keep
  EXPECT_EQ(get("b"), "");
  EXPECT_FALSE(fs::exists(at("b.prev")));
}

TEST_F(FileTest, RefusesToReplaceWhatIsNoFile) {
  fs::create_directory(at("d"));
  EXPECT_EQ(code([&] { AtomicWriter w(at("d")); }), "OT4010");
  EXPECT_EQ(code([&] {  // a device is written to as it is
              AtomicWriter w("/dev/null");
              w.write("text");
              w.commit();
            }),
            "");
  EXPECT_EQ(code([&] { AtomicWriter w(at("none/x")); }), "OT4010");
  EXPECT_EQ(code([&] { AtomicWriter w(""); }), "OT4010");
  put("real", "1");
  fs::create_symlink(at("real"), at("link"));
  write_file(at("link"), "2");
  EXPECT_EQ(get("real"), "2");
  EXPECT_TRUE(fs::is_symlink(at("link")));
  AtomicWriter w(at("link"), false);
  w.write("3");
  w.commit();
  EXPECT_EQ(get("real"), "2");
  EXPECT_FALSE(fs::is_symlink(at("link")));
}

TEST_F(FileTest, StaleTemporariesGo) {
  put("a.tmp.999999999", "dead");
  put("a.tmp.1", "alive");  // process 1 always exists
  put("a.tmp.x", "not ours");
  put("b.tmp.999999999", "another file's");
  put("a.tmp." + std::to_string(getpid()), "left by an earlier process of the same number");
  write_file(at("a"), "x");
  EXPECT_FALSE(fs::exists(at("a.tmp.999999999")));
  EXPECT_TRUE(fs::exists(at("a.tmp.1")));
  EXPECT_TRUE(fs::exists(at("a.tmp.x")));
  EXPECT_TRUE(fs::exists(at("b.tmp.999999999")));
  EXPECT_EQ(get("a"), "x");
}

TEST_F(FileTest, FullDiskHasItsOwnCode) {
  if (access("/dev/full", W_OK) != 0) GTEST_SKIP() << "this system has no /dev/full to fill";
  EXPECT_EQ(code([&] { append_line("/dev/full", "x"); }), "OT4012");
}

TEST_F(FileTest, FailedWriteLeavesTheOldFile) {
  put("a", "old");
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 100000;
  signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const std::string big(300000, 'x');
  EXPECT_EQ(code([&] { write_file(at("a"), big); }), "OT4011");
  EXPECT_EQ(code([&] { write_file(at("a"), big.substr(0, 200000)); }), "OT4011");
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(get("a"), "old");
  EXPECT_EQ(count(), 1u);
}

TEST_F(FileTest, FailedAppendLeavesNoHalfLine) {
  put("log", "one\n");
  rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit small = before;
  small.rlim_cur = 7;  // room for three bytes more
  signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  EXPECT_EQ(code([&] { append_line(at("log"), "two and more"); }), "OT4011");
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(get("log"), "one\n");
}

TEST_F(FileTest, AppendsWholeLines) {
  append_line(at("log"), "one");
  append_line(at("log"), "two");
  EXPECT_EQ(get("log"), "one\ntwo\n");
  put("log", "one\nto");  // killed while writing
  append_line(at("log"), "three");
  EXPECT_EQ(get("log"), "one\nto\nthree\n");
}

}  // namespace
}  // namespace onnxtrain
