// From a dataset to columns that are ready to be fed to a training: matched by name, adapted to the
// inputs' types and shapes, labels checked.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "data/adapt.hpp"
#include "data/open.hpp"
#include "model/model.hpp"

namespace onnxtrain::run {

// Columns that are ready to be fed, by input name, in the order of `names`.
struct FeedColumns {
  std::vector<std::string> names;
  std::vector<ColumnPtr> columns;
  std::string label;  // the name among them that is the target; may be empty
  int64_t rows() const { return columns.empty() ? 0 : columns[0]->rows(); }
  FeedColumns subset(const std::vector<int64_t>& rows) const;
};

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

// What a dataset needs to know about the model before it is opened (synthetic: sizes). inputs: of
// the training (Training::slots, training_inputs).
void describe_inputs(const Model& m, const std::vector<ValueDef>& inputs, OpenOptions& o);
// Columns for the inputs of all training sections.
LoadedData feeds_for(const Dataset& data, const Model& m, const std::vector<ValueDef>& inputs,
                     const FeedOptions& o);
// One array, or whatever else an input takes, as feeds_for would feed it.
Value fitted(const Model& m, const ValueDef& input, const Value& given);
// The declared type of a graph input, as data/ wants it.
InputSpec input_spec(const ValueDef& d);
// Inputs that the main graph has are data, the others are targets.
bool is_target(const Model& m, const std::string& name);
// The options that a model trained here carries in its metadata, where the caller gave none.
void options_from_metadata(const Model& m, FeedOptions& o, CsvOptions& csv);

}  // namespace onnxtrain::run
