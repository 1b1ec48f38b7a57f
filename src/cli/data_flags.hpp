// Flags that say where the data is and how it is to be read.
#pragma once
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "train/feeds.hpp"

namespace onnxtrain::cli {

struct DataFlags {
  std::string data, target, scale = "auto", layout = "nchw";
  std::vector<std::string> map;
  int64_t label_offset = 0;

  void add_to(CLI::App* c, bool required = true);
  FeedOptions feed_options() const;
};

LoadedData load_data(const DataFlags& f, const std::string& spec, const Training& t, DataPart part);

}  // namespace onnxtrain::cli
