// Flags that describe a training: shared by `prepare` and `train`.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "convert/prepare.hpp"

namespace onnxtrain::cli {

struct RecipeFlags {
  std::string loss = "auto", label, output, optimizer = "adamw", schedule = "constant";
  double lr = 0, weight_decay = -1, momentum = -1, clip = 0, clip_value = 0, label_smoothing = 0;
  std::vector<std::string> freeze, only, schedule_numbers;
  int accumulate = 1;
  bool reset = false, lowered = false, as_is = false;

  void add_to(CLI::App* c);
  // steps: total number when known, for schedules that need it
  Recipe recipe(uint64_t seed, int64_t steps) const;
  // true when the user gave a flag that only makes sense for a file without training
  bool any_given() const;

 private:
  CLI::App* app_ = nullptr;
};

}  // namespace onnxtrain::cli
