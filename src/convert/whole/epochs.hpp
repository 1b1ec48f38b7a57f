// The graph of a whole training: epochs over steps, validation after each, the best epoch.
#pragma once
#include <functional>

#include "convert/whole/parts.hpp"

namespace onnxtrain::whole {

// Steps and evaluations for the sizes that batches have.
struct Sized {
  std::vector<Part> steps;  // per section, of a full batch
  std::vector<Part> last;   // of the smaller batch at the end of an epoch; empty: there is none
  std::vector<Part> check;  // evaluation of a full batch, or of any; empty: no validation
  std::vector<Part> check_last;  // of the smaller batch at the end of the validation rows
  int64_t steps_full = 0;        // per epoch; 0: follows from the number of rows given
  int64_t last_rows = 0;         // 0: as many as are left
  int64_t checks_full = 0, check_rows = 0;
};

class Epochs {
 public:
  Epochs(const Model& m, const WholeOptions& o, const RowInputs& rows, const Scores& scores,
         Scope& root, Sized parts);
  void build(WholeModel& out);

 private:
  using Values = Scope::Values;
  struct Start {
    std::string name;
    TypeInfo type;
    ValueId value;  // in the root
  };
  void add_state(const StepModel& s, const Model& m);
  void add_inputs(WholeModel& out);
  ValueId checked_order(ValueId order);
  using Require = std::function<void(ValueId, const std::string&)>;  // what must hold, its name
  void require_batches(ValueId order, const Require& require) const;
  void require_numbers(const std::vector<Part>& parts, const std::map<std::string, ValueId>& arrays,
                       const Require& require) const;
  ValueId row_count(Scope& s, ValueId array);
  ValueId given(Scope& s, const StepInput& i, const Values& state,
                const std::map<std::string, ValueId>& batch) const;
  // One training step on the rows `index`; the loss of every section that has one.
  Values step(Scope& s, const std::vector<Part>& parts, ValueId index, Values& state) const;
  // All steps of an epoch; per section with a loss its losses.
  Values steps(Scope& s, ValueId row_order, Values& state) const;
  Values open_rest(Scope& s, ValueId row_order, const Values& losses, Values& state) const;
  Values full_steps(Scope& s, ValueId row_order, Values& state) const;
  // Adds loss times rows, right answers and their number of one batch.
  void check_batch(Scope& s, const Part& part, ValueId from, ValueId to, const Values& state,
                   Values& sums) const;
  bool has_accuracy() const;
  // loss and, where there is one, accuracy
  Values validate(Scope& s, const Values& state) const;
  // carried: state, epochs, [best value, best loss, best epoch, best weights]
  Values epoch(Scope& s, ValueId row_order, Values& carried) const;
  void judge(Scope& s, const Values& losses, const Values& metrics, Values& carried) const;
  ValueId stop(Scope& s, const Values& carried) const;
  void name_outputs(WholeModel& out, const Scope::Result& r);
  std::string free_name(std::string name) const;
  bool watches() const { return o_.best || o_.patience > 0; }
  bool in_scope_loop() const { return o_.loop == "loop"; }

  const WholeOptions& o_;
  const RowInputs& rows_;
  const Scores& scores_;
  Scope& root_;
  Sized parts_;
  std::vector<Start> carried_, fixed_;     // state that steps change, and state that they read
  std::vector<size_t> weights_;            // of carried_: what the inference model has
  std::map<std::string, ValueId> arrays_;  // in the root, by input of the step
  std::map<std::string, ValueId> valid_;
  std::string target_;  // the target that scores are compared with
  ValueId order_ = kNone;
};

}  // namespace onnxtrain::whole
