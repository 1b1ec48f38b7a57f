// What a run is trained and validated on: data that is opened by name or handed over, and how rows
// are split between the two.
#pragma once
#include <string>
#include <vector>

#include "data/columns/fingerprint.hpp"
#include "run/data/data_spec.hpp"
#include "run/data/feeds.hpp"
#include "run/data/text.hpp"
#include "run/hooks/observer.hpp"

namespace onnxtrain::run {

// Data by name, as the command line has it.
struct DataRequest {
  std::string data;                 // a file, a folder, synthetic:...
  std::string valid = "0.1";        // a fraction of the rows, or a file; 0: none
  std::string target, drop;         // csv: columns to predict, columns to leave out
  std::string encoding, separator;  // csv: empty: found out
  FeedOptions feed;
  bool skip_bad = false;    // damaged images are left out
  std::string images;       // the folder of the images that a table names
  bool part_asked = false;  // by the user (OpenOptions)
  TextRequest text;
  int64_t overfit = 0;  // that many rows, for training and validation alike
};

// Which rows are trained on.
struct RowChoice {
  int64_t overfit = 0;
  double valid = 0;  // fraction
  uint64_t seed = 0;
};

struct Parts {
  FeedColumns train, valid;
  bool has_valid = false;
  LoadedData data;        // what `train` was taken from
  LoadedData valid_data;  // of a validation file
  RowHashes all, train_rows, valid_rows;
  std::map<std::string, ColumnScale> measured;  // on the training rows, for a scale that asks so
};

// What a model knows of the data it was trained on. strict: the data must have it all (a run that
// goes on, `eval`, a validation file); otherwise it is followed where the data has it all.
struct Known {
  DataSpec spec;
  bool strict = true;
};

// inputs: of the training. known: used where the request does not say otherwise.
LoadedData load_data(const std::string& spec, const DataRequest& q, const Model& m,
                     const std::vector<ValueDef>& inputs, DataPart part, const DataSpec& known);

Parts load_parts(const DataRequest& q, const Model& m, const std::vector<ValueDef>& inputs,
                 uint64_t seed, const Known& known, Observer& observer);

// Rows of data that is there: a fraction for validation is chosen by the seed, every class gives
// its share. --scale standard is measured on the rows that are trained on.
Parts split_parts(const Dataset& data, const Model& m, const std::vector<ValueDef>& inputs,
                  FeedOptions feed, const RowChoice& rows);

// Validation data of its own, instead of rows of the training's.
void set_valid(Parts& p, LoadedData valid);

// Warns: validation rows that are training rows, few validation rows, columns of very different
// scale, or that copy the target. table: the file that fixes name.
void warn_about_data(const Parts& p, const Model& m, const FeedOptions& feed, Observer& observer,
                     const std::string& table = {});

// Two names of classes that are probably one ("Red", "red"); "" when there are none.
std::string similar_classes(const std::vector<std::string>& names);

// "0.1" -> true and the number; anything else is the name of a file.
// Throws `e` again; its message names the file that it is about.
[[noreturn]] void rethrow_of(const Error& e, const std::string& what, const std::string& file);
bool is_fraction(const std::string& text, double& fraction);

}  // namespace onnxtrain::run
