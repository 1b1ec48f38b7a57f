// Header, kinds of columns, targets and features of a csv text.
#include "data/table/csv_layout.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <set>

#include "core/shell.hpp"

namespace onnxtrain {
namespace {

constexpr size_t kSample = 1000;  // records that decide about header and kinds
constexpr size_t kMaxColumns = 1000000;

using Records = std::vector<std::vector<std::string>>;
using Names = std::vector<std::string>;

Records sample(std::string_view text, char separator, const std::string& source) {
  CsvReader reader(text, separator, source);
  Records records;
  std::vector<std::string_view> fields;
  while (records.size() < kSample && reader.next(fields)) {
    if (fields.size() > kMaxColumns)
      data_error("OT2122", cat("'", source, "' has more than ", kMaxColumns, " columns"),
                 "save it as an array: npy or npz");
    records.emplace_back(fields.begin(), fields.end());
    if (records.size() * fields.size() > 4 * kMaxColumns) break;
  }
  return records;
}

// As the options say; else the usual one, unless what is found out names more of the columns.
char separator_of(std::string_view text, const std::string& source, const CsvOptions& options) {
  if (options.separator != 0) return options.separator;
  const char found = sniff_separator(text), usual = csv_separator(options.usual_separator);
  if (usual == 0 || usual == found) return found;
  std::set<std::string_view> wanted(options.features.begin(), options.features.end());
  wanted.insert(options.targets.begin(), options.targets.end());
  for (const CsvColumn& c : options.columns) wanted.insert(c.name);
  auto named = [&](char separator) {
    CsvReader reader(text, separator, source);
    std::vector<std::string_view> fields;
    if (!reader.next(fields) || fields.size() < 2) return std::ptrdiff_t(-1);
    return std::count_if(fields.begin(), fields.end(),
                         [&](std::string_view f) { return wanted.count(csv_trimmed(f)) != 0; });
  };
  return named(usual) >= named(found) ? usual : found;
}

// A header has no number in it, or a word above a column of numbers.
bool has_header(const Records& records) {
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

// "1.5  2.0  red": one column whose fields are several.
void refuse_blanks(const Records& records, const CsvLayout& l, const std::string& source) {
  if (l.names.size() != 1 || records.size() < 2) return;
  auto words = [](const std::string& line) {
    size_t n = 0;
    for (size_t i = 0; i < line.size(); ++i)
      n += line[i] != ' ' && (i == 0 || line[i - 1] == ' ') ? 1 : 0;
    return n;
  };
  const size_t first = words(records[0][0]);
  auto has_number = [](const std::string& line) {
    for (size_t at = 0; at < line.size();) {
      const size_t end = std::min(line.find(' ', at), line.size());
      if (end > at && csv_number(std::string_view(line).substr(at, end - at))) return true;
      at = end + 1;
    }
    return false;
  };
  if (first < 2 || !has_number(records[1][0])) return;  // names of two words are no columns
  bool single = true;
  for (const auto& r : records) {
    if (r.size() != 1 || words(r[0]) != first) return;
    single &= r[0].find("  ") == std::string::npos && r[0].front() != ' ';
  }
  data_error("OT2122",
             cat("'", source, "' has one column, and each of its lines holds ", first,
                 " words with blanks between them"),
             single ? std::string("--separator ' '")
                    : std::string("write it with one separator, in Python: pandas.read_csv(path, "
                                  "sep=r'\\s+').to_csv('data.csv', index=False)"));
}

void name_columns(const Names& first, CsvLayout& l) {
  std::set<std::string> seen;
  for (size_t c = 0; c < first.size(); ++c) {
    std::string name = l.header ? std::string(csv_trimmed(first[c])) : std::to_string(c);
    if (name.empty()) name = std::to_string(c);
    const std::string typed = name;
    while (!seen.insert(name).second) name += "_";
    if (name != typed)
      l.notes.push_back(
          cat("two columns are called '", typed, "': the second is '", name, "' here"));
    l.names.push_back(name);
  }
}

// By name, or by index; -1 when there is none.
int64_t find_column(const CsvLayout& l, const std::string& wanted) {
  const auto it = std::find(l.names.begin(), l.names.end(), wanted);
  if (it != l.names.end()) return it - l.names.begin();
  int64_t index = 0;
  const char* end = wanted.data() + wanted.size();
  const auto [stop, bad] = std::from_chars(wanted.data(), end, index);
  const int64_t n = int64_t(l.names.size());
  if (bad != std::errc() || stop != end || index < -n || index >= n) return -1;
  return index < 0 ? index + n : index;
}

// "a,b" names two columns, unless one is called so.
Names listed_columns(const CsvLayout& l, const Names& typed) {
  Names all;
  for (const std::string& text : typed) {
    if (find_column(l, text) >= 0 || text.find(',') == std::string::npos) {
      all.push_back(text);
      continue;
    }
    for (size_t at = 0; at <= text.size();) {
      const size_t comma = std::min(text.find(',', at), text.size());
      const std::string_view part = csv_trimmed(std::string_view(text).substr(at, comma - at));
      if (std::find(all.begin(), all.end(), part) != all.end())
        data_error("OT2105", cat("'", text, "' names the column '", part, "' twice"),
                   cat("name it once:  ", part));
      if (!part.empty()) all.emplace_back(part);
      at = comma + 1;
    }
  }
  return all;
}

[[noreturn]] void missing_columns(const CsvLayout& l, const Names& missing, const char* flag,
                                  const std::string& source, const CsvOptions& options) {
  Names others;  // a feature of the run is not its target under another name
  for (const std::string& name : l.names)
    if (std::find(options.features.begin(), options.features.end(), name) == options.features.end())
      others.push_back(name);
  const std::string near = closest(missing[0], others);
  const std::string have =
      cat("'", source, "' has no column", missing.size() == 1 ? " " : "s ", listed(missing));
  const bool target = flag == std::string_view("--target"), feature = flag[0] == '\0';
  if (options.of_run && (target || feature))
    data_error("OT2160",
               cat(have, ", which ", missing.size() == 1 ? "is" : "are", " what the run ",
                   feature ? "was trained on" : "predicts", "; it has ", listed(l.names)),
               feature        ? std::string("give the table the columns of the training, by these "
                                                   "names")
               : near.empty() ? std::string("add the column; onnxtrain predict needs none")
                              : cat("the column under another name?  --target ", near));
  std::string some = near.empty() ? l.names.back() : near;
  for (size_t c = 0; near.empty() && flag == std::string_view("--text") && c < l.names.size(); ++c)
    if (l.words[c] && std::find(l.targets.begin(), l.targets.end(), c) == l.targets.end()) {
      some = l.names[c];
      break;
    }
  data_error("OT2105", cat(have, "; it has ", listed(l.names)),
             cat(near.empty() ? "one of these:  " : "", flag, " ", shell_word(some)));
}

std::vector<size_t> find_columns(const CsvLayout& l, const Names& wanted, const char* flag,
                                 const std::string& source, const CsvOptions& options,
                                 bool may_miss = false) {
  std::vector<size_t> found;
  Names missing;
  for (const std::string& name : wanted) {
    const int64_t c = find_column(l, name);
    if (c < 0)
      missing.push_back(name);
    else if (std::find(found.begin(), found.end(), size_t(c)) == found.end())
      found.push_back(size_t(c));
  }
  if (!missing.empty() && !may_miss) missing_columns(l, missing, flag, source, options);
  return found;
}

// "y", "Label", "class": a column that says what it is. -1: none, or several.
int64_t column_named_target(const CsvLayout& l, const std::vector<bool>& free) {
  int64_t found = -1;
  for (size_t c = 0; c < l.names.size(); ++c) {
    std::string name = l.names[c];
    for (char& ch : name) ch = char(std::tolower(static_cast<unsigned char>(ch)));
    for (const char* usual : {"y", "label", "labels", "target", "targets", "class", "classes"}) {
      if (name != usual || !free[c]) continue;
      if (found >= 0) return -1;
      found = int64_t(c);
    }
  }
  return l.header ? found : -1;
}

// Of the other columns without a gap the first with the fewest values, as classes have (two rows of
// each at least, on average); "": none.
std::string second_guess(const Records& records, const CsvLayout& l,
                         const std::vector<bool>& free) {
  std::string best;
  size_t fewest = 0;
  for (size_t c = 0; c < l.names.size(); ++c) {
    std::set<std::string_view> values;
    bool whole = free[c] && c != l.targets[0];
    for (size_t r = l.header ? 1 : 0; r < records.size() && whole; ++r) {
      whole = c < records[r].size() && !csv_missing(records[r][c]);
      if (whole) values.insert(csv_trimmed(records[r][c]));
    }
    if (!whole || values.size() < 2 || 2 * values.size() >= records.size()) continue;
    if (fewest > 0 && values.size() >= fewest) continue;
    fewest = values.size();
    best = l.names[c];
  }
  return best;
}

void guess_target(const Records& records, CsvLayout& l, const std::vector<bool>& free) {
  if (l.names.size() < 2 || std::none_of(free.begin(), free.end(), [](bool f) { return f; }))
    return;
  l.guessed = true;
  const int64_t named = column_named_target(l, free);
  std::string why = "by its name";
  size_t target = size_t(std::max<int64_t>(named, 0));
  if (named < 0) {
    // a stray word among numbers is a mistake, not a column of classes
    std::vector<size_t> texts;
    for (size_t c = 0; c < l.names.size(); ++c)
      if (free[c] && l.words[c] && !l.dates[c]) texts.push_back(c);
    why = texts.size() == 1 ? "the only text column" : "the last column";
    target = l.names.size() - 1;
    while (!free[target]) --target;
    if (texts.size() == 1) target = texts[0];
  }
  l.targets = {target};
  l.instead = second_guess(records, l, free);
  l.notes.push_back(cat("target '", l.names[target], "', ", why, "   (--target to change)"));
}

// Features of a run, and columns that are named as texts, are no targets.
std::vector<bool> without_features(const CsvOptions& options, const CsvLayout& l,
                                   std::vector<bool> free, const std::string& source) {
  if (options.features.empty() || (!options.of_run && options.columns.empty())) return free;
  for (size_t c : find_columns(l, options.features, "", source, options)) free[c] = false;
  if (std::none_of(free.begin(), free.end(), [](bool f) { return f; }))
    data_error("OT2160",
               cat("'", source, "' has no target: its columns are the features of the ",
                   options.of_run ? "run, " : "model, ", listed(l.names)),
               options.of_run ? "add the column that the run predicts; onnxtrain predict needs none"
                              : "add the column that is to be learnt");
  return free;
}

// pandas writes the row number as a first column without a name.
bool is_row_number(const Records& records, const CsvLayout& l) {
  if (!l.header || !records[0][0].empty() || records[0].size() < 3) return false;
  for (size_t r = 1; r < records.size(); ++r)
    if (csv_number(records[r][0]) != double(r - 1)) return false;
  return true;
}

// A comma at the end of every line makes a column without a name and without values.
void leave_out_empty(const Records& records, const CsvOptions& options, std::vector<bool>& free,
                     CsvLayout& l) {
  if (!l.header || !options.features.empty()) return;
  for (size_t c = 0; c < l.names.size(); ++c) {
    if (!free[c] || !csv_trimmed(records[0][c]).empty()) continue;
    bool empty = records.size() > 1;
    for (size_t r = 1; r < records.size() && empty; ++r)
      empty = c >= records[r].size() || csv_trimmed(records[r][c]).empty();
    if (!empty) continue;
    free[c] = false;
    l.notes.push_back(cat("column ", c + 1, " has no name and no values: it is left out"));
  }
}

void find_kinds(const Records& records, CsvLayout& l) {
  l.text.assign(l.names.size(), false);
  l.words.assign(l.names.size(), false);
  l.dates.assign(l.names.size(), false);
  for (size_t c = 0; c < l.names.size(); ++c) {
    size_t words = 0, numbers = 0, dates = 0;
    for (size_t r = l.header ? 1 : 0; r < records.size(); ++r) {
      if (c >= records[r].size() || csv_missing(records[r][c])) continue;
      const std::string_view field = csv_trimmed(records[r][c]);
      ++(csv_number(field) ? numbers : words);
      dates +=
          date_number(field, DateOrder::kDayFirst) || date_number(field, DateOrder::kMonthFirst);
    }
    l.dates[c] = dates > 0 && dates == words;
    l.text[c] = words > 0;
    l.words[c] = words > numbers;
  }
}

void choose_features(const CsvOptions& options, const std::vector<bool>& free,
                     const std::string& source, CsvLayout& l) {
  if (!options.features.empty()) {
    const bool texts = !options.of_run && !options.columns.empty();
    l.features = find_columns(l, options.features, texts ? "--text" : "", source, options);
  } else {
    for (size_t c = 0; c < l.names.size(); ++c)
      if (free[c] && std::find(l.targets.begin(), l.targets.end(), c) == l.targets.end())
        l.features.push_back(c);
  }
  if (l.features.empty())
    data_error("OT2101", cat("'", source, "' has no feature columns"),
               "leave at least one column besides the target");
}

// Columns that a run was not trained on.
void note_unused(const CsvOptions& options, CsvLayout& l) {
  if (options.features.empty()) return;
  Names unused;
  for (size_t c = 0; c < l.names.size(); ++c) {
    const auto in = [&](const auto& list, const auto& x) {
      return std::find(list.begin(), list.end(), x) != list.end();
    };
    if (!in(l.features, c) && !in(l.targets, c) && !in(l.dropped, l.names[c]))
      unused.push_back(l.names[c]);
  }
  if (!unused.empty() && options.of_run)
    l.notes.push_back(cat("not used: column", unused.size() == 1 ? " " : "s ", listed(unused),
                          "   (the run was not trained on ", unused.size() == 1 ? "it)" : "them)"));
}

}  // namespace

CsvLayout find_csv_layout(std::string_view text, const std::string& source,
                          const CsvOptions& options) {
  CsvLayout l;
  l.separator = separator_of(text, source, options);
  const Records records = sample(text, l.separator, source);
  if (records.empty())
    data_error("OT2101", cat("'", source, "' is empty"),
               "a table has a line of column names and a line for every row");
  l.header = has_header(records);
  name_columns(records[0], l);
  if (!l.header)
    l.notes.push_back(cat("the first line holds values, no names: the columns are called '0' to '",
                          l.names.size() - 1, "'"));
  refuse_blanks(records, l, source);
  find_kinds(records, l);
  std::vector<bool> free(l.names.size(), true);
  // a table without a column that is left out anyway is as good
  const Names drop = listed_columns(l, options.drop);
  for (size_t c : find_columns(l, drop, "--drop", source, options, options.of_run)) {
    free[c] = false;
    l.dropped.push_back(l.names[c]);
  }
  if (is_row_number(records, l) && free[0] && options.features.empty()) {
    free[0] = false;
    l.notes.push_back("the first column has no name and holds row numbers: it is left out");
  }
  leave_out_empty(records, options, free, l);
  Names wanted = listed_columns(l, options.targets);
  for (const std::string& name : options.mapped)
    if (options.targets.empty() && std::find(l.names.begin(), l.names.end(), name) != l.names.end())
      wanted.push_back(name);
  if (!wanted.empty())
    l.targets = find_columns(l, wanted, "--target", source, options, options.no_target);
  else if (!options.no_target)
    guess_target(records, l, without_features(options, l, free, source));
  for (size_t c : l.targets)
    if (std::find(l.dropped.begin(), l.dropped.end(), l.names[c]) != l.dropped.end())
      usage_error("OT2105", cat("column '", l.names[c], "' is named by --target and by --drop"),
                  "remove one of the two flags");
  choose_features(options, free, source, l);
  for (size_t c : l.targets)
    if (!options.no_target &&
        std::find(l.features.begin(), l.features.end(), c) != l.features.end())
      usage_error("OT2105",
                  cat("column '", l.names[c], "' is named by --target and is a feature of the run"),
                  "remove --target: the run knows what it predicts");
  note_unused(options, l);
  if (options.no_target) l.targets.clear();  // known, so that they are no features
  return l;
}

}  // namespace onnxtrain
