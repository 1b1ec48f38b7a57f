// Targets and outputs are checked against the loss before anything is learnt: by the graph, by the
// values of the target over all rows, and by what the model gives for the first batch.
#pragma once
#include <string>

#include "convert/prepare.hpp"
#include "run/data/feeds.hpp"
#include "run/hooks/observer.hpp"

namespace onnxtrain::run {

// adapted: the column as it is fed.
TargetFacts target_facts(const Dataset& data, const std::string& column, const Column& adapted);

// The kind of loss that prepare wrote; "" for a training made elsewhere.
std::string loss_kind(const Model& m);

// A loss that cannot work on the output, as the graph shows (OT1290).
void check_loss(const Model& m);
// Text for numbers (OT2162), values that the loss does not take (OT2163) or the output never
// reaches (OT2166).
void check_target(const Model& m, const LoadedData& data, Observer& observer);

// Has the output to be looked at? The graph may show that it fits.
bool outputs_in_doubt(const Model& m);
// OT1290 when the output for some rows is not what the loss takes.
void check_outputs(const Model& m, const Tensor& scores);

// The loss that `auto` would have chosen had it known the target: bce_logits or bce for 0 and 1
// where it chose mse. Empty: what it chose stands.
LossChoice better_choice(const Model& m, const LossChoice& chosen, const TargetFacts& target);

// An error about the target with a fix that this model allows.
[[noreturn]] void rethrow_for_target(const Misfit& e, const Model& m, const Dataset& data,
                                     const std::string& column);

}  // namespace onnxtrain::run
