// Training: obeys a model's training steps. initialize, step() = all algorithms in list order,
// step(i) = one of them; state lives here between steps.
#pragma once
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "distributed/block_options.hpp"
#include "engine/session.hpp"

namespace onnxtrain {

class InitialValues;
class Communicator;
struct BatchRows;

struct StepResult {
  double loss = 0;                  // of the last algorithm that has one; NaN if none has
  std::vector<NamedValue> outputs;  // of every algorithm run, in order
};

// A step whose loss, gradients or new state would not be finite. Nothing was written: the state is
// what it was before the step.
class NotFiniteError : public Error {
 public:
  NotFiniteError(std::string what, std::string where, uint64_t step, double last_loss,
                 double last_norm);
  std::string subject;  // "loss became NaN"
  std::string origin;   // "output 'y' of 'Exp_14' (Exp)"
  uint64_t step;        // counted from 1
  double last_loss;     // of the last good step; NaN when there was none
  double last_norm;     // gradient norm of the last good step; -1 when not known
  // What to do: at the first step no learning rate has had an effect yet.
  static std::string advice(uint64_t step, double last_loss);
  // "; last finite loss 2.31, gradient norm 4e+06"
  static std::string history(double loss, double norm);
};

// The loss among the first `own_outputs` outputs of a combined graph: the one named "loss", else
// the first floating-point scalar; -1 if there is none.
int find_loss(const Graph& g, size_t own_outputs);

// Inputs of all training steps of a model together, in the order of first use: what
// Training::slots() will be.
std::vector<ValueDef> training_inputs(const Model& m);

class Training {
 public:
  Training(std::shared_ptr<const Model> model, uint64_t seed, ProgramOptions options = {});
  ~Training();

  // Runs every initialization in list order and assigns (a file without one: nothing changes).
  void initialize();
  // which < 0: all algorithms in list order, assigning after each. outputs: false leaves everything
  // but the loss out of the result.
  StepResult step(const Feeds& feeds, int which = -1, bool outputs = true);

  // Cuts every batch into this many blocks of rows from now on, which are computed one by one; 1
  // and one process: not cut. With a communicator (which must outlive this) a step takes the rows
  // of this process, in the order of ranks; `blocks` is a multiple of their number.
  void set_blocks(int blocks, Communicator* communicator = nullptr, BlockOptions how = {});
  int blocks() const { return blocks_; }
  const BlockOptions& block_options() const { return how_; }
  Communicator* communicator() const { return communicator_; }
  // Rows of the last step in all processes.
  int64_t batch_rows() const { return batch_rows_; }
  // Bits that every process learns of in the next step: what one or another has wished.
  void wish(int bits) { wish_ = bits; }
  int wishes() const { return wishes_; }
  // Optimizer state that processes share out (BlockOptions::shard), from the first step on.
  struct Shards {
    size_t bytes = 0;                // of all
    std::vector<size_t> of_rank;     // empty: nothing is shared out
    std::vector<std::string> whole;  // "'w': why", what is not
  };
  Shards shards() const;
  bool is_shared_out(const std::string& state) const;
  // The whole state in process `root`, or in all (root < 0), until the next step. All processes
  // call it at the same step, else OT5057.
  void gather_state(int root = -1);

  // Whether a step is judged before it writes anything (NotFiniteError); on unless switched off.
  void set_check_finite(bool on) { check_finite_ = on; }
  // Euclidean norm of what the optimizers read in the last step; -1 when not known.
  double gradient_norm() const { return last_norm_; }
  // How many gradients the optimizers read in the last step, how many of them were exactly 0
  // everywhere, and how many of float16 were 0 or hardly more than its smallest numbers.
  struct Zeros {
    int gradients = 0, zeros = 0, narrow = 0;
  };
  Zeros zero_gradients() const { return last_zeros_; }

  // Shows what the optimizers would read in a step on these feeds; nothing is written. Not for a
  // training in blocks.
  void read_gradients(const Feeds& feeds, const GradientReader& read);

  // Inputs of all algorithms together, in the order of first use.
  const std::vector<ValueDef>& slots() const { return slots_; }
  // An input takes another element type than the file declares from now on; every node that reads
  // it must work with both (a Cast).
  void accept(const std::string& input, DType type);
  // n steps on arrays, one per slot (no data: not given), as step(); returns the last loss. From
  // the second call with the same types on nothing is allocated.
  double step_arrays(const ArrayRef* arrays, int which = -1, uint64_t n = 1);

