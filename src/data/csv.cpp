// From csv records to columns: header, kinds of columns, target, values.
#include "data/csv.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <set>
#include <unordered_map>

#include "core/shell.hpp"
#include "core/text.hpp"

namespace onnxtrain {
namespace {

constexpr size_t kSample = 1000;  // records that decide about header and kinds
constexpr size_t kMaxColumns = 1000000;

using Fields = std::vector<std::string_view>;

struct Layout {
  char separator = ',';
  bool header = false;
  std::vector<std::string> names;
  std::vector<bool> text;   // per column: something in it is no number
  std::vector<bool> words;  // most of it is no number
  int64_t target = -1;
  std::vector<size_t> features;
  std::string note;
};

std::string shown(std::string_view field) {
  return "'" + std::string(field.substr(0, 40)) + (field.size() > 40 ? "...'" : "'");
}

std::vector<std::vector<std::string>> sample(std::string_view text, char separator,
                                             const std::string& source) {
  CsvReader reader(text, separator, source);
  std::vector<std::vector<std::string>> records;
  Fields fields;
  while (records.size() < kSample && reader.next(fields)) {
    if (fields.size() > kMaxColumns)
      data_error("OT2122", cat("'", source, "' has more than ", kMaxColumns, " columns"));
    records.emplace_back(fields.begin(), fields.end());
    if (records.size() * fields.size() > 4 * kMaxColumns) break;
  }
  return records;
}

// A header has no number in it, or a word above a column of numbers.
bool has_header(const std::vector<std::vector<std::string>>& records) {
  const auto& first = records[0];
  if (std::none_of(first.begin(), first.end(),
                   [](const std::string& f) { return csv_number(f).has_value(); }))
    return records.size() > 1 || !csv_missing(first[0]);
  for (size_t c = 0; c < first.size(); ++c) {
    if (csv_number(first[c]) || csv_missing(first[c]) || records.size() < 2) continue;
    bool numbers = true;
    for (size_t r = 1; r < records.size() && numbers; ++r)
      numbers = c < records[r].size() && (csv_number(records[r][c]) || csv_missing(records[r][c]));
    if (numbers) return true;
  }
  return false;
}

void name_columns(const std::vector<std::string>& first, Layout& l) {
  std::set<std::string> seen;
  for (size_t c = 0; c < first.size(); ++c) {
    std::string name = l.header ? first[c] : std::to_string(c);
    while (!name.empty() && (name.back() == ' ' || name.back() == '\t')) name.pop_back();
    name.erase(0, name.find_first_not_of(" \t"));
    if (name.empty()) name = std::to_string(c);
    while (!seen.insert(name).second) name += "_";
    l.names.push_back(name);
  }
}

int64_t find_column(const Layout& l, const std::string& wanted, const std::string& source) {
  const auto it = std::find(l.names.begin(), l.names.end(), wanted);
  if (it != l.names.end()) return it - l.names.begin();
  int64_t index = 0;
  const char* end = wanted.data() + wanted.size();
  const auto [stop, bad] = std::from_chars(wanted.data(), end, index);
  const int64_t n = int64_t(l.names.size());
  if (bad == std::errc() && stop == end && index >= -n && index < n)
    return index < 0 ? index + n : index;
  const std::string near = closest(wanted, l.names);
  data_error("OT2105", cat("'", source, "' has no column '", wanted, "'; it has ", listed(l.names)),
             near.empty() ? "" : cat("--target ", near));
}

// "y", "Label", "class": a column that says what it is. -1: none, or several.
int64_t column_named_target(const Layout& l) {
  int64_t found = -1;
  for (size_t c = 0; c < l.names.size(); ++c) {
    std::string name = l.names[c];
    for (char& ch : name) ch = char(std::tolower(static_cast<unsigned char>(ch)));
    for (const char* usual : {"y", "label", "labels", "target", "targets", "class", "classes"}) {
      if (name != usual) continue;
      if (found >= 0) return -1;
      found = int64_t(c);
    }
  }
  return l.header ? found : -1;
}

void choose_target(const CsvOptions& options, const std::string& source, Layout& l) {
  if (options.no_target) return;
  if (!options.target.empty()) {
    l.target = find_column(l, options.target, source);
    return;
  }
  if (l.names.size() < 2) return;
  l.target = column_named_target(l);
  if (l.target >= 0) {
    l.note = cat("target '", l.names[size_t(l.target)], "', by its name   (--target to change)");
    return;
  }
  // a stray word among numbers is a mistake, not a column of classes
  const auto texts = std::count(l.words.begin(), l.words.end(), true);
  l.target = texts == 1 ? std::find(l.words.begin(), l.words.end(), true) - l.words.begin()
                        : int64_t(l.names.size()) - 1;
  l.note = cat("target '", l.names[size_t(l.target)], "', the ",
               texts == 1 ? "only text column" : "last column", "   (--target to change)");
}

// pandas writes the row number as a first column without a name.
bool is_row_number(const std::vector<std::vector<std::string>>& records, const Layout& l) {
  if (!l.header || !records[0][0].empty() || records[0].size() < 3) return false;
  for (size_t r = 1; r < records.size(); ++r)
    if (csv_number(records[r][0]) != double(r - 1)) return false;
  return true;
}

Layout find_layout(std::string_view text, const std::string& source, const CsvOptions& options) {
  Layout l;
  l.separator = sniff_separator(text);
  const auto records = sample(text, l.separator, source);
  if (records.empty()) data_error("OT2101", cat("'", source, "' is empty"));
  l.header = has_header(records);
  name_columns(records[0], l);
  l.text.assign(l.names.size(), false);
  l.words.assign(l.names.size(), false);
  for (size_t c = 0; c < l.names.size(); ++c) {
    size_t words = 0, numbers = 0;
    for (size_t r = l.header ? 1 : 0; r < records.size(); ++r) {
      if (c >= records[r].size() || csv_missing(records[r][c])) continue;
      ++(csv_number(records[r][c]) ? numbers : words);
    }
    l.text[c] = words > 0;
    l.words[c] = words > numbers;
  }
  choose_target(options, source, l);
  for (const std::string& name : options.features)
    l.features.push_back(size_t(find_column(l, name, source)));
  const bool skip_first = options.features.empty() && is_row_number(records, l);
  if (options.features.empty())
    for (size_t c = skip_first ? 1 : 0; c < l.names.size(); ++c)
      if (int64_t(c) != l.target) l.features.push_back(c);
  if (l.features.empty())
    data_error("OT2101", cat("'", source, "' has no feature columns"),
               "leave at least one column besides the target");
  return l;
}

// Fills the feature matrix and the target from the records.
class Filler {
 public:
  Filler(std::string_view text, const Layout& l, const std::string& source)
      : layout_(l), source_(source), reader_(text, l.separator, source) {
    // a record has at least one byte per column: bounds the rows before anything is read
    const size_t lines = size_t(std::count(text.begin(), text.end(), '\n')) + 1;
    const size_t most = std::min(lines, text.size() / l.names.size() + 1);
    matrix_ = Tensor(DType::kDouble, {int64_t(most), int64_t(l.features.size())});
    if (l.target >= 0) target_ = Tensor(DType::kDouble, {int64_t(most)});
  }

