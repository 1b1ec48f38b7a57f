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
  std::vector<bool> dates;  // all that is no number in it is a date
  std::vector<size_t> targets, features;
  std::map<size_t, NumberForm> forms;  // of targets whose numbers have a unit
  std::vector<std::string> dropped;
  bool guessed = false;  // the target was decided from the file
  std::string instead;   // another column that looks like a target
  std::vector<std::string> notes;
};

CsvLayout find_csv_layout(std::string_view text, const std::string& source,
                          const CsvOptions& options);
// $102,201.42 in a target is a number: in a run that learnt numbers, and where there are more
// different ones than classes usually are. `l` then has its form, and a note.
void find_target_forms(std::string_view text, const std::string& source, const CsvOptions& options,
                       CsvLayout& l);

}  // namespace onnxtrain
