// The learning-rate range test: steps with a learning rate that grows from tiny to huge, on a copy
// of the state.
#pragma once
#include <vector>

#include "engine/training.hpp"
#include "run/data/feeds.hpp"

namespace onnxtrain::run {

struct LrFinder {
  struct Point {
    double lr, loss;  // loss: smoothed
  };
  std::vector<Point> points;
  double suggestion = 0;  // where the loss falls fastest; 0: it never fell
};

// Leaves the state as it was.
LrFinder find_lr(Training& t, const FeedColumns& data, int64_t batch, uint64_t seed,
                 int steps = 100);

}  // namespace onnxtrain::run
