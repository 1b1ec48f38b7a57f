// The best epoch of a run: which number is watched, and the files that hold its weights.
#pragma once
#include <map>
#include <string>

#include "run/folder/checkpoint.hpp"
#include "run/folder/folder.hpp"
#include "run/hooks/observer.hpp"

namespace onnxtrain::run {

// Is this epoch the best so far? The watched number is the first metric on validation data, its
// loss (also where EpochResult says so), or the training loss. Between equal metrics the lower
// validation loss decides. Sets EpochResult::best and why, and the position's record of it.
void judge(EpochResult& e, Position& at);

// Writes the inference model of a training.
void export_inference(Model m, const std::map<std::string, std::string>& metadata,
                      const std::string& path);

// Files of the best epoch may have been removed since: what is left of it counts. True when nothing
// is left; then the record in `at` is gone, too.
bool best_is_lost(const Folder& folder, Position& at,
                  const std::map<std::string, std::string>& metadata, Observer& observer);

}  // namespace onnxtrain::run
