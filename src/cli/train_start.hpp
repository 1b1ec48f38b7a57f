// Where a training begins: a model that is prepared now, one that carries its training, or a
// checkpoint.
#pragma once
#include <memory>
#include <string>

#include "cli/settings.hpp"
#include "cli/train_flags.hpp"
#include "run/run_folder.hpp"

namespace onnxtrain::cli {

struct Start {
  std::shared_ptr<const Model> model;
  Position at;
  std::string folder, name;  // folder: of the run that is resumed
  bool prepared = false;     // by us, by these flags (now, or when the run began)
};

Start start(const TrainFlags& f);
// The run folder that a path to resume from belongs to: itself, or that of a checkpoint in it; ""
// when there is none.
std::string run_of(const std::string& resume);
// A run goes on as it began: flags that describe another training are refused (OT0004).
void refuse_changes(const Settings& settings, const Start& s, const std::string& resume);
// Schedules that span the run need its length in steps, which is known when the data is; and a
// resumed run may be given another --lr (new_rate) to schedule. Makes the model again if that
// changes it; a resumed run keeps its state. True when the model changed. new_schedule: another
// one than the run had.
bool fit_schedule(const TrainFlags& f, Start& s, int64_t steps, bool new_rate, bool new_schedule);
// The rate that the training starts from (before any schedule, when we made it), as text.
std::string starting_rate(const Start& s, Training& t);
// The step itself assigns the learning rate.
bool rate_is_scheduled(const Model& m);
// A log that is ahead of the checkpoint by more than one epoch: the files do not belong together.
void check_log(const RunFolder& folder, const Position& at);

}  // namespace onnxtrain::cli
