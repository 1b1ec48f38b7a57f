// Which rows go into which batch: a function of (seed, epoch) and the number of rows only, so a
// resumed run sees the same batches.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace onnxtrain {

class Sampler {
 public:
  // The last batch is smaller unless `drop_last`.
  Sampler(int64_t rows, int64_t batch, uint64_t seed, bool shuffle, bool drop_last = false);
  void set_epoch(uint64_t epoch);  // makes the order; starts with epoch 0
  int64_t batches() const;
  int64_t batch_size() const { return batch_; }
  std::span<const int64_t> batch(int64_t index) const;
  const std::vector<int64_t>& order() const { return order_; }

 private:
  int64_t rows_, batch_;
  uint64_t seed_, epoch_ = 0;
  bool shuffle_, drop_last_;
  std::vector<int64_t> order_;
};

struct Split {
  std::vector<int64_t> train, valid;  // ascending
};

// `fraction` of the rows (at least one, never all) for validation, chosen by `seed`. With labels
// (one per row) every class gives its share; without, any rows.
Split split_rows(int64_t rows, double fraction, uint64_t seed,
                 std::span<const int64_t> labels = {});

}  // namespace onnxtrain
