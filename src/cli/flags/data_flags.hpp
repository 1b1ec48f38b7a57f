// Flags that say where the data is and how it is to be read.
#pragma once
#include <string>
#include <vector>

#include "cli/common/commands.hpp"
#include "run/data/parts.hpp"

namespace onnxtrain::cli {

struct DataFlags {
  std::string data, target, drop, scale = "auto", layout = "nchw", encoding, separator, images,
                                  text, tokenizer;
  int64_t max_length = 0;
  bool standardize = false, skip_bad = false;
  const CLI::Option* layout_option = nullptr;
  std::vector<std::string> map;
  int64_t label_offset = 0;

  // brief: only --data and --target are shown by --help
  void add_to(Registry& r, CLI::App* c, bool required, bool brief);
  run::DataRequest request() const;
  // What reading the same data needs again and no model or run knows: " --images photos ...".
  std::string reading() const;
};

}  // namespace onnxtrain::cli
