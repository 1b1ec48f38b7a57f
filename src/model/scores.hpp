// What the loss of a training reads: which output of the model, where its classes lie, which label
// is ignored.
#pragma once
#include <optional>
#include <string>

#include "model/model.hpp"

namespace onnxtrain {

struct Scores {
  ValueId value = kNone;  // of the main graph
  std::string output;     // its name
  int64_t class_axis = 1;
  int64_t classes = 0;       // 0: not known
  bool probability = false;  // made by a Sigmoid: the border between two classes is 0.5, not 0
  bool log_loss =
      false;  // the loss is a mean negative log-likelihood: its exponential is the perplexity
  std::optional<int64_t> ignore_index;
};

// From the metadata that prepare wrote, or from the graphs of a file made elsewhere.
Scores describe_scores(const Model& m);
// The same of one output of several, with its loss and the input that is its target.
Scores describe_output(const Model& m, const std::string& output, const std::string& loss,
                       const std::string& target);

}  // namespace onnxtrain
