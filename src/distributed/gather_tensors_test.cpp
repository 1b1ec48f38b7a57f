// Tensors of several processes, here threads that are connected by sockets.
#include "distributed/gather_tensors.hpp"

#include <gtest/gtest.h>

#include <thread>

#include "distributed/sockets.hpp"

namespace onnxtrain {
namespace {

Tensor numbers(int64_t n, float first) {
  Tensor t(DType::kFloat, {n, 3});
  for (int64_t i = 0; i < t.size(); ++i) t.as<float>()[i] = first + float(i);
  return t;
}

Tensor words(const std::vector<std::string>& texts) {
  Tensor t(DType::kString, {int64_t(texts.size())});
  std::copy(texts.begin(), texts.end(), t.as<std::string>());
  return t;
}

// Rank 0 gives two tensors, rank 1 none, rank 2 text and a long one.
std::vector<Tensor> given(int rank) {
  if (rank == 0) return {numbers(40, 1), numbers(0, 0)};
  if (rank == 1) return {};
  return {words({"a", "", "some longer text"}), numbers(100, 7)};
}

bool same(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  if (a.dtype() == DType::kString)
    return std::equal(a.as<std::string>(), a.as<std::string>() + a.size(), b.as<std::string>());
  return std::equal(a.as<float>(), a.as<float>() + a.size(), b.as<float>());
}

// The messages that rank 2 sent.
uint64_t gather_in(size_t at_once) {
  constexpr int kRanks = 3;
  const SocketEnds ends = make_sockets(kRanks);
  std::vector<uint64_t> sent(kRanks);
  std::vector<std::thread> ranks;
  for (int r = 0; r < kRanks; ++r)
    ranks.emplace_back([&, r] {
      const std::unique_ptr<Group> group = socket_group({r, ends.of_rank[size_t(r)]});
      const auto all = gather_tensors(*group, given(r), at_once);
      ASSERT_EQ(all.size(), size_t(kRanks));
      for (int from = 0; from < kRanks; ++from) {
        const std::vector<Tensor> want = given(from);
        ASSERT_EQ(all[size_t(from)].size(), want.size()) << from;
        for (size_t k = 0; k < want.size(); ++k)
          EXPECT_TRUE(same(all[size_t(from)][k], want[k])) << from << " " << k;
      }
      sent[size_t(r)] = group->traffic().messages;
    });
  for (std::thread& t : ranks) t.join();
  for (const auto& of_rank : ends.of_rank)
    for (const auto& pair : of_rank)
      for (int fd : pair)
        if (fd >= 0) ::close(fd);
  return sent[2];
}

TEST(GatherTensors, GoAtOnceOrInPiecesOfAnySize) {
  // to two others: sizes, then everything
  EXPECT_EQ(gather_in(Communicator::kLargest), 4);
  for (size_t piece : {1, 64, 333, 480, 1 << 10, 1 << 12}) {
    SCOPED_TRACE(piece);
    EXPECT_GE(gather_in(piece), 4);
  }
  EXPECT_GT(gather_in(64), 2 * (1200 / 64));
}

}  // namespace
}  // namespace onnxtrain