  void run() {
    Fields fields;
    if (layout_.header) reader_.next(fields);
    while (reader_.next(fields)) {
      if (fields.size() != layout_.names.size()) ragged(fields.size());
      double* row = matrix_.as<double>() + rows_ * int64_t(layout_.features.size());
      for (size_t i = 0; i < layout_.features.size(); ++i)
        row[i] = number(fields[layout_.features[i]], layout_.features[i]);
      if (layout_.target >= 0) take_target(fields[size_t(layout_.target)]);
      ++rows_;
    }
    if (rows_ == 0)
      data_error("OT2101", cat("'", source_, "' has a header but no rows"),
                 "one line per example belongs below the names of the columns");
  }

  Tensor features() const {
    return Tensor(DType::kDouble, {rows_, int64_t(layout_.features.size())},
                  const_cast<void*>(matrix_.data()), matrix_.owner());
  }

  // int64 when all values are whole, else double; text became class ids in order of the names
  Tensor target(std::vector<std::string>& class_names) {
    double* v = target_.as<double>();
    if (text_target()) {
      std::vector<std::pair<std::string, size_t>> order(ids_.begin(), ids_.end());
      std::sort(order.begin(), order.end());
      std::vector<int64_t> rank(order.size());
      for (size_t i = 0; i < order.size(); ++i) {
        rank[order[i].second] = int64_t(i);
        class_names.push_back(order[i].first);
      }
      for (int64_t i = 0; i < rows_; ++i) v[i] = double(rank[size_t(v[i])]);
    }
    const bool whole = std::all_of(
        v, v + rows_, [](double x) { return x == std::floor(x) && std::fabs(x) < 0x1p53; });
    if (!whole) return Tensor(DType::kDouble, {rows_}, v, target_.owner());
    Tensor out(DType::kInt64, {rows_});
    std::transform(v, v + rows_, out.as<int64_t>(), [](double x) { return int64_t(x); });
    return out;
  }

