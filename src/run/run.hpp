// A run from its beginning to its report, the same for the command line, the C API and Python:
// where the training starts, data and split, length and schedule, run folder, epochs, evaluation.
#pragma once
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "distributed/communicator.hpp"
#include "run/data/parts.hpp"
#include "run/engine.hpp"
#include "run/fit.hpp"
#include "run/folder/environment.hpp"
#include "run/metrics/evaluate.hpp"
#include "run/metrics/other_outputs.hpp"
#include "run/new/preprocess.hpp"
#include "run/start.hpp"

namespace onnxtrain::run {

// A run that is described: files by name, a recipe, settings with their sources.
struct Request {
  std::string model, resume;  // one of them; resume: a run folder or checkpoint
  // Of `resume`, when it was read already (settings_of_run).
  std::shared_ptr<Start> start = nullptr;
  std::string out;      // run folder; empty: that of the run, or runs/NAME-NNN
  std::string name;     // NAME; empty: the model's
  std::string command;  // as it was typed, for command.txt
  DataRequest data;
  // Preprocessing of the table's columns in front of the model's input; a resumed run has it.
  std::optional<PreprocessOptions> preprocess;
  uint64_t seed = 0;
  RecipeMaker recipe;       // for a model without training, and for schedules of a run
  std::string recipe_flag;  // of start_from_model
  bool balanced = false;    // classes weigh by their number of training rows
  ProgramOptions program;
  FitOptions fit;
  Cut cut;
  Communicator* communicator = nullptr;  // null: one process
};

// Data that is handed over: arrays, or a stream of batches.
struct Given {
  const Dataset* data = nullptr;
  BatchStream* stream = nullptr;  // instead of data
  const Dataset* valid = nullptr;
};

// How `fit` was called with data that is handed over. What is not in `given` is taken from the run
// that is resumed (batch, valid, shuffle), or the default.
struct FitCall {
  FitOptions fit;  // epochs and steps are on top of what was trained, unless a run is resumed
  FeedOptions feed;
  double valid = 0;  // fraction of the rows
  // Names of the columns of the first input and of the targets (a table of another library).
  std::vector<std::string> features, targets;
  std::string out;          // run folder; empty: nothing is written
  uint64_t keep_bytes = 0;  // arrays up to this size are kept in the folder
  std::set<std::string> given;
};

class Run {
 public:
  // Begins or resumes the run that is described; opens its data, writes nothing.
  Run(Request q, Settings settings, Observer& observer);
  // A training that is there already.
  Run(std::unique_ptr<Training> t, uint64_t seed);
  // Resumes where a run folder or a checkpoint stopped.
  Run(const std::string& run_or_checkpoint, const ProgramOptions& o);

  // With the state as it is now, also when an engine makes the steps.
  Training& training() { return engine_ ? stepper_->training() : *t_; }
  const Training& training() const { return engine_ ? stepper_->training() : *t_; }
  // Steps are made there from now on.
  void set_engine(std::unique_ptr<Engine> engine);
  bool has_engine() const { return engine_ != nullptr; }
  Stepper& stepper() { return *stepper_; }  // only with an engine
  const Settings& settings() const { return settings_; }
  const Position& at() const { return at_; }
  const Parts& parts() const { return parts_; }
  const FitOptions& options() const { return q_.fit; }
  bool prepared() const { return prepared_; }
  int64_t steps() const { return steps_; }  // of the whole run that was described
  const Folder& folder() const { return *folder_; }
  MemoryUse memory() const { return memory_use(*t_, q_.program.limits.memory); }

  // Batches are cut into blocks of rows from now on (0: one for each process, or as many as the run
  // had), which are computed by these processes together (null: by this one). Throws OT5007 when
  // model or position are not the same in all.
  void distribute(Communicator* c, const Cut& cut);
  // One of several processes writes and speaks.
  bool speaks() const { return !q_.communicator || q_.communicator->rank() == 0; }
  // Makes or enters the run folder and writes how the run was begun. Another run that is there is
  // set aside.
  void open_folder(Observer& observer);
  // The run that was described. profiled: somebody else watches the operators.
  FitResult fit(const std::atomic<int>& stop, bool profiled, Observer& observer);
  // Data that is handed over, as often as one likes.
  FitResult fit(const Given& given, FitCall call, const std::atomic<int>& stop, Observer& observer);

  // A step on values that are handed over (own_steps.cpp): all training sections, or section
  // `which`. Labels that the file writes become class numbers; before the first step, targets are
  // checked as fit checks them. The loss.
  double step(Feeds feeds, int which);
  // n steps on arrays in the order of the training's slots, which are replaced; no engine.
  double step_arrays(std::vector<ArrayRef>& arrays, int which, uint64_t n);

  Evaluation evaluate(const Dataset& d, int64_t batch);
  // How rows differ from those of the training; "" when they do not (usual_values.hpp).
  std::string unlike(const FeedColumns& rows) const;
  void save(const std::string& path);
  // The training is over and its memory is wanted.
  void release_training() {
    stepper_ = nullptr;
    engine_ = nullptr;
    t_ = nullptr;
  }

 private:
  void open_data(Start& s, Observer& observer);
  LossChoice choose_by_columns(Start& s);
  void scale_in_graph(Start& s, const Known& known);
  void balance_classes(Start& s);
  void note_class_weights(Start& s) const;
  void check_data(const Model& m, bool goes_on, Observer& observer);
  void warn_if_data_changed(Observer& observer) const;
  void warn_about_updates(Observer& observer) const;
  void cut_batches();
  void check_processes(const std::string& settings) const;
  bool goes_on_in(const std::string& folder) const;
  void write_begin(const Settings& settings);
  void write_end() const;
  std::unique_ptr<Batches> rows_of(const FitOptions& o, Observer& observer) const;
  std::unique_ptr<Batches> batches_of(BatchStream& stream) const;
  FitResult run_loop(Batches& train, const FitOptions& o, Observer& observer);
  void take_parts(const Given& given, const FitCall& call, const std::string& valid_file,
                  Observer& observer);
  void count_from_here(FitOptions& o, bool stream, bool goes_on);
  void enter(const std::string& out, bool goes_on);
  bool is_label(const ValueDef& d);
  void check_first_target(const std::string& name, const Tensor& given) const;

  Request q_;
  Settings settings_;
  std::unique_ptr<Training> t_;
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Stepper> stepper_;  // over engine_
  Position at_;
  Parts parts_;
  std::unique_ptr<Folder> folder_;
  std::unique_ptr<Environment> environment_;
  std::string origin_, name_;  // origin: the folder of the run that is resumed
  bool prepared_ = false, resumed_ = false;
  Cut known_cut_;  // of the run that is resumed
  int64_t steps_ = 0;
  // Labels that the file writes -> class numbers; found out by the first own step.
  std::optional<std::map<int64_t, int64_t>> labels_;
};

}  // namespace onnxtrain::run
