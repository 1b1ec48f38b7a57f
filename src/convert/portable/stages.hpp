// The passes of the portable form that change more than one node at a time.
#pragma once
#include "convert/portable/portable.hpp"
#include "convert/portable/rewrite.hpp"

namespace onnxtrain::portable {

constexpr int kOldestOpset = 13, kNewestOpset = 22;  // of portable steps

// LSTM, GRU and RNN of a training as Scan, before it is lowered.
void scan_recurrent(Model& m, const OpTable& ops);
// Which whole numbers inputs of the step may hold, before anything is rewritten.
void describe_ranges(StepModel& s);
// float64 arithmetic inside the step in float32. Inputs or state of other types: refused.
void only_float32(Graph& g, const Context& c);
// Updates of small state tensors that are written alike, as one. `updates`: outputs by name.
void join_updates(Graph& g, const std::vector<std::string>& updates, const Context& c);
// MaxPool with Indices serves those who need the values alone.
void share_pools(Graph& g);
// Every node in the form of one opset.
void set_opset(Model& m, int opset, const OpTable& ops);
// Labels, indices and counters as int32; shapes stay int64.
void int32_indices(Graph& g, const Context& c);
// Random nodes from a counter that is part of the state, or from inputs that the caller fills.
void spell_random(StepModel& s, const StepOptions& o, const Context& c);
// Throws for nodes that are not in the portable set; warnings about the named runtime.
void check_plain(const StepModel& s, const StepOptions& o, std::vector<std::string>& warnings);

}  // namespace onnxtrain::portable
