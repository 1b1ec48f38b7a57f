// SyncBatchNormalization: alone it is BatchNormalization; in blocks that meet, that of the whole
// batch, with its gradient.
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "distributed/meeting.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {

struct Layer {
  Tensor scale = random_tensor({3}, 0.5, 2, 2), bias = random_tensor({3}, -1, 1, 3),
         mean = random_tensor({3}, -1, 1, 4), var = random_tensor({3}, 0.5, 2, 5);
  OpCase sync(const Tensor& x) const {
    OpCase o("SyncBatchNormalization", 1, std::string(kOwnDomain));
    o.attr("over_blocks", int64_t(1)).outputs(6);
    o.input(x).input(scale).input(bias).input(mean).input(var);
    return o;
  }
  OpCase whole(const Tensor& x) const {
    OpCase o("BatchNormalization", 15);
    o.attr("training_mode", int64_t(1)).outputs(3);
    o.input(x).input(scale).input(bias).input(mean).input(var);
    return o;
  }
};

Tensor rows(const Tensor& t, int64_t from, int64_t to) {
  Shape shape = t.shape();
  const int64_t line = t.size() / shape[0];
  shape[0] = to - from;
  Tensor part(t.dtype(), shape);
  std::copy_n(t.as<float>() + from * line, part.size(), part.as<float>());
  return part;
}

void expect_near(const Tensor& got, const Tensor& want, double tolerance) {
  const std::vector<double> a = got.to_doubles(), b = want.to_doubles();
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], tolerance) << i;
}

}  // namespace

TEST(SyncBatchNormalization, AloneItIsBatchNormalization) {
  for (const Shape& s : {Shape{4, 3}, Shape{3, 3, 2, 9}}) {
    const Layer l;
    const Tensor x = random_tensor(s, -3, 3, 7);
    const std::vector<Tensor> want = l.whole(x).run();
    OpCase sync = l.sync(x);
    for (int k = 0; k < 3; ++k) sync.expect(want[size_t(k)], k);
    OpCase("SyncBatchNormalization", 1, std::string(kOwnDomain))
        .input(x)
        .input(l.scale)
        .input(l.bias)
        .constant(l.mean)
        .constant(l.var)
        .outputs(6)
        .skip_output(1)
        .skip_output(2)
        .skip_output(3)
        .skip_output(4)
        .run();
  }
}

TEST(SyncBatchNormalization, BlocksHaveTheStatisticsOfTheBatch) {
  const Layer l;
  ThreadPool pool(1);
  for (const Shape& s : {Shape{7, 3}, Shape{7, 3, 4, 3}}) {
    const Tensor x = random_tensor(s, 1, 3, 7), dy = random_tensor(s, -1, 1, 9);
    const std::vector<Tensor> want = l.whole(x).run();
    const std::vector<Tensor> want_grad =
        OpCase("BatchNormalizationGrad", 1, std::string(kOwnDomain))
            .outputs(3)
            .input(dy)
            .input(x)
            .input(l.scale)
            .run();
    const std::vector<int64_t> first = {0, 1, 4, 4, 7};  // one block is empty
    std::vector<std::vector<Tensor>> y(4), g(4);
    BlockMeeting meeting(4, nullptr);
    meeting.run(
        {0, 1, 3}, {0, 0, 1, 0},
        [&](int b) {
          const auto k = size_t(b);
          const Tensor part = rows(x, first[k], first[k + 1]);
          y[k] = l.sync(part).run();
          g[k] = OpCase("SyncBatchNormalizationGrad", 1, std::string(kOwnDomain))
                     .outputs(3)
                     .input(rows(dy, first[k], first[k + 1]))
                     .input(part)
                     .input(l.scale)
                     .input(y[k][5])
                     .run();
        },
        pool);
    Tensor scale(DType::kFloat, {3}), bias(DType::kFloat, {3});
    for (int k = 0; k < 3; ++k) scale.as<float>()[k] = bias.as<float>()[k] = 0;
    for (size_t b : {size_t(0), size_t(1), size_t(3)}) {
      expect_near(y[b][0], rows(want[0], first[b], first[b + 1]), 2e-6);
      expect_near(y[b][1], want[1], 1e-6);
      expect_near(y[b][2], want[2], 1e-6);
      expect_near(g[b][0], rows(want_grad[0], first[b], first[b + 1]), 2e-6);
      for (int k = 0; k < 3; ++k) {
        scale.as<float>()[k] += g[b][1].as<float>()[k];
        bias.as<float>()[k] += g[b][2].as<float>()[k];
      }
    }
    expect_near(scale, want_grad[1], 1e-5);
    expect_near(bias, want_grad[2], 1e-5);
  }
}

TEST(SyncBatchNormalization, AFailureInOneBlockEndsAll) {
  ThreadPool pool(1);
  BlockMeeting meeting(3, nullptr);
  for (int bad = 0; bad < 3; ++bad) {
    int ended = 0;
    EXPECT_THROW(meeting.run(
                     {0, 1, 2}, {0, 0, 0},
                     [&](int b) {
                       double v = b;
                       BlockExchange::current()->sum(&v, 1, 5);
                       if (b == bad) throw std::runtime_error("bad");
                       BlockExchange::current()->sum(&v, 1, 6);
                       ++ended;
                     },
                     pool),
                 std::runtime_error);
    EXPECT_EQ(ended, 0);
  }
  EXPECT_THROW(meeting.run(
                   {0, 1, 2}, {0, 0, 0},
                   [&](int b) {
                     double v = b;
                     BlockExchange::current()->sum(&v, 1, uint64_t(b));
                   },
                   pool),
               Error);
  std::vector<double> sums(3);
  meeting.run(
      {0, 1, 2}, {0, 0, 0},
      [&](int b) {
        double v = b + 1;
        BlockExchange::current()->sum(&v, 1, 5);
        sums[size_t(b)] = v;
      },
      pool);
  EXPECT_EQ(sums, (std::vector<double>{6, 6, 6}));
}

}  // namespace onnxtrain::testing
