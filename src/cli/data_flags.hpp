// Flags that say where the data is and how it is to be read.
#pragma once
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "run/feeds.hpp"

namespace onnxtrain::cli {

struct DataFlags {
  std::string data, target, scale = "auto", layout = "nchw";
  std::vector<std::string> map;
  int64_t label_offset = 0;

  // brief: only --data and --target are shown by --help
  void add_to(Registry& r, CLI::App* c, bool required, bool brief);
  FeedOptions feed_options() const;
};

// like_trained: what the model carries about its data (scaling, columns, classes) is used where no
// flag says otherwise.
LoadedData load_data(const DataFlags& f, const std::string& spec, const Training& t, DataPart part,
                     bool like_trained = false);

}  // namespace onnxtrain::cli
