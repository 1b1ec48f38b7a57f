// Batches assembled ahead of time by a background thread, in buffers that are used again.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "data/columns/dataset.hpp"

namespace onnxtrain {

struct Batch {
  int64_t index = 0;  // within the epoch
  int64_t rows = 0;
  std::vector<Tensor> tensors;  // one per column, [rows, row shape]
};

class Prefetcher {
 public:
  // Batches of `columns` with at most `batch` rows; `depth` of them are kept ready besides the one
  // in use. depth 0: no thread, batches are made when asked for.
  Prefetcher(std::vector<ColumnPtr> columns, int64_t batch, int depth = 2);
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Starts an epoch with this order of rows at batch `first` (for resuming inside an epoch); what
  // was under way is dropped. The last batch is smaller unless `drop_last`.
  void start(std::vector<int64_t> order, int64_t first = 0, bool drop_last = false);
  // The next batch, or nullptr at the end of the epoch; valid until the next call of next(),
  // start() or stop(). Throws what went wrong while it was assembled.
  const Batch* next();
  void stop();  // drops what is under way; start() may follow

  double wait_seconds() const;  // time spent in next() waiting for data, since the beginning
  int64_t batches() const;      // of the current epoch

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace onnxtrain
