// What a run folder knows of a `fit` that was called with arrays: its settings in config.toml, and
// the arrays themselves when they are small.
#pragma once
#include "run/run.hpp"

namespace onnxtrain::run {

// The settings of a call, for config.toml. recalled: those that come from the run that is resumed.
Settings settings_of(const FitCall& call, const std::set<std::string>& recalled, uint64_t seed);
// Takes over what the call does not say: batch, valid, shuffle. Returns their names; valid may be
// the name of a file (a run of the command line), then it is left in `valid_file`.
// in_checkpoint: the settings that the checkpoint holds, for a folder without config.toml.
std::set<std::string> recall(const Folder& folder, FitCall& call, std::string& valid_file,
                             const std::string& in_checkpoint = {});

// The arrays, when they are small enough and numbers.
NamedTensors kept_arrays(const Given& given, uint64_t most);
struct KeptData {
  Dataset data, valid;
  bool has_valid = false;
};
// An error when the folder holds none ("": there is no run).
KeptData recall_data(const std::string& folder);

}  // namespace onnxtrain::run
