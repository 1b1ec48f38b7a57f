// Targets that are numbers with a unit.
#include "core/text.hpp"
#include "data/table/csv_column.hpp"
#include "data/table/csv_layout.hpp"

namespace onnxtrain {
namespace {

constexpr size_t kMostClasses = 20;      // different whole numbers that are taken for classes
constexpr size_t kMostCounted = 100000;  // different texts of a column

using Texts = std::map<std::string, int64_t>;

// The values of the columns, as they are written; fewer than all where there are too many.
std::map<size_t, Texts> texts_of(const std::vector<size_t>& columns, std::string_view text,
                                 const std::string& source, const CsvLayout& l) {
  std::map<size_t, Texts> all;
  CsvReader reader(text, l.separator, source);
  std::vector<std::string_view> fields;
  if (l.header) reader.next(fields);
  while (reader.next(fields))
    for (size_t c : columns) {
      const std::string_view field = c < fields.size() ? csv_trimmed(fields[c]) : "";
      if (!csv_missing(field) && all[c].size() < kMostCounted) ++all[c][std::string(field)];
    }
  return all;
}

std::string note_of(const std::string& name, const Texts& texts, const NumberForm& form) {
  const std::string* longest = &texts.begin()->first;
  for (const auto& [text, count] : texts)
    if (text.size() > longest->size()) longest = &text;
  return cat("units and groups of digits taken off: '", name, "' (", csv_shown(*longest), " is ",
             all_digits(number_of_form(*longest, form).value_or(0)), ")");
}

}  // namespace

void find_target_forms(std::string_view text, const std::string& source, const CsvOptions& options,
                       CsvLayout& l) {
  std::vector<size_t> open;
  for (size_t c : l.targets) {
    if (const auto known = options.target_forms.find(l.names[c]);
        known != options.target_forms.end())
      l.forms[c] = known->second;
    else if (l.text[c] && options.target_forms.empty() && options.target_classes.empty() &&
             (!options.classes || options.classes->empty()))
      open.push_back(c);
  }
  const bool numbers = options.classes.has_value();
  for (const auto& [c, texts] :
       open.empty() ? std::map<size_t, Texts>() : texts_of(open, text, source, l)) {
    if (!numbers && texts.size() <= kMostClasses) continue;
    const auto form = common_form(texts);
    if (!form || form->around.empty()) continue;
    l.forms[c] = *form;
    l.notes.push_back(note_of(l.names[c], texts, *form));
  }
  for (const auto& [c, form] : l.forms) l.text[c] = l.words[c] = false;
}

}  // namespace onnxtrain
