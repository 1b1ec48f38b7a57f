// Flags that describe a training: shared by `prepare` and `train`.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/common/commands.hpp"
#include "convert/prepare.hpp"

namespace onnxtrain::cli {

struct RecipeFlags {
  std::string loss = "auto", label, output, optimizer = "adamw", schedule = "constant",
              bn_variance = "torch", class_weights, augment;
  std::optional<double> lr, weight_decay, momentum;
  std::optional<int64_t> ignore_index;
  double clip = 0, clip_value = 0, label_smoothing = 0;
  std::vector<std::string> freeze, only, schedule_numbers, optimizer_numbers;
  int accumulate = 1;
  bool reset = false, lowered = false, as_is = false, strict = false;

  // brief: only loss, optimizer, lr and schedule are shown by --help
  void add_to(Registry& r, CLI::App* c, bool brief);
  // steps: total number when known, for schedules that need it
  Recipe recipe(uint64_t seed, int64_t steps) const;
  // a flag that was given and only makes sense for a file without training; "" when there is none
  std::string first_given() const;
  // --class-weights balanced: they follow from the training rows.
  bool balanced() const { return class_weights == "balanced"; }

 private:
  void set_optimizer(OptimizerSpec& o) const;
  std::vector<LossTerm> loss_terms() const;
  CLI::App* app_ = nullptr;
  bool with_data_ = false;  // of `train`
};

}  // namespace onnxtrain::cli
