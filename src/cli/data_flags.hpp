// From --data and the model's inputs to columns that are ready to be fed.
#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "engine/training.hpp"
#include "train/fit.hpp"

namespace onnxtrain::cli {

struct DataFlags {
  std::string data, target, scale = "auto", layout = "nchw";
  std::vector<std::string> map;
  int64_t label_offset = 0;

  void add_to(CLI::App* c, bool required = true);
};

struct LoadedData {
  FeedColumns feeds;
  std::string line;              // the printed data line
  std::vector<int64_t> labels;   // one per row when there are class labels
};

// What the model wants fed: inputs of the first training section.
LoadedData load_data(const DataFlags& f, const std::string& spec, const Training& t, DataPart part);

}  // namespace onnxtrain::cli
