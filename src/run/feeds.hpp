// From a dataset to columns that are ready to be fed to a training: matched by name, adapted to the
// inputs' types and shapes, labels checked.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "data/open.hpp"
#include "engine/training.hpp"
#include "run/fit.hpp"

namespace onnxtrain {

struct FeedOptions {
  std::map<std::string, std::string> map;  // input -> column
  AdaptOptions adapt;
  std::vector<std::string> classes;  // names of class 0, 1, ...; empty: as the data counts them
};

struct LoadedData {
  FeedColumns feeds;
  std::string line;                             // the printed data line
  std::vector<int64_t> labels;                  // one per row when there are class labels
  std::vector<std::string> notes;               // what was decided while opening
  std::map<std::string, std::string> metadata;  // for exported models: classes, scaling, columns
};

// What a dataset needs to know about the model before it is opened (synthetic: sizes).
void describe_inputs(const Training& t, OpenOptions& o);
// Columns for the inputs of all training sections.
LoadedData feeds_for(const Dataset& data, const Training& t, const FeedOptions& o);
// The declared type of a graph input, as data/ wants it.
InputSpec input_spec(const ValueDef& d);
// The options that a model trained here carries in its metadata, where the caller gave none.
void options_from_metadata(const Model& m, FeedOptions& o, CsvOptions& csv);

}  // namespace onnxtrain
