// Training and inference behaviour (ruling G7): the main graph is pure inference; the algorithm
// carries a training-mode copy of what depends on BatchNormalization and Dropout.
#pragma once
#include "convert/analysis.hpp"
#include "convert/step/step_builder.hpp"

namespace onnxtrain {

// Main graphs written in training form become their inference form; true if something changed.
bool make_inference_form(Model& m);

// Exporters that merge equal initializers leave Identity nodes in their place: fresh biases, scales
// and running statistics (every element the same) and cloned layers (both sides have names of
// parameters) become variables of their own again, under the name that the Identity has. Tied
// weights, which are one parameter for the exporter, stay tied. True if something changed.
bool separate_merged_initializers(Model& m);

// Exporters that fold the transposition of an embedding which is also the output layer leave two
// tensors: the second becomes the transpose of the first (or the first itself) again.
bool tie_copied_embeddings(Model& m);

// A file that has all its weights in Constant nodes, in bodies too: they become initializers.
bool adopt_constant_weights(Model& m);

// Weights that are initializers of a branch or of a loop's body become those of the main graph.
bool lift_body_weights(Model& m);

// All of them, the last first; before that, weights in attributes (attribute_weights.hpp).
void restore_parameters(Model& m);

// A file made for one batch size takes any; true if it did not and does now.
bool open_batch(Model& m, const OpTable& ops);

// Copies the part of the main graph between the first mode-dependent operator and `needed` into
// the algorithm, in training mode, and binds running statistics.
void add_training_copy(StepBuilder& s, const Recipe& r, const std::vector<ValueId>& needed,
                       const std::vector<ValueId>& parameters);

}  // namespace onnxtrain
