// Loss terms as nodes of the algorithm.
#pragma once
#include "convert/analysis.hpp"
#include "convert/step/step_builder.hpp"

namespace onnxtrain {

// The scalar loss: the weighted sum of all terms. Adds the target inputs. share: of mixup, how much
// of a row is itself; the rest is the next row's, and so is the loss. kNone: no mixup.
ValueId add_losses(StepBuilder& s, const std::vector<LossTerm>& terms,
                   const std::vector<TermSource>& sources, ValueId share = kNone);

// The name of the input that a term reads as its target, in the order of the recipe's terms: the
// recipe's word, or label, label_1, ...; something else when the model has a tensor of that name.
std::string target_name(const Graph& main, const LossTerm& t, size_t index);

// A copy of `from`'s nodes in the algorithm: `given` are values of `from` already present here
// (inputs); constants are copied. Returns where every value went.
std::map<ValueId, ValueId> inline_graph(StepBuilder& s, const Graph& from,
                                        std::map<ValueId, ValueId> given,
                                        const std::string& prefix);

}  // namespace onnxtrain
