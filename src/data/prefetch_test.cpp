#include "data/prefetch.hpp"

#include <chrono>
#include <set>
#include <thread>

#include "core/random.hpp"
#include "data/test_files.hpp"

namespace onnxtrain {
namespace {

using PrefetchTest = test::DataTest;

ColumnPtr counting(int64_t n) {
  std::vector<int64_t> v;
  for (int64_t i = 0; i < n; ++i) v.push_back(i * 10);
  return memory_column(Tensor::vector<int64_t>(v));
}

// Fails or waits when a certain row is read.
class Trap final : public Column {
 public:
  Trap(int64_t rows, int64_t trap, int milliseconds)
      : Column(DType::kInt64, {}, rows), trap_(trap), wait_(milliseconds) {}

 protected:
  void read_rows(std::span<const int64_t> rows, void* out) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(wait_));
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i] == trap_) data_error("OT2120", "trap");
      static_cast<int64_t*>(out)[i] = rows[i];
    }
  }

 private:
  int64_t trap_;
  int wait_;
};

TEST_F(PrefetchTest, DeliversEveryBatchInOrder) {
  for (int depth : {0, 1, 2, 5}) {
    Prefetcher p({counting(103), counting(103)}, 10, depth);
    EXPECT_EQ(p.next(), nullptr);
    std::set<const void*> buffers;
    for (uint64_t epoch = 0; epoch < 5; ++epoch) {
      const std::vector<int64_t> order = permutation(103, 1, epoch);
      p.start(order);
      EXPECT_EQ(p.batches(), 11);
      size_t at = 0;
      int64_t index = 0;
      while (const Batch* b = p.next()) {
        EXPECT_EQ(b->index, index++);
        ASSERT_EQ(b->tensors.size(), 2u);
        EXPECT_EQ(b->rows, b->tensors[0].shape()[0]);
        buffers.insert(b->tensors[0].data());
        for (int64_t v : b->tensors[1].to_ints()) EXPECT_EQ(v, order[at++] * 10);
      }
      EXPECT_EQ(at, 103u);
      EXPECT_EQ(p.next(), nullptr);
    }
    EXPECT_LE(buffers.size(), size_t(depth) + 1);
  }
}

TEST_F(PrefetchTest, StartsInsideAnEpochAndDropsTheLast) {
  Prefetcher p({counting(25)}, 10, 2);
  std::vector<int64_t> order(25);
  for (size_t i = 0; i < 25; ++i) order[i] = int64_t(i);
  p.start(order, 1, true);
  const Batch* b = p.next();
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->index, 1);
  EXPECT_EQ(b->tensors[0].to_ints()[0], 100);
  EXPECT_EQ(p.next(), nullptr);
}

TEST_F(PrefetchTest, ErrorsArriveWithTheirBatch) {
  for (int depth : {0, 2}) {
    Prefetcher p({std::make_shared<Trap>(30, 25, 0)}, 10, depth);
    std::vector<int64_t> order(30);
    for (size_t i = 0; i < 30; ++i) order[i] = int64_t(i);
    p.start(order);
    EXPECT_NE(p.next(), nullptr);
    EXPECT_NE(p.next(), nullptr);
    EXPECT_EQ(code([&] { p.next(); }), "OT2120");
    EXPECT_EQ(p.next(), nullptr);
    p.start({1, 2, 3});
    EXPECT_NE(p.next(), nullptr);
  }
}

TEST_F(PrefetchTest, StopsCleanlyAtAnyMoment) {
  for (int i = 0; i < 30; ++i) {
    Prefetcher p({std::make_shared<Trap>(100, -1, i % 3)}, 10, 3);
    std::vector<int64_t> order(100, i);
    p.start(order);
    for (int k = 0; k < i % 5; ++k) p.next();
    if (i % 2 == 0) p.stop();
    if (i % 4 == 0) {
      p.start(order);
      EXPECT_EQ(p.next()->tensors[0].to_ints()[0], i);
    }
  }
}

TEST_F(PrefetchTest, MeasuresWaiting) {
  Prefetcher slow({std::make_shared<Trap>(10, -1, 20)}, 10, 1);
  slow.start({0, 1});
  slow.next();
  EXPECT_GT(slow.wait_seconds(), 0.005);
}

}  // namespace
}  // namespace onnxtrain
