// A ring of batches: the worker fills, next() hands out and gives back.
#include "data/prefetch.hpp"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace onnxtrain {

struct Prefetcher::Impl {
  struct Slot {
    Batch batch;
    std::vector<Tensor> buffers;  // of the full batch size
    std::exception_ptr error;
  };

  std::vector<ColumnPtr> columns;
  int64_t batch_size;
  bool threaded;
  std::vector<Slot> slots;

  // Guarded by `mutex`. Batches first..produced-1 of the epoch have been filled, consumed of them
  // handed out; batch b lives in slot b % slots.size().
  std::mutex mutex;
  std::condition_variable work, ready;
  std::vector<int64_t> order;
  int64_t total = 0, produced = 0, consumed = 0;
  bool filling = false, closing = false, paused = true, failed = false;
  double waited = 0;
  std::thread worker;

  Impl(std::vector<ColumnPtr> c, int64_t batch, int depth)
      : columns(std::move(c)), batch_size(batch), threaded(depth > 0) {
    OT_ASSERT(batch > 0 && !columns.empty());
    slots.resize(size_t(std::max(depth, 0)) + 1);
    for (Slot& s : slots)
      for (const ColumnPtr& column : columns) {
        Shape shape{batch};
        shape.insert(shape.end(), column->row_shape().begin(), column->row_shape().end());
        s.buffers.emplace_back(column->dtype(), shape);
        s.batch.tensors.push_back(s.buffers.back());
      }
  }

  Slot& slot_of(int64_t batch) { return slots[size_t(batch) % slots.size()]; }

  // Called without the lock; `order` does not change while `filling`.
  void fill(int64_t index, Slot& slot) {
    const int64_t begin = index * batch_size;
    const int64_t rows = std::min(batch_size, int64_t(order.size()) - begin);
    slot.error = nullptr;
    try {
      for (size_t i = 0; i < columns.size(); ++i) {
        Tensor& t = slot.batch.tensors[i];
        const Tensor& buffer = slot.buffers[i];
        if (t.shape()[0] != rows) {
          Shape shape = buffer.shape();
          shape[0] = rows;
          t = Tensor(buffer.dtype(), std::move(shape), const_cast<void*>(buffer.data()),
                     buffer.owner());
        }
        columns[i]->read({order.data() + begin, size_t(rows)}, t.data());
      }
    } catch (...) {
      slot.error = std::current_exception();
    }
    slot.batch.index = index;
    slot.batch.rows = rows;
  }

  // One slot is in the user's hands: only size-1 batches may be ahead.
  bool can_fill() const {
    return !paused && !failed && produced < total &&
           produced - consumed < int64_t(slots.size()) - 1;
  }

  void loop() {
    std::unique_lock lock(mutex);
    for (;;) {
      work.wait(lock, [&] { return closing || can_fill(); });
      if (closing) return;
      filling = true;
      const int64_t index = produced;
      lock.unlock();
      fill(index, slot_of(index));
      lock.lock();
      filling = false;
      ++produced;
      failed = slot_of(index).error != nullptr;
      ready.notify_all();
    }
  }

  void pause(std::unique_lock<std::mutex>& lock) {
    paused = true;
    ready.wait(lock, [&] { return !filling; });
  }
};

Prefetcher::Prefetcher(std::vector<ColumnPtr> columns, int64_t batch, int depth)
    : impl_(std::make_unique<Impl>(std::move(columns), batch, depth)) {
  if (impl_->threaded) impl_->worker = std::thread([impl = impl_.get()] { impl->loop(); });
}

Prefetcher::~Prefetcher() {
  {
    std::lock_guard lock(impl_->mutex);
    impl_->closing = true;
  }
  impl_->work.notify_all();
  if (impl_->worker.joinable()) impl_->worker.join();
}

void Prefetcher::start(std::vector<int64_t> order, int64_t first, bool drop_last) {
  std::unique_lock lock(impl_->mutex);
  impl_->pause(lock);
  impl_->order = std::move(order);
  const int64_t rows = int64_t(impl_->order.size()), batch = impl_->batch_size;
  impl_->total = rows / batch + (!drop_last && rows % batch != 0 ? 1 : 0);
  OT_ASSERT(first >= 0);
  impl_->produced = impl_->consumed = first;
  impl_->failed = false;
  impl_->paused = false;
  lock.unlock();
  impl_->work.notify_all();
}

void Prefetcher::stop() {
  std::unique_lock lock(impl_->mutex);
  impl_->pause(lock);
  impl_->produced = impl_->consumed = impl_->total = 0;
}

const Batch* Prefetcher::next() {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const auto waited = [&] { return std::chrono::duration<double>(Clock::now() - begin).count(); };
  std::unique_lock lock(impl_->mutex);
  if (impl_->consumed >= impl_->total) return nullptr;
  Impl::Slot& slot = impl_->slot_of(impl_->consumed);
  if (impl_->threaded) {
    impl_->ready.wait(lock, [&] { return impl_->produced > impl_->consumed; });
  } else {
    impl_->fill(impl_->consumed, slot);
    ++impl_->produced;
  }
  ++impl_->consumed;
  impl_->waited += waited();
  if (slot.error) {
    impl_->total = impl_->consumed;  // the epoch is over
    std::rethrow_exception(slot.error);
  }
  lock.unlock();
  impl_->work.notify_one();
  return &slot.batch;
}

double Prefetcher::wait_seconds() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->waited;
}

int64_t Prefetcher::batches() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->total;
}

}  // namespace onnxtrain
