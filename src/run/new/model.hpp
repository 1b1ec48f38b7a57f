// A new network for data: inputs, outputs, scaling and initial values follow from the rows.
#pragma once
#include <string>
#include <vector>

#include "convert/networks/networks.hpp"
#include "data/open.hpp"
#include "run/data/text.hpp"
#include "run/hooks/observer.hpp"
#include "run/new/preprocess.hpp"

namespace onnxtrain::run {

struct NewRequest {
  std::string kind = "mlp";
  std::string data;          // a file, a folder, synthetic:...
  std::string target, drop;  // csv
  std::string encoding, separator;
  std::string x, y;                 // arrays: which are input and target; empty: by their names
  std::string task = "auto";        // classes, numbers
  bool nhwc = false;                // the data has its channels last
  std::vector<int64_t> image_size;  // height and width; empty: that of the first image
  bool skip_bad = false;            // damaged images are left out
  std::string images;               // the folder of the images that a table names
  TextRequest text;
  PreprocessOptions preprocess;
  std::vector<int64_t> hidden;
  double dropout = 0;
  uint64_t seed = 0;
};

// What was decided is told to the observer, with the flag that changes it. arrays: instead of
// q.data.
Model new_model(const NewRequest& q, const Dataset* arrays, Observer& observer);

// The model with preprocessing of the table's columns in front of its only input; OT2172 with both
// widths when it takes another number of values.
Model preprocessed(const Model& m, const NewRequest& q, Observer& observer);

}  // namespace onnxtrain::run
