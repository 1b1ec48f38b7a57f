// Where a training begins: a model that is prepared now, one that carries its training, or a
// checkpoint.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "convert/prepare.hpp"
#include "run/folder/checkpoint.hpp"
#include "run/folder/folder.hpp"
#include "run/folder/settings.hpp"
#include "run/hooks/observer.hpp"

namespace onnxtrain::run {

// Asked for when a recipe is needed: one that is not may be wrong.
using RecipeMaker = std::function<Recipe()>;

// What happens to the model of a file before it is prepared (preprocessing in front of its input).
using ModelChange = std::function<Model(Model)>;

// prepare(), when the values of the only target are known: `auto` may choose another loss for them.
Model prepare_for(const Model& m, Recipe r, const Tensor& target);

struct Start {
  std::shared_ptr<Model> model;
  // The model that was prepared, with everything that was changed in it before; null when the file
  // or the run has its training. Dropped when the training begins: it holds the weights.
  std::shared_ptr<const Model> plain;
  Position at;
  std::string folder, name;          // folder: of the run that is resumed
  bool prepared = false;             // by us, by these settings (now, or when the run began)
  bool resumed = false;              // not from a MODEL
  std::vector<LossChoice> chosen;    // what `auto` decided
  std::vector<OddSetting> settings;  // with which hardly anything is learnt
  std::vector<LeftOut> left_out;     // weights that do not train although nothing freezes them
  std::vector<std::pair<std::string, std::string>> notes;  // label and text, to be told
};

// prepare, telling what was decided: the loss that `auto` chose, a batch size that is open now.
// A training that the model has already and that is replaced is warned about (OT3115).
Model prepare_told(const Model& m, const Recipe& r, Observer& observer);

// A model file without training gets the one that the recipe describes, but for its schedule (its
// length is not known yet). recipe_flag: a flag that was given and describes a training, "" when
// there is none; a file that has its own refuses it.
Start start_from_model(const std::string& path, uint64_t seed, const RecipeMaker& recipe,
                       const std::string& recipe_flag, const ModelChange& change = {});
// The first term of a recipe's loss; a recipe without any means `auto`.
LossTerm& first_loss(Recipe& r);
// Another loss than the one that was noted.
void note_loss(Start& s, const LossChoice& choice);
// What the data says about a model that was prepared here; the file is not read again.
// The loss that `auto` would have chosen had it known the target:
void choose_loss_again(Start& s, Recipe r, const LossChoice& better);
// Another recipe, and perhaps a change of the model:
void prepare_again(Start& s, Recipe r, const ModelChange& change = {});
// A run folder or a checkpoint.
Start start_from_run(const std::string& path);

// The schedule of a run that we prepared and that takes `steps` steps. A resumed run may be given
// another learning rate (new_lr) or schedule; its state stays.
void fit_schedule(Start& s, Recipe r, int64_t steps, bool new_lr, bool new_schedule,
                  Observer& observer);
// The learning rate that the training starts from (before any schedule, when we made it), as text.
std::string starting_lr(const Training& t, bool prepared);
// The step itself assigns the learning rate.
bool lr_is_scheduled(const Model& m);

// The run folder that a path to resume from belongs to: itself, or that of a checkpoint in it; ""
// when there is none.
std::string run_of(const std::string& resume);
// config.toml was edited after the checkpoint was written: what a training cannot change is an
// error (OT0004), other settings are told.
void compare_with_checkpoint(const Settings& settings, const Start& s, const std::string& resume,
                             Observer& observer);
// Does config.toml say another value than the checkpoint knows?
bool was_edited(const Settings& settings, const Start& s, const std::string& name);
// A run resumes as it began: settings that describe another training are refused (OT0004).
void refuse_changes(const Settings& settings, const Start& s, const std::string& resume);
// A log that is ahead of the checkpoint by more than one epoch: the files do not belong together.
void check_log(const Folder& folder, const Position& at);

// A run folder -> its best (or last) checkpoint; anything else as it is. OT4102 when the folder is
// no run.
std::string checkpoint_of(const std::string& run_or_file, const std::string& which,
                          Observer& observer);

}  // namespace onnxtrain::run
