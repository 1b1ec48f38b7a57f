// Training and inference behaviour (ruling G7): the main graph is pure inference; the algorithm of
// a training step holds a training-mode copy of what depends on BatchNormalization and Dropout.
// Which value is the copy of which stands in ValueDef::inference_form. Files do not say it where
// the two graphs show it: a copy is the same operator over the same or copied operands.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "model/model.hpp"

namespace onnxtrain {

// Metadata of a file: JSON object, value of an algorithm -> value of the main graph, for copies
// that the graphs do not show (the lowered form of a BatchNormalization, a module that another
// framework traced twice).
inline constexpr const char* kInferenceForm = "onnxtrain.inference_form";
// Metadata: the name of mixup's share of a row in itself. The loss of evaluation is that of 1.
inline constexpr const char* kMixupShare = "onnxtrain.mixup";
void leave_out_mixup(Graph& g, const std::map<std::string, std::string>& metadata);

bool is_batch_norm(const Node& n);
bool is_dropout(const Node& n);
// Does this BatchNormalization or Dropout behave as in training?
bool in_training_form(const Graph& g, const Node& n);

// A value of an algorithm, and the value of the main graph that it is a training-mode copy of.
using TrainingCopy = std::pair<ValueId, ValueId>;

// Every copy that the two graphs show; values that have ValueDef::inference_form already are
// taken as said.
std::vector<TrainingCopy> find_copies(const Graph& main, const Graph& algorithm);

// Of the copies that are said by ValueDef::inference_form, those that find_copies would not find
// without being told.
std::vector<TrainingCopy> hidden_copies(const Graph& main, const Graph& algorithm);

// Sets ValueDef::inference_form in all steps, from the graphs and from the model's metadata. What
// a copy is computed from by the same operator as its original is a copy, too.
void mark_training_copies(Model& m);

}  // namespace onnxtrain
