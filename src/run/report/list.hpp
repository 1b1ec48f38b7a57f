// The runs in a folder, and how far each came.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
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

Summary summary_of(const std::string& folder);
std::vector<Summary> list_runs(const std::string& folder);
// The runs in a folder, or the folder itself when it is one; paths, sorted.
std::vector<std::string> runs_in(const std::string& folder);
// Settings that are not the same in all runs: per run (key, value). What only concerns its look,
// its place or the way it was resumed is left out.
std::vector<std::vector<std::pair<std::string, std::string>>> differing_settings(
    const std::vector<std::string>& runs);

}  // namespace onnxtrain::run
