#include "core/tensor.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace onnxtrain {
namespace {

TEST(Tensor, MemoryIsAlignedAndCounted) {
  const size_t before = memory_in_use();
  {
    auto a = allocate(1000);
    auto z = allocate(0);
    EXPECT_NE(z.get(), nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(a.get()) % kAlignment, 0u);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(z.get()) % kAlignment, 0u);
    EXPECT_GE(memory_in_use(), before + 1000);
  }
  EXPECT_EQ(memory_in_use(), before);
}

TEST(Tensor, LimitIsCheckedBeforeAllocating) {
  const size_t old = memory_limit(), before = memory_in_use();
  set_memory_limit(before + 4096);
  auto a = allocate(4000);
  for (size_t bytes : {size_t(128), SIZE_MAX, SIZE_MAX - 63, size_t(1) << 50}) {
    try {
      allocate(bytes);
      ADD_FAILURE();
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "OT1401");
      EXPECT_NE(e.message().find(std::to_string(bytes)), std::string::npos);
      EXPECT_NE(e.message().find(std::to_string(memory_limit())), std::string::npos);
    }
  }
  EXPECT_THROW(Tensor(DType::kDouble, {int64_t(1) << 60}), Error);
  EXPECT_THROW(Tensor(DType::kDouble, {int64_t(1) << 62}), Error);
  EXPECT_THROW(Tensor(DType::kString, {int64_t(1) << 40}), Error);
  set_memory_limit(old);
  a.reset();
  EXPECT_EQ(memory_in_use(), before);
}

TEST(Tensor, CountIsExactOverThreads) {
  const size_t before = memory_in_use();
  auto work = [] {
    for (int i = 0; i < 2000; ++i) allocate(size_t(i));
  };
  std::thread a(work), b(work);
  a.join();
  b.join();
  EXPECT_EQ(memory_in_use(), before);
}

TEST(Tensor, TypedAccess) {
  Tensor t = Tensor::vector<int64_t>({1, 2, 3});
  EXPECT_EQ(t.to_ints(), (std::vector<int64_t>{1, 2, 3}));
  EXPECT_EQ(t.bytes(), 24u);
  EXPECT_THROW(t.as<float>(), Error);
  EXPECT_EQ(Tensor::scalar(2.5f).to_doubles(), std::vector<double>{2.5});
  EXPECT_EQ(Tensor::scalar(Half(0.5f)).to_doubles(), std::vector<double>{0.5});
  EXPECT_EQ(Tensor::scalar(Int4(-3)).to_doubles(), std::vector<double>{-3});
  EXPECT_EQ(Tensor::scalar(true).to_doubles(), std::vector<double>{1});
  EXPECT_EQ(Tensor::scalar(UINT64_MAX).to_doubles(), std::vector<double>{0x1p64});
  EXPECT_THROW(Tensor::scalar(1.0f).to_ints(), Error);
  EXPECT_THROW(Tensor::scalar(std::string("a")).to_doubles(), Error);
}

TEST(Tensor, StringsLiveAndDie) {
  const size_t before = memory_in_use();
  {
    Tensor t(DType::kString, {3});
    t.as<std::string>()[1] = std::string(100, 'x');
    Tensor copy = t.clone();
    t.as<std::string>()[1] = "other";
    EXPECT_EQ(copy.as<std::string>()[1].size(), 100u);
    EXPECT_EQ(copy.as<std::string>()[0], "");
  }
  EXPECT_EQ(memory_in_use(), before);
}

TEST(Tensor, SharesClonesReshapes) {
  Tensor a = Tensor::vector<float>({1, 2, 3, 4});
  Tensor shared = a, deep = a.clone(), view = a.reshaped({2, 2});
  a.as<float>()[0] = 9;
  EXPECT_EQ(shared.as<float>()[0], 9);
  EXPECT_EQ(view.as<float>()[0], 9);
  EXPECT_EQ(deep.as<float>()[0], 1);
  EXPECT_EQ(view.shape(), (Shape{2, 2}));
  EXPECT_THROW(a.reshaped({3}), Error);
  EXPECT_FALSE(Tensor().clone().defined());
  Tensor empty(DType::kFloat, {0, 5});
  EXPECT_EQ(empty.size(), 0);
  EXPECT_EQ(empty.clone().shape(), (Shape{0, 5}));
  float raw[2] = {5, 6};
  Tensor borrowed(DType::kFloat, {2}, raw, nullptr);
  EXPECT_EQ(borrowed.data(), raw);
}

}  // namespace
}  // namespace onnxtrain