 private:
  bool text_target() const { return layout_.text[size_t(layout_.target)]; }

  [[noreturn]] void ragged(size_t found) const {
    data_error(
        "OT2122",
        cat("'", source_, "' line ", with_commas(reader_.line()), " has ", found,
            found == 1 ? " field" : " fields", ", the first line has ", layout_.names.size()),
        "complete or remove the line; a field that holds the separator stands in quotes");
  }

  double number(std::string_view field, size_t column) const {
    if (const auto v = csv_number(field)) return *v;
    const std::string place = cat("'", source_, "' line ", with_commas(reader_.line()),
                                  ", column '", layout_.names[column], "'");
    if (csv_missing(field))
      data_error("OT2121", cat("a value is missing: ", place),
                 "fill it in or remove the row; missing values cannot be trained on");
    const bool guess = layout_.target >= 0 && !text_target();
    const size_t comma = field.find(',');
    if (comma != std::string_view::npos && comma + 1 < field.size() &&
        field.find_first_not_of("0123456789,+-eE ") == std::string_view::npos)
      data_error("OT2124", cat("text where a number is needed: ", shown(field), " in ", place),
                 "decimal commas? write decimal points:  sed s/,/./g of a file with semicolons");
    data_error("OT2124", cat("text where a number is needed: ", shown(field), " in ", place),
               guess && layout_.text[column]
                   ? cat("if this column is what to predict:  --target ", layout_.names[column])
                   : std::string("turn the text into numbers, or remove the column"));
  }

  void take_target(std::string_view field) {
    double& out = target_.as<double>()[rows_];
    if (!text_target()) {
      out = number(field, size_t(layout_.target));
      return;
    }
    if (field.empty()) number(field, size_t(layout_.target));  // reports it
    const auto [it, fresh] = ids_.try_emplace(std::string(field), ids_.size());
    (void)fresh;
    out = double(it->second);
  }

  const Layout& layout_;
  const std::string& source_;
  CsvReader reader_;
  Tensor matrix_, target_;
  int64_t rows_ = 0;
  std::unordered_map<std::string, size_t> ids_;
};

std::string_view checked_text(std::string_view text, const std::string& source) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF"))
    data_error("OT2125", cat("'", source, "' is UTF-16 text"), "save it as UTF-8");
  if (text.find('\0') != std::string_view::npos)
    data_error("OT2125", cat("'", source, "' has zero bytes in it: it is not a csv text"));
  if (const size_t at = find_invalid_utf8(text); at != std::string_view::npos) {
    const auto line = 1 + std::count(text.begin(), text.begin() + std::ptrdiff_t(at), '\n');
    data_error(
        "OT2125",
        cat("'", source, "' is not UTF-8 text: line ", line, " has a byte of another encoding"),
        cat("if it is Latin-1:  iconv -f latin1 -t utf-8 ", shell_word(source), " > utf8.csv"));
  }
  return text;
}

}  // namespace

Dataset parse_csv(std::string_view text, const std::string& source, const CsvOptions& options) {
  text = checked_text(text, source);
  const Layout l = find_layout(text, source, options);
  Filler filler(text, l, source);
  filler.run();
  Dataset d(source, l.separator == '\t' ? "tsv" : "csv");
  const Tensor x = filler.features();
  d.add("x", memory_column(x));
  std::vector<std::string> feature_names;
  for (size_t i = 0; i < l.features.size(); ++i) feature_names.push_back(l.names[l.features[i]]);
  if (l.target >= 0) {
    std::vector<std::string> classes;
    const Tensor y = filler.target(classes);
    d.add("y", memory_column(y));
    if (!classes.empty()) d.set_class_names("y", classes);
    const std::string& name = l.names[size_t(l.target)];
    if (l.header && !d.has(name)) {
      d.add(name, memory_column(y));
      if (!classes.empty()) d.set_class_names(name, classes);
    }
  }
  if (l.header && l.features.size() <= 4096)
    for (size_t i = 0; i < feature_names.size(); ++i)
      if (!d.has(feature_names[i])) d.add(feature_names[i], matrix_column(x, int64_t(i)));
  d.set_feature_names("x", std::move(feature_names));
  if (!l.note.empty()) d.add_note(l.note);
  return d;
}

}  // namespace onnxtrain
