// Settings of the run that is resumed.
#pragma once
#include <memory>
#include <string>

#include "run/folder/settings.hpp"
#include "run/hooks/observer.hpp"
#include "run/start.hpp"

namespace onnxtrain::run {

// Takes over what `resume` (a run folder or a checkpoint) was trained with: from its config.toml,
// or from the checkpoint when that is gone or incomplete. Returns the start that was read for it,
// so that a checkpoint is read once; null when config.toml has all.
std::shared_ptr<Start> settings_of_run(const std::string& resume, Settings& settings,
                                       Observer& observer);

}  // namespace onnxtrain::run
