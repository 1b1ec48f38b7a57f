// Two processes of a training, here threads that are connected by sockets: when gradients are sent.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "convert/networks/networks.hpp"
#include "convert/prepare.hpp"
#include "distributed/sockets.hpp"
#include "engine/training.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain {
namespace {

using testing::random_ints;
using testing::random_tensor;

// How many nodes have run in the step, and how many had when each message of that size was begun.
struct Watch final : StepObserver {
  void before(const Plan&, const Step&) override {}
  void after(const Plan& plan, const Step&) override {
    if (block == nullptr) block = &plan;
    done += &plan == block;
  }
  const Plan* block = nullptr;
  size_t done = 0;
  std::vector<size_t> begun;
};

// Tells `watch` of every message that is as large as a bucket.
class Watched final : public Communicator {
 public:
  Watched(Group& g, Watch& w) : group_(g), watch_(w) {}
  int rank() const override { return group_.rank(); }
  int size() const override { return group_.size(); }
  void all_gather(const void* mine, size_t bytes, void* all) override {
    group_.all_gather(mine, bytes, all);
  }
  void broadcast(void* data, size_t bytes, int root) override {
    group_.broadcast(data, bytes, root);
  }
  Handle start_exchange(const void* send, const size_t* offsets, void* receive,
                        const size_t* at) override {
    if (offsets[size()] >= size_t(8) << 20) watch_.begun.push_back(watch_.done);
    return group_.start_exchange(send, offsets, receive, at);
  }
  Handle start_collect(void* data, const size_t* offsets) override {
    return group_.start_collect(data, offsets);
  }
  bool test(Handle h) override { return group_.test(h); }
  [[noreturn]] void abort(int code) override {
    group_.abort(code);
    std::abort();
  }
  Traffic traffic() const override { return group_.traffic(); }

 private:
  Group& group_;
  Watch& watch_;
};

std::shared_ptr<const Model> wide_layers() {
  NetworkSpec s;
  s.kind = "mlp";
  s.row = {8};
  s.outputs = 4;
  s.classes = true;
  s.hidden = {1500, 1500, 1500, 1500};  // a weight between them fills a bucket
  Recipe r;
  r.optimizer.lr = 1e-5;
  r.losses.emplace_back();
  r.losses[0].kind = "cross_entropy";
  return std::make_shared<const Model>(prepare(new_network(s, all_ops()), r, all_ops()));
}

TEST(Processes, BucketsAreSentWhileTheBackwardPassRuns) {
  const std::shared_ptr<const Model> model = wide_layers();
  const SocketEnds ends = make_sockets(2);
  std::vector<Watch> watches(2);
  std::vector<std::vector<double>> losses(2);
  std::vector<std::thread> ranks;
  for (size_t r = 0; r < 2; ++r)
    ranks.emplace_back([&, r] {
      const std::unique_ptr<Group> group = socket_group({int(r), ends.of_rank[r]});
      Watched watched(*group, watches[r]);
      ProgramOptions o;
      o.threads = 1;
      Training t(model, 0, o);
      t.set_blocks(2, &watched);
      Feeds feeds;
      for (const ValueDef& d : t.slots())
        feeds[d.name] = d.name == "x" ? Value(random_tensor({4, 8}, -1, 1, r))
                                      : Value(random_ints({4}, 0, 4, r));
      losses[r].push_back(t.step(feeds).loss);  // makes the plans
      t.set_observer(&watches[r]);
      watches[r].begun.clear();
      losses[r].push_back(t.step(feeds).loss);
    });
  for (std::thread& t : ranks) t.join();
  for (const auto& of_rank : ends.of_rank)
    for (const auto& pair : of_rank)
      for (int fd : pair)
        if (fd >= 0) ::close(fd);
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_LT(losses[0][1], losses[0][0]);
  for (const Watch& w : watches) {
    ASSERT_EQ(w.begun.size(), 3u);  // three weights of 9 MB
    EXPECT_GT(w.begun[0], 0u);
    // gradients of the layers in front of it are computed after that
    EXPECT_LE(w.begun[0] + 4, w.done);
    EXPECT_LE(w.begun[1] + 2, w.done);
    EXPECT_LT(w.begun[0], w.begun[1]);
  }
}

}  // namespace
}  // namespace onnxtrain
