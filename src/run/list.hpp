// The runs in a folder, and how far each came.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace onnxtrain::run {

struct Summary {
  std::string folder;
  int64_t epochs = 0;
  double train_loss = 0;
  std::string metric;  // the watched number; empty: no epoch is finished
  double best = 0;
  int64_t best_epoch = 0;
};

std::vector<Summary> list_runs(const std::string& folder);

}  // namespace onnxtrain::run
