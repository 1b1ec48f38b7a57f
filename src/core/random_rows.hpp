// Random numbers of a block of rows: those that the same rows have in the whole batch, however it
// is cut.
#pragma once
#include <cstdint>

#include "core/shape.hpp"

namespace onnxtrain {

// Which rows of the batch this thread computes; set around the run of a block.
struct RandomRows {
  int64_t first = 0, rows = 0, total = 0;
  static const RandomRows* current();
};

class RandomRowsScope {
 public:
  explicit RandomRowsScope(const RandomRows& rows);
  ~RandomRowsScope();
  RandomRowsScope(const RandomRowsScope&) = delete;
  RandomRowsScope& operator=(const RandomRowsScope&) = delete;

 private:
  RandomRows rows_;
  const RandomRows* before_;
};

// Where element i of a tensor that has rows along an axis stands in that of the whole batch.
class RandomPlaces {
 public:
  // axis < 0: it has no rows. outer: of the axis, what changes more slowly than the rows.
  RandomPlaces(const Shape& shape, int64_t axis, int64_t outer = 1) : axis_(axis) {
    for (size_t d = 0; d < shape.size(); ++d) {
      size_ *= shape[d];
      if (int64_t(d) >= axis) segment_ *= shape[d];
    }
    segment_ /= outer;
  }
  // For the rows of this thread; call when the kernel begins.
  RandomPlaces here() const;
  uint64_t at(int64_t i) const {
    return uint64_t(global_ == 0 ? i : i / segment_ * global_ + offset_ + i % segment_);
  }
  // How many elements from i on stand one after the other.
  int64_t run(int64_t i) const { return global_ == 0 ? size_ - i : segment_ - i % segment_; }

 private:
  int64_t axis_, size_ = 1, segment_ = 1, global_ = 0, offset_ = 0;
};

}  // namespace onnxtrain
