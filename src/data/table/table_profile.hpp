// What the columns of a table hold, over all rows: the ground on which preprocessing is chosen.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "data/table/csv_layout.hpp"

namespace onnxtrain {

struct ColumnProfile {
  std::string name;
  // Number or date: every value that is there is one, but for `stray`. An empty column is a number.
  CsvColumn::Kind kind = CsvColumn::Kind::kNumber;
  DateOrder order = DateOrder::kMonthFirst;
  NumberForm form;          // of numbers
  bool order_open = false;  // day and month of every date could be exchanged
  int64_t rows = 0, missing = 0;
  // Numbers and dates that are there, in the rows' order; not in this order when they have a form.
  std::vector<double> numbers;
  std::map<std::string, int64_t> texts;  // values as they are written, and how often each stands
  bool all_texts = true;                 // false: there are more different ones than were kept
  std::string stray;                     // a value of another kind than nearly all others
  int64_t stray_line = 0;

  bool empty() const { return missing == rows; }
  // One value everywhere, nothing missing.
  bool constant() const { return missing == 0 && all_texts && texts.size() == 1; }
  // 0, 1, 2, ... or 1, 2, 3, ...: says nothing about a row.
  bool counts_rows() const;
  // Whole numbers that are all different, in a column that is called an id.
  bool is_id() const;
};

struct TableProfile {
  std::vector<ColumnProfile> columns;  // the features
  bool header = false;
  int64_t rows = 0;
};

TableProfile profile_csv(std::string_view text, const std::string& source, const CsvLayout& layout);

}  // namespace onnxtrain
