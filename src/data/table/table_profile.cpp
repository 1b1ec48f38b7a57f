// One pass over a table.
#include "data/table/table_profile.hpp"

#include <algorithm>
#include <cctype>
#include <cmath>

namespace onnxtrain {
namespace {

constexpr size_t kMostTexts = 100000;  // different ones that are kept of a column
constexpr double kNearlyAll = 0.9;     // of the values: the others are mistakes

// Counts of one column while the text is read.
struct Tally {
  ColumnProfile p;
  std::vector<double> day_first, month_first;
  int64_t words = 0, no_date = 0, dashes = 0;
  std::string first_word, first_no_date;
  int64_t word_line = 0, no_date_line = 0;

  void add(std::string_view field, int64_t line) {
    ++p.rows;
    field = csv_trimmed(field);
    if (csv_missing(field)) {
      ++p.missing;
      return;
    }
    if (const auto it = p.texts.find(std::string(field)); it != p.texts.end())
      ++it->second;
    else if (p.texts.size() < kMostTexts)
      p.texts.emplace(field, 1);
    else
      p.all_texts = false;
    if (const auto v = csv_number(field)) {
      p.numbers.push_back(*v);
      return;
    }
    if (csv_dash(field)) {
      ++dashes;
      return;
    }
    if (words++ == 0) first_word = field, word_line = line;
    const auto day = date_number(field, DateOrder::kDayFirst);
    const auto month = date_number(field, DateOrder::kMonthFirst);
    if (day) day_first.push_back(*day);
    if (month) month_first.push_back(*month);
    if (!day && !month && no_date++ == 0) first_no_date = field, no_date_line = line;
  }

  ColumnProfile finish() {
    const double there = double(p.rows - p.missing - dashes);
    const auto dates = double(std::max(day_first.size(), month_first.size()));
    if (there == 0 && dashes > 0) p.kind = CsvColumn::Kind::kText;
    if (words == 0) return without_dashes();
    if (double(p.numbers.size()) > kNearlyAll * there) {
      p.stray = first_word;
      p.stray_line = word_line;
      return without_dashes();
    }
    if (dates <= kNearlyAll * there) return without_dates();
    p.kind = CsvColumn::Kind::kDate;
    p.order = day_first.size() > month_first.size() ? DateOrder::kDayFirst : DateOrder::kMonthFirst;
    p.order_open = day_first.size() == month_first.size() && day_first != month_first;
    if (dates < there) {
      p.stray = no_date > 0 ? first_no_date : std::string("a number");
      p.stray_line = no_date_line;
    }
    p.numbers = std::move(p.order == DateOrder::kDayFirst ? day_first : month_first);
    return without_dashes();
  }

  // Text, or numbers with a unit.
  ColumnProfile without_dates() {
    p.numbers.clear();
    const auto form = p.all_texts ? common_form(p.texts) : std::nullopt;
    if (!form) {
      p.kind = CsvColumn::Kind::kText;
      return std::move(p);
    }
    p.form = *form;
    for (const auto& [text, count] : p.texts)
      if (!csv_dash(text))
        p.numbers.insert(p.numbers.end(), size_t(count), *number_of_form(text, *form));
    return without_dashes();
  }

  // Among numbers and dates they are missing values.
  ColumnProfile without_dashes() {
    if (p.kind == CsvColumn::Kind::kText || dashes == 0) return std::move(p);
    p.missing += dashes;
    std::erase_if(p.texts, [](const auto& t) { return csv_dash(t.first); });
    return std::move(p);
  }
};

}  // namespace

bool ColumnProfile::counts_rows() const {
  constexpr size_t kFew = 10;  // fewer rows may count up by accident
  if (kind != CsvColumn::Kind::kNumber || missing > 0 || numbers.size() < kFew) return false;
  if (!form.around.empty()) return false;
  for (size_t i = 0; i < numbers.size(); ++i)
    if (numbers[i] != numbers[0] + double(i)) return false;
  return true;
}

bool ColumnProfile::is_id() const {
  constexpr size_t kFew = 10;
  if (missing > 0 || !all_texts || rows < int64_t(kFew) || texts.size() != size_t(rows))
    return false;
  if (kind != CsvColumn::Kind::kNumber) return false;
  for (double v : numbers)
    if (v != std::floor(v) || v < 0) return false;
  if (name == "id" || name == "ID" || name == "Id" || name == "index" || name == "Unnamed: 0")
    return true;
  for (const char* end : {"_id", "_ID", " id", " ID"})
    if (name.ends_with(end)) return true;
  // PassengerId, userID; not "Madrid"
  return name.size() > 2 && (name.ends_with("Id") || name.ends_with("ID")) &&
         std::islower(static_cast<unsigned char>(name[name.size() - 3]));
}

TableProfile profile_csv(std::string_view text, const std::string& source,
                         const CsvLayout& layout) {
  std::vector<Tally> tallies(layout.features.size());
  for (size_t i = 0; i < tallies.size(); ++i) tallies[i].p.name = layout.names[layout.features[i]];
  CsvReader reader(text, layout.separator, source);
  std::vector<std::string_view> fields;
  if (layout.header) reader.next(fields);
  TableProfile out;
  out.header = layout.header;
  while (reader.next(fields)) {
    ++out.rows;
    for (size_t i = 0; i < tallies.size(); ++i)  // a row of another length is refused later
      if (layout.features[i] < fields.size())
        tallies[i].add(fields[layout.features[i]], reader.line());
  }
  for (Tally& t : tallies) out.columns.push_back(t.finish());
  return out;
}

}  // namespace onnxtrain
