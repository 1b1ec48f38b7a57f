// From a dataset to columns that are ready to be fed to a training: matched by name, adapted to the
// inputs' types and shapes, labels checked.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "data/adapt.hpp"
#include "data/open.hpp"
#include "model/model.hpp"

namespace onnxtrain {
class Training;
}

namespace onnxtrain::run {

// Columns that are ready to be fed, by input name, in the order of `names`.
struct FeedColumns {
  std::vector<std::string> names;
  std::vector<ColumnPtr> columns;
  std::string label;  // the name among them that is the target; may be empty
  int64_t rows() const { return columns.empty() ? 0 : columns[0]->rows(); }
  FeedColumns subset(const std::vector<int64_t>& rows) const;
};

// (v - mean) / std of every element of a row: mean and standard deviation (--scale standard), or
// the smallest value and the range (--scale minmax).
struct ColumnScale {
  std::vector<float> mean, std;
};
inline bool is_measured_scale(const std::string& scale) {
  return scale == "standard" || scale == "minmax";
}

struct FeedOptions {
  std::map<std::string, std::string> map;    // input -> column, as the user says
  std::map<std::string, std::string> usual;  // the same of the run: where the data has such columns
  AdaptOptions adapt;
  std::vector<std::string> classes;  // names of class 0, 1, ...; empty: as the data counts them
  std::string text;                  // how text columns are read (run/data/text.hpp), as JSON
  std::vector<std::string> tokens;   // inputs that they feed
  bool unnamed_classes = false;      // the run was trained on class numbers without names
  std::map<std::string, ColumnScale> standard;  // by input; an input without stays as it is
};

// The values of the first target, over all rows.
struct TargetFacts {
  std::string column;                    // its name in the data
  std::vector<std::string> classes;      // names, when it is text
  std::vector<int64_t> ids;              // of the rows, when it is text
  double min = 0, max = 0, outside = 0;  // outside: share of values that are not in 0..1
  bool two_values = false;               // exactly 0 and 1, or text of two classes
  bool signs = false;                    // only -1 and 1
  std::string two_wholes;                // "1 and 2": two whole numbers and no more, not 0 and 1
};

struct LoadedData {
  FeedColumns feeds;
  std::string line;                             // the printed data line
  std::vector<int64_t> labels;                  // one per row when there are class labels
  std::vector<std::string> notes;               // what was decided while opening
  std::map<std::string, std::string> metadata;  // for exported models (data_spec.hpp)
  TargetFacts target;
};

// What a dataset needs to know about the model before it is opened (synthetic: sizes). inputs: of
// the training (Training::slots, training_inputs).
void describe_inputs(const Model& m, const std::vector<ValueDef>& inputs, OpenOptions& o);
// May a row of the model's only input be an image?
bool takes_images(const Model& m, const OpenOptions& o);
// The size of images, and how they get it, for a model that resizes them itself.
void follow_image_rule(const Model& m, OpenOptions& o);
// training_inputs() as data feeds them: images that the model would resize itself are resized while
// they are read, since a batch has one size. They go in as float32 where the file says bytes: what
// resizing gives is no whole number, and `predict`, which feeds images as they are, rounds nothing.
std::vector<ValueDef> fed_inputs(const Model& m);
// A training that takes its inputs so, and a model for another engine that does.
void accept_fed(Training& t);
Model as_fed(Model m);
// Columns for the inputs of all training sections.
LoadedData feeds_for(const Dataset& data, const Model& m, const std::vector<ValueDef>& inputs,
                     const FeedOptions& o);
// One array, or whatever else an input takes, as feeds_for would feed it.
// as_trained: with the model's --scale standard.
Value fitted(const Model& m, const ValueDef& input, const Value& given, bool as_trained = false);
// Labels that a file writes as whole numbers other than 0, 1, ... (class_labels.hpp), for single
// arrays of labels: value -> class number. Empty for other files.
std::map<int64_t, int64_t> numbers_of_labels(const Model& m);
// `labels` by these; a value that is none of them is an error.
Tensor class_numbers(const std::string& input, const Tensor& labels,
                     const std::map<int64_t, int64_t>& numbers);
// How the column of an input is adapted; targets are never scaled.
AdaptOptions options_for(const FeedOptions& o, const std::string& input, bool target);
// The declared type of a graph input, as data/ wants it.
InputSpec input_spec(const ValueDef& d);
// Inputs that the main graph has are data, the others are targets.
bool is_target(const Model& m, const std::string& name);
}  // namespace onnxtrain::run
