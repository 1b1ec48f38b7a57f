// Sequences that are only taken apart again are tensors: no sequence is needed to compute, plan or
// differentiate them.
#pragma once
#include "op/op.hpp"

namespace onnxtrain {

// SplitToSequence and SequenceConstruct whose every reader is SequenceAt with a constant position,
// SequenceLength or ConcatFromSequence become Split, Identity, a number and Concat. Results keep
// their values. True if something changed; types behind them are then better known than before.
bool open_sequences(Graph& g, const OpTable& table);

}  // namespace onnxtrain
