// What a run is trained and validated on: data that is opened by name or handed over, and how rows
// are split between the two.
#pragma once
#include <string>
#include <vector>

#include "run/feeds.hpp"
#include "run/observer.hpp"

namespace onnxtrain::run {

// Data by name, as the command line has it.
struct DataRequest {
  std::string data;           // a file, a folder, synthetic:...
  std::string valid = "0.1";  // a fraction of the rows, or a file; 0: none
  std::string target;         // csv: the target column
  FeedOptions feed;
  int64_t overfit = 0;  // that many rows, for training and validation alike
};

struct Parts {
  FeedColumns train, valid;
  bool has_valid = false;
  LoadedData data;  // what `train` was taken from
};

// inputs: of the training. like_trained: what the model carries about its data (scaling, columns,
// classes) is used where the request does not say otherwise.
LoadedData load_data(const std::string& spec, const DataRequest& q, const Model& m,
                     const std::vector<ValueDef>& inputs, DataPart part, bool like_trained = false);

Parts load_parts(const DataRequest& q, const Model& m, const std::vector<ValueDef>& inputs,
                 uint64_t seed, Observer& observer);

// Takes `fraction` of the rows for validation: by the seed, every class its share.
void split_off(Parts& p, double fraction, uint64_t seed);

// "0.1" -> true and the number; anything else is the name of a file.
bool is_fraction(const std::string& text, double& fraction);

}  // namespace onnxtrain::run
