// One column of a csv text that feeds an input of its own.
#pragma once
#include <functional>
#include <set>
#include <unordered_map>

#include "data/table/csv.hpp"

namespace onnxtrain {

class CsvColumnBuilder {
 public:
  explicit CsvColumnBuilder(const CsvColumn& spec);
  const CsvColumn& spec() const { return spec_; }
  // place: "'t.csv' line 7, column 'age'". OT2121, OT2124 and OT2181 for what does not fit.
  void add(std::string_view field, const std::function<std::string()>& place);
  Tensor numbers() const { return Tensor::vector(numbers_); }  // so far
  // Float64 or text, one per row.
  ColumnPtr finish();
  // Texts that the model does not know, with their number of rows; "" when there are none.
  std::string note() const;

 private:
  void add_text(std::string_view field);
  const std::string& known(const std::string& text);
  CsvColumn spec_;
  std::vector<double> numbers_;
  std::vector<std::string> values_;
  std::vector<int32_t> codes_;
  std::unordered_map<std::string, int32_t> ids_;
  std::set<std::string> categories_, unseen_;
  int64_t unseen_rows_ = 0;
};

// Numbers with a decimal comma, in words for a hint; "" when the field is none.
std::string decimal_comma_hint(std::string_view field);
// The number that "$ 1,234.5" or "5 %" means, in words; "" when it is none.
std::string plain_number_hint(std::string_view field);
// A field for a message: in quotes, cut when it is long.
std::string csv_shown(std::string_view field);

}  // namespace onnxtrain