  // Outputs of the last step, of every algorithm that ran. Copies are made when they are asked for.
  size_t outputs() const;
  const std::string& output_name(size_t k) const;
  bool output_is_state(size_t k) const;  // a new value of a state variable
  Value output(size_t k) const;

  int algorithms() const;
  // Inputs algorithm i needs, in order (ruling G6: main inputs it does not use are not among them).
  std::vector<std::string> input_names(int i) const;
  // The declared type of an input of algorithm i.
  const ValueDef& input(int i, const std::string& name) const;

  State& state() { return *state_; }
  const State& state() const { return *state_; }
  uint64_t step_count() const { return step_count_; }
  void set_step_count(uint64_t n) { step_count_ = n; }
  uint64_t seed() const { return seed_; }
  void set_seed(uint64_t s) { seed_ = s; }
  // The learning rate: the scalar initializer that feeds the optimizers' R. Error if there is none.
  double lr() const;
  void set_lr(double r);
  bool has_lr() const { return !lr_name_.empty(); }

  // The model; values of state variables in it are the current ones.
  const Model& source() const { return *model_; }
  // What a state variable began with; nothing when that stood in a file that has changed.
  std::optional<Tensor> initial(const std::string& name) const;
  // What state variables and the plans made so far take.
  PlannedMemory memory() const;
  // The model with the current state as its initializers.
  Model snapshot() const;
  Plan& plan_for(const Feeds& feeds, int which);
  // The plans made so far: for reports.
  std::vector<const Plan*> plans() const;
  // Watches every algorithm's steps from now on; null: nobody.
  void set_observer(StepObserver* observer);
  ThreadPool& pool() { return *pool_; }
  // At most so many threads, unless a number was asked for (ProgramOptions::threads).
  void limit_threads(int threads);
  // For programs that run on the same state (evaluation).
  const std::shared_ptr<State>& shared_state() const { return state_; }
  const std::shared_ptr<ThreadPool>& shared_pool() const { return pool_; }

 private:
  struct Algorithm;
  template <class F>
  double run_sections(int which, const F& run);
  template <class F>
  void run_judged(Algorithm& a, const F& run);
  void run_algorithm(Algorithm& a, const ArrayRef* arrays);
  void feed_arrays(Algorithm& a);
  static bool were_checked(const Algorithm& a);
  void run_blocks(Algorithm& a);
  void cut_batch(const ArrayRef* arrays);
  [[noreturn]] void refuse_blocks(Algorithm& a);
  [[noreturn]] void not_finite_error(double loss, const std::string& name, std::string origin);
  double loss_of(const Algorithm& a) const;
  double step_values(const Feeds& feeds, int which);
  void remember_outputs(int which);
  void check_which(int which) const;
  [[noreturn]] void refuse(Algorithm& a, const Guard& guard);
  // State as it was; of what is shared out, what this process has.
  struct Kept {
    State* state;
    std::string name;
    Tensor value;
  };
  void keep(const std::string& name, std::vector<Kept>& kept) const;
  static void restore(const std::vector<Kept>& kept);
  void check_written(const std::vector<Kept>& before);
  std::string first_of_all(const std::string& name) const;
  int64_t meet(int64_t rows);
  void take_state(const Model& given, bool whole);
  void add_algorithm(const TrainingStep& step);
  std::shared_ptr<const Model> model_;
  std::unique_ptr<InitialValues> initial_;
  std::shared_ptr<State> state_;
  std::shared_ptr<ThreadPool> pool_;
  std::vector<std::unique_ptr<Algorithm>> algorithms_;
  std::vector<ValueDef> slots_;
  std::vector<ArrayRef> arrays_;                      // of step()
  std::vector<std::pair<int, size_t>> last_outputs_;  // algorithm, output
  int last_which_ = -2;
  ProgramOptions options_;
  int blocks_ = 1;
  BlockOptions how_;
  Communicator* communicator_ = nullptr;
  std::unique_ptr<BatchRows> cut_;
  int64_t batch_rows_ = 0;
  int wish_ = 0, wishes_ = 0;
  bool gathered_ = false;  // whole state in some process: until the next step
  int gathered_in_ = 0;
  struct Told;                 // what every process says before a step
  std::vector<Told> said_;     // by rank, in meet()
  std::vector<int64_t> told_;  // their rows
  std::string lr_name_;
  uint64_t seed_ = 0, step_count_ = 0;
  bool check_finite_ = true;
  double last_loss_ = std::numeric_limits<double>::quiet_NaN(), last_norm_ = -1;
  Zeros last_zeros_;
};

}  // namespace onnxtrain
