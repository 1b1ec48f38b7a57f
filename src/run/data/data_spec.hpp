// How a run reads its data: columns by name, classes by their list, target, scaling. It travels in
// the metadata of checkpoints and exported models, so that validation files, `--resume`, `eval` and
// `predict` read theirs alike.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "data/table/csv.hpp"
#include "run/data/feeds.hpp"

namespace onnxtrain::run {

struct DataSpec {
  std::vector<std::string> features, targets, drop, classes;
  std::map<std::string, std::vector<std::string>> target_classes;  // of several targets, by column
  std::map<std::string, NumberForm> target_forms;  // of targets whose numbers have a unit
  std::map<std::string, std::string> map;          // input -> column, as the user said
  std::string scale;
  Dataset::Reading reading;  // of the table's text
  bool nhwc = false;
  int64_t label_offset = 0;
  bool of_run = false;                          // written by a training
  std::map<std::string, ColumnScale> standard;  // by input
  bool scaled_in_graph() const { return scale == kScaledInGraph; }
  bool of_table() const { return !features.empty() || !targets.empty(); }
};

using Metadata = std::map<std::string, std::string>;
inline constexpr const char* kTargetClassesKey = "onnxtrain.target_classes";
inline constexpr const char* kTargetFormsKey = "onnxtrain.target_forms";
inline constexpr const char* kLayoutKey = "onnxtrain.layout";
// Of a network that `new` made and nobody has trained: its kind.
inline constexpr const char* kNewKey = "onnxtrain.new";

// Metadata is the file's word, not ours: what is no list of names is passed over.
DataSpec data_spec(const Metadata& metadata);
// How a table's text was read, for `metadata`.
void note_reading(const Dataset& data, Metadata& metadata);
// What new data has to follow, for `metadata`. columns: input or target -> column of the data.
void note_spec(const Dataset& data, const std::map<std::string, std::string>& columns,
               const std::vector<std::string>& inputs, const std::string& label,
               const FeedOptions& o, Metadata& metadata);

// Options of a run that the caller does not give are taken from `spec`. Columns that it names must
// be there.
void follow(const DataSpec& spec, FeedOptions& feed, CsvOptions& csv);
// The graph scales its inputs: data is read as it is. OT0034 when the caller asks for more.
void leave_scale_to_graph(FeedOptions& feed);
// Only the scale of columns and the order of channels, for arrays without names.
void follow_arrays(const DataSpec& spec, FeedOptions& feed);
// Does a table with these columns and classes have what the spec names?
bool fits(const DataSpec& spec, const Dataset& data);

}  // namespace onnxtrain::run
