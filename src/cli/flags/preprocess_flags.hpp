// Flags that say how the columns of a table become numbers, and images those of one size.
#pragma once
#include "cli/common/commands.hpp"
#include "run/new/preprocess.hpp"

namespace onnxtrain::cli {

struct PreprocessFlags {
  std::string mode = "none", impute = "auto", one_hot, embed, resize = "stretch";

  // optional: --preprocess asks for it, and all are listed by --help-all only
  void add_to(Registry& r, CLI::App* c, bool optional);
  bool any() const {
    return mode == "auto" || impute != "auto" || !one_hot.empty() || !embed.empty() ||
           resize != "stretch";
  }
  run::PreprocessOptions options(const std::string& scale) const;
};

// "A,B" -> A and B
std::vector<std::string> comma_list(const std::string& text);

}  // namespace onnxtrain::cli
