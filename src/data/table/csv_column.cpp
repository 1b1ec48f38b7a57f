// Fields of one column become numbers, dates or text.
#include "data/table/csv_column.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/shell.hpp"

namespace onnxtrain {

std::string csv_shown(std::string_view field) {
  return "'" + std::string(field.substr(0, 40)) + (field.size() > 40 ? "...'" : "'");
}

std::string decimal_comma_hint(std::string_view field) {
  const size_t comma = field.find(',');
  if (comma == std::string_view::npos || comma + 1 >= field.size() ||
      field.find_first_not_of("0123456789,+-eE ") != std::string_view::npos)
    return {};
  return "decimal commas? write decimal points:  sed s/,/./g of a file with semicolons";
}

std::string plain_number_hint(std::string_view field) {
  // "$ 1,234.5", "369525 EUR", "5 %", "1 234.5": a number with a currency, groups or a unit
  auto symbol = [](char c) { return c == '$' || static_cast<unsigned char>(c) >= 0x80; };
  size_t at = 0;
  while (at < field.size() && (symbol(field[at]) || field[at] == ' ')) ++at;
  const bool currency = at > 0;
  std::string plain;
  bool groups = false;
  for (; at < field.size() &&
         std::string_view("0123456789.+-, '").find(field[at]) != std::string_view::npos;
       ++at)
    if (field[at] == ',' || field[at] == '\'' ||
        (field[at] == ' ' && at + 1 < field.size() &&
         std::isdigit(static_cast<unsigned char>(field[at + 1]))))
      groups = true;
    else if (field[at] != ' ')
      plain += field[at];
  const std::string_view rest = field.substr(at);
  const bool unit = !rest.empty() && (rest == "%" || (field[at - 1] == ' ' && rest.size() <= 4) ||
                                      std::all_of(rest.begin(), rest.end(), symbol));
  // digits of another script are no currency
  if (currency && plain.starts_with('.')) return {};
  if (at == 0 || !csv_number(plain) || (!rest.empty() && !unit)) return {};
  if (!unit && !currency && !(groups && plain.find('.') != std::string::npos)) return {};
  return cat("write plain numbers, without units and groups of digits: ", plain, " instead of ",
             csv_shown(field));
}

CsvColumnBuilder::CsvColumnBuilder(const CsvColumn& spec)
    : spec_(spec), categories_(spec.categories.begin(), spec.categories.end()) {}

void CsvColumnBuilder::add(std::string_view field, const std::function<std::string()>& place) {
  field = csv_trimmed(field);
  if (spec_.kind == CsvColumn::Kind::kText) return add_text(field);
  if (csv_missing(field) || csv_dash(field)) {
    if (!spec_.missing)
      data_error("OT2121", cat("a value is missing: ", place()),
                 "fill it in or remove the row: the model has nothing to put in its place");
    numbers_.push_back(std::nan(""));
    return;
  }
  const bool date = spec_.kind == CsvColumn::Kind::kDate;
  const auto v = date ? date_number(field, spec_.order) : number_of_form(field, spec_.form);
  if (v) return numbers_.push_back(*v);
  if (date)
    data_error("OT2181", cat("no date: ", csv_shown(field), " in ", place()),
               cat("dates are written 2020-12-31, 31.12.2020 or ",
                   spec_.order == DateOrder::kDayFirst ? "31/12/2020" : "12/31/2020",
                   "; correct the value or empty the field"));
  const std::string comma = decimal_comma_hint(field);
  data_error("OT2124", cat("text where a number is needed: ", csv_shown(field), " in ", place()),
             comma.empty() ? "correct the value, or empty the field" : comma);
}

// TRUE and true are one value, whoever wrote the file.
bool same_truth(const std::string& a, const std::string& b) {
  auto lower = [](std::string s) {
    for (char& c : s) c = char(std::tolower(static_cast<unsigned char>(c)));
    return s;
  };
  const std::string word = lower(a);
  return (word == "true" || word == "false") && lower(b) == word;
}

// The category that is meant: 3.0 is the category 3, TRUE the category True.
const std::string& CsvColumnBuilder::known(const std::string& text) {
  if (categories_.empty() || categories_.count(text) > 0) return text;
  if (const auto v = csv_number(text))
    for (const std::string& c : categories_)
      if (csv_number(c) == v) return c;
  for (const std::string& c : categories_)
    if (same_truth(text, c)) return c;
  ++unseen_rows_;
  unseen_.insert(text);
  return text;
}

void CsvColumnBuilder::add_text(std::string_view field) {
  const std::string text(csv_missing(field) ? std::string_view() : field);
  const std::string& meant = known(text);
  const auto [it, fresh] = ids_.try_emplace(meant, int32_t(values_.size()));
  if (fresh) values_.push_back(meant);
  codes_.push_back(it->second);
}

ColumnPtr CsvColumnBuilder::finish() {
  if (spec_.kind == CsvColumn::Kind::kText)
    return text_column(std::move(values_), std::move(codes_));
  return memory_column(Tensor::vector(numbers_));
}

std::string CsvColumnBuilder::note() const {
  if (unseen_rows_ == 0) return {};
  std::vector<std::string> some(unseen_.begin(), unseen_.end());
  for (std::string& s : some)
    if (s.empty()) s = "(missing)";
  return cat("column '", spec_.name, "': ", with_commas(unseen_rows_),
             unseen_rows_ == 1 ? " row has a value" : " rows have values",
             " that the training did not have, which counts as unknown: ", listed(some, 5));
}

}  // namespace onnxtrain
