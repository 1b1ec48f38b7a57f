// Files are recognised by what is in them.
#include "core/file_kind.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace onnxtrain {

namespace {

FileKind of(const std::string& bytes) {
  return file_kind(bytes.size(), [&](uint64_t at, void* out, size_t n) {
    std::memcpy(out, bytes.data() + at, n);
  });
}

std::string zip(const std::string& member) { return std::string("PK\x03\x04", 4) + member; }

}  // namespace

TEST(FileKind, ByFirstBytes) {
  EXPECT_EQ(of(""), FileKind::kEmpty);
  EXPECT_EQ(of(zip("archive/data.pkl")), FileKind::kTorch);
  EXPECT_EQ(of(zip("m/archive_format")), FileKind::kTorchProgram);
  EXPECT_EQ(of(zip("config.json..model.weights.h5")), FileKind::kKeras);
  EXPECT_EQ(of(zip("x.npy")), FileKind::kNpz);
  EXPECT_EQ(of(zip("readme")), FileKind::kZip);
  EXPECT_EQ(of("\x89HDF\r\n\x1a\n...."), FileKind::kHdf5);
  EXPECT_EQ(of(std::string("\x1c\0\0\0TFL3....", 12)), FileKind::kTfLite);
  EXPECT_EQ(of(std::string("\x1c\0\0\0ORTM....", 12)), FileKind::kOrt);
  EXPECT_EQ(of("GGUF\3...."), FileKind::kGguf);
  EXPECT_EQ(of(std::string("\x10\0\0\0\0\0\0\0{\"w\":{}}12345678", 24)), FileKind::kSafetensors);
  EXPECT_EQ(of("\x80\x04\x95......"), FileKind::kPickle);
  EXPECT_EQ(of("\x1f\x8b\x08...."), FileKind::kGzip);
  EXPECT_EQ(of("  <!DOCTYPE html><html>"), FileKind::kHtml);
  EXPECT_EQ(of("<?xml version=\"1.0\"?><net name=\"m\">"), FileKind::kOpenVino);
  EXPECT_EQ(of("version https://git-lfs.github.com/spec/v1\noid"), FileKind::kLfsPointer);
  EXPECT_EQ(of("{\"a\": 1}"), FileKind::kJson);
  EXPECT_EQ(of("hello\nworld\n"), FileKind::kText);
  EXPECT_EQ(of(std::string("\x08\x01\x12\x90\x03\x0a.. serve ..", 15)), FileKind::kSavedModel);
  EXPECT_EQ(of(std::string("\x08\x08\x12\x07pytorch", 11)), FileKind::kOnnx);
  EXPECT_EQ(of(std::string("\x01\x02\x03\x04\x05", 5)), FileKind::kUnknown);
}

TEST(FileKind, EveryKindHasWords) {
  for (int k = 1; k < int(FileKind::kCount); ++k) EXPECT_NE(describe(FileKind(k)), "") << k;
}

}  // namespace onnxtrain
