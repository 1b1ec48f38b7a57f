// What the columns of a csv text are: names, kinds, which are features and which targets.
#pragma once
#include "data/table/csv.hpp"

namespace onnxtrain {

struct CsvLayout {
  char separator = ',';
  bool header = false;
  std::vector<std::string> names;
  std::vector<bool> text;   // per column: something in it is no number
  std::vector<bool> words;  // most of it is no number
  std::vector<size_t> targets, features;
  std::vector<std::string> dropped;
  bool guessed = false;  // the target was decided from the file
  std::vector<std::string> notes;
};

CsvLayout find_csv_layout(std::string_view text, const std::string& source,
                          const CsvOptions& options);

}  // namespace onnxtrain
