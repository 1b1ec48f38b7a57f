// Turns of blocks: one thread for each block of this process beyond the first, of which one runs at
// a time.
#include "distributed/meeting.hpp"

#include <algorithm>
#include <exception>
#include <semaphore>
#include <thread>

#include "core/error.hpp"

namespace onnxtrain {

namespace {

struct Cancelled {};  // another block failed

[[noreturn]] void out_of_step() {
  throw Error(ErrorKind::kFailed, "OT5051",
              "blocks of one batch do not come to the sums over the batch in the same order");
}

}  // namespace

// A block with a thread of its own.
struct BlockMeeting::Turn final : BlockExchange {
  Turn() : thread([this] { loop(); }) {}
  ~Turn() override {
    over = true;
    go.release();
    thread.join();
  }
  void loop() {
    for (;;) {
      go.acquire();
      if (over) return;
      try {
        const BlockExchangeScope scope(this);
        (*body)(block);
      } catch (const Cancelled&) {
      } catch (...) {
        failure = std::current_exception();
      }
      finished = true;
      stopped.release();
    }
  }
  void sum(double* to, size_t count, uint64_t at) override {
    data = to;
    n = count;
    place = at;
    stopped.release();
    go.acquire();
    if (cancelled) throw Cancelled{};
  }
  // Runs it until it needs a sum, or is done.
  void resume() {
    go.release();
    stopped.acquire();
  }

  const Body* body = nullptr;
  int block = 0;
  bool finished = false, cancelled = false, over = false;
  std::exception_ptr failure;
  double* data = nullptr;
  size_t n = 0;
  uint64_t place = 0;
  std::binary_semaphore go{0}, stopped{0};
  std::thread thread;
};

// The only block of this process: sums are made where they are needed.
struct BlockMeeting::Alone final : BlockExchange {
  Alone(BlockMeeting& m, int b, ThreadPool& p) : meeting(m), block(b), pool(p) {}
  void sum(double* data, size_t n, uint64_t place) override {
    meeting.waiting_.resize(1);
    Waiting& w = meeting.waiting_[0];
    w.block = block, w.data = data, w.n = n, w.place = place;
    meeting.add(pool);
  }
  BlockMeeting& meeting;
  int block;
  ThreadPool& pool;
};

BlockMeeting::BlockMeeting(int blocks, Communicator* communicator)
    : blocks_(blocks), comm_(communicator) {}
BlockMeeting::~BlockMeeting() = default;

BlockSum& BlockMeeting::sum_of(size_t n) {
  const auto at = std::find(lengths_.begin(), lengths_.end(), n);
  if (at != lengths_.end()) return *sums_[size_t(at - lengths_.begin())];
  lengths_.push_back(n);
  sums_.push_back(std::make_unique<BlockSum>(
      std::vector<TensorType>{{DType::kDouble, {int64_t(n)}}}, blocks_, comm_));
  return *sums_.back();
}

// Adds what all blocks wait for. The place goes along: its sum must be that of one place.
void BlockMeeting::add(ThreadPool& pool) {
  const size_t n = waiting_[0].n;
  const auto place = double(waiting_[0].place & 0xffffff);
  for (Waiting& w : waiting_) {
    if (w.n != n || w.place != waiting_[0].place) out_of_step();
    w.numbers.resize(n + 1);
    std::copy(w.data, w.data + n, w.numbers.begin());
    w.numbers[n] = place;
  }
  BlockSum& sums = sum_of(n + 1);
  sums.run(
      *empty_,
      [&](int block) -> const std::vector<const void*>& {
        for (const Waiting& w : waiting_)
          if (w.block == block) part_.assign(1, w.numbers.data());
        return part_;
      },
      pool);
  const auto* all = static_cast<const double*>(sums.result(0));
  const auto there = double(std::count(empty_->begin(), empty_->end(), 0));
  if (all[n] != place * there) out_of_step();
  for (const Waiting& w : waiting_) std::copy(all, all + n, w.data);
}

void BlockMeeting::run(const std::vector<int>& here, const std::vector<char>& empty,
                       const Body& body, ThreadPool& pool) {
  empty_ = &empty;
  if (here.size() == 1) {
    Alone alone(*this, here[0], pool);
    const BlockExchangeScope scope(&alone);
    return body(here[0]);
  }
  while (turns_.size() < here.size()) turns_.push_back(std::make_unique<Turn>());
  for (size_t k = 0; k < here.size(); ++k) {
    Turn& t = *turns_[k];
    t.body = &body, t.block = here[k];
    t.finished = t.cancelled = false;
    t.failure = nullptr;
  }
  waiting_.resize(here.size());
  auto stop = [&] {
    for (size_t k = 0; k < here.size(); ++k)
      if (!turns_[k]->finished) {
        turns_[k]->cancelled = true;
        turns_[k]->resume();
      }
  };
  for (bool first = true;; first = false) {
    size_t done = 0, k = 0;
    for (; k < here.size(); ++k) {
      Turn& t = *turns_[k];
      t.resume();
      if (t.failure) break;
      done += t.finished;
    }
    if (k < here.size()) {  // those behind it have not begun, or wait
      const std::exception_ptr failure = turns_[k]->failure;
      if (first)
        for (size_t j = k + 1; j < here.size(); ++j) turns_[j]->finished = true;
      stop();
      std::rethrow_exception(failure);
    }
    if (done == here.size()) return;
    try {
      if (done > 0) out_of_step();
      for (size_t j = 0; j < here.size(); ++j) {
        const Turn& t = *turns_[j];
        Waiting& w = waiting_[j];
        w.block = t.block, w.data = t.data, w.n = t.n, w.place = t.place;
      }
      add(pool);
    } catch (...) {
      stop();
      throw;
    }
  }
}

}  // namespace onnxtrain
