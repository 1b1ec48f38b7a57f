// The options of `train`.
#pragma once
#include <string>

#include "cli/flags/data_flags.hpp"
#include "cli/flags/limit_flags.hpp"
#include "cli/flags/preprocess_flags.hpp"
#include "cli/flags/recipe_flags.hpp"
#include "cli/processes/processes.hpp"
#include "run/run.hpp"

namespace onnxtrain::cli {

struct TrainFlags {
  std::string model, valid = "0.1", out, resume, progress = "auto", config, profile,
                     engine = "native";
  LimitFlags limits;
  DataFlags data;
  PreprocessFlags preprocess;
  RecipeFlags recipe;
  ProcessFlags processes;
  run::FitOptions fit;
  uint64_t seed = 0;
  int threads = 0;
  int64_t overfit = 0;
  bool quiet = false, dry_run = false, no_shuffle = false, allow_non_finite = false,
       as_json = false, find_lr = false;
  CLI::App* app = nullptr;

  CLI::App* add_to(Registry& r);
  // What the flags ask for; after values from elsewhere have been applied to them.
  run::Request request() const;

 private:
  void add_look_flags(Registry& r, CLI::App* c);
};

}  // namespace onnxtrain::cli
