// Chooses how the columns of a table become numbers that a network can learn from.
#pragma once
#include <string>
#include <vector>

#include "convert/preprocess/preprocess.hpp"
#include "data/table/table_profile.hpp"
#include "run/hooks/observer.hpp"

namespace onnxtrain::run {

struct PreprocessOptions {
  // auto (median), median, mean, most_frequent, constant (0) or constant:NUMBER
  std::string impute = "auto";
  // auto (standard), none, standard, minmax, MEAN,STD; lists with colons give one per column
  std::string scale = "auto";
  std::vector<std::string> one_hot, embed;  // columns, or "all" for every column of text
  std::string resize = "stretch";           // of images: stretch, crop, pad (ImageRule)
};

struct PreprocessPlan {
  std::vector<ColumnTransform> columns;  // numbers and dates first, then categories
  std::vector<CsvColumn> reading;        // how each of them is read, in the same order
  std::vector<std::string> lines;        // the choice in words, one line per kind of column
  std::vector<std::string> left_out;     // columns, with the reason
  // All are numbers, and they are many: one input with all of them.
  bool matrix = false;
};

// some: false: no column need be left. Throws OT2180 when no column is left, OT2181 or OT2124 for
// values that do not fit their column, OT2182 for a column that is named and not there, OT0035 for
// options that are not known.
PreprocessPlan plan_preprocessing(const TableProfile& table, const PreprocessOptions& o,
                                  const std::string& source, bool some = true);

// "MEAN,STD" with lists: "0.5:0.4:0.3,0.2:0.2:0.2" for `n` columns or channels. OT0035.
void parse_mean_std(const std::string& scale, size_t n, const char* what, std::vector<float>& mean,
                    std::vector<float>& std);

}  // namespace onnxtrain::run
