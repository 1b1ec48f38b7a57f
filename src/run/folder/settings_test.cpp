// Values and sources of settings, and config.toml there and back.
#include "run/folder/settings.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "core/error.hpp"
#include "core/file.hpp"

namespace onnxtrain::run {
namespace {

namespace fs = std::filesystem;
using Kind = Settings::Kind;

class SettingsFile : public ::testing::Test {
 protected:
  void SetUp() override {
    path_ = fs::temp_directory_path() / cat("onnxtrain_settings_", ::getpid(), ".toml");
  }
  void TearDown() override { fs::remove(path_); }
  Settings some() {
    Settings s;
    s.add({"epochs", Kind::kNumber, false, "10",
           [this](const Settings::Values& v, const std::string&) { applied_ = v; }});
    s.add({"valid", Kind::kText, false, "0.1", {}});
    s.add({"no-shuffle", Kind::kFlag, false, "", {}});
    s.add({"map", Kind::kText, true, "", {}});
    return s;
  }
  fs::path path_;
  Settings::Values applied_;
};

TEST_F(SettingsFile, EveryKeyHasALineWithItsSource) {
  Settings s = some();
  s.set("epochs", {"3"}, "flag");
  s.set("map", {"x=a", "y=\"b\""}, "call");
  s.replace("valid", "/data/v.npz");
  const std::string text = s.text();
  EXPECT_NE(text.find("epochs = 3                                # flag\n"), std::string::npos);
  EXPECT_NE(text.find("valid = \"/data/v.npz\""), std::string::npos);
  EXPECT_NE(text.find("no-shuffle = false                        # default\n"), std::string::npos);
  EXPECT_NE(text.find(R"(map = ["x=a", "y=\"b\""])"), std::string::npos);
}

TEST_F(SettingsFile, WhatIsWrittenIsReadAgain) {
  Settings s = some();
  s.set("epochs", {"3"}, "flag");
  s.set("no-shuffle", {"true"}, "call");
  s.set("map", {"x=a", "y=\"b\\"}, "call");
  write_file(path_, s.text());
  EXPECT_EQ(settings_in(path_).at("valid"), "\"0.1\"");
  EXPECT_EQ(settings_in(path_).at("epochs"), "3");
  EXPECT_EQ(settings_in(path_).at("map"), R"(["x=a", "y=\"b\\"])");
  EXPECT_TRUE(settings_in("/nowhere/config.toml").empty());
  Settings again = some();
  again.from_file(path_, "run");
  EXPECT_EQ(again.value("epochs"), "3");
  EXPECT_EQ(again.value("valid"), "0.1");
  EXPECT_EQ(again.value("no-shuffle"), "true");
  EXPECT_EQ(again.values("map"), (Settings::Values{"x=a", "y=\"b\\"}));
  EXPECT_EQ(applied_, Settings::Values{"3"});
}

TEST_F(SettingsFile, LineEndsAndTabsInText) {
  Settings s = some();
  const std::string name = "a\nb\t\\u0041";
  s.set("valid", {name}, "flag");
  write_file(path_, s.text());
  EXPECT_EQ(unquoted(settings_in(path_).at("valid")), name);
  Settings again = some();
  again.from_file(path_, "run");
  EXPECT_EQ(again.value("valid"), name);
}

TEST_F(SettingsFile, TheFirstSourceWins) {
  write_file(path_, "epochs = 5\nvalid = \"0.2\"\n");
  ::setenv("ONNXTRAIN_VALID", "0.3", 1);
  Settings s = some();
  s.set("epochs", {"3"}, "flag");
  s.from_environment();
  ::unsetenv("ONNXTRAIN_VALID");
  s.from_file(path_, "config");
  EXPECT_EQ(s.value("epochs"), "3");
  EXPECT_EQ(s.value("valid"), "0.3");
  EXPECT_NE(s.text().find("# environment"), std::string::npos);
}

TEST_F(SettingsFile, ChangesAreAgainstTheRunThatIsResumed) {
  write_file(path_, "epochs = 5\nvalid = \"0.20\"\n");
  Settings s = some();
  s.set("epochs", {"6"}, "flag");
  s.set("valid", {"0.2"}, "flag");
  s.from_file(path_, "run");
  EXPECT_TRUE(s.changes("epochs"));
  EXPECT_FALSE(s.changes("valid"));  // the same number
  EXPECT_FALSE(s.changes("no-shuffle"));
  Settings other = some();
  other.from_file(path_, "run");
  EXPECT_TRUE(other.given("epochs"));
  EXPECT_FALSE(other.fresh("epochs"));
}

TEST_F(SettingsFile, UnknownKeys) {
  write_file(path_, "epoch = 5\n");
  Settings s = some();
  try {
    s.from_file(path_, "config");
    ADD_FAILURE() << "an unknown key was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "OT0007");
    EXPECT_NE(e.hint().find("'epochs'"), std::string::npos);
  }
  s.from_file(path_, "run", {}, Settings::Unknown::kPassedOver);
  EXPECT_FALSE(s.given("epochs"));
}

TEST_F(SettingsFile, NoToml) {
  write_file(path_, "epochs = = 5\n");
  Settings s = some();
  try {
    s.from_file(path_, "config");
    ADD_FAILURE() << "a damaged file was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "OT0008");
  }
}

}  // namespace
}  // namespace onnxtrain::run
