// From a dataset to columns that are ready to be fed to a training: matched by name, adapted to the
// inputs' types and shapes, labels checked.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "data/open.hpp"
#include "engine/training.hpp"
#include "train/fit.hpp"

namespace onnxtrain {

struct FeedOptions {
  std::map<std::string, std::string> map;  // input -> column
  AdaptOptions adapt;
};

struct LoadedData {
  FeedColumns feeds;
  std::string line;             // the printed data line
  std::vector<int64_t> labels;  // one per row when there are class labels
};

// What a dataset needs to know about the model before it is opened (synthetic: sizes).
void describe_inputs(const Training& t, OpenOptions& o);
// Columns for the inputs of all training sections.
LoadedData feeds_for(const Dataset& data, const Training& t, const FeedOptions& o);
// The declared type of a graph input, as data/ wants it.
InputSpec input_spec(const ValueDef& d);

}  // namespace onnxtrain
