// What validation computes, as a step for other runtimes: loss and scores of the inference form.
#pragma once
#include "convert/portable/portable.hpp"
#include "model/scores.hpp"

namespace onnxtrain::portable {

inline constexpr const char* kScoresOutput = "onnxtrain_scores";

// The training with a section 0 that has loss and scores of the inference form and no updates; the
// scores are its output kScoresOutput, when there are any.
Model evaluation_model(const Model& m, const Scores& scores);

// That section in the form of a step: nothing is fed back.
StepModel make_evaluation(const Model& m, const StepOptions& o, const OpTable& ops);

}  // namespace onnxtrain::portable
