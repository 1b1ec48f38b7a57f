// Which columns of a table say the same.
#include "run/data/column_relations.hpp"

#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>
#include <map>
#include <unordered_map>

#include "core/random.hpp"
#include "core/shell.hpp"
#include "run/data/whole_numbers.hpp"

namespace onnxtrain::run {

namespace {

constexpr int64_t kFewestCompared = 20;    // rows: fewer agree by chance
constexpr int64_t kComparedRows = 20000;   // every n-th row of more
constexpr int64_t kComparedColumns = 256;  // wider rows are signals or images, no tables

struct TableColumn {
  const Column* source = nullptr;  // as the data has it, before it is converted; may be null
  int64_t element = 0;             // of its rows
  std::string name;                // "'age'", "column 3 of 'x'"
  std::string column;              // of a table; empty: it has no name
  std::vector<uint64_t> keys;      // of the rows: equal values have equal keys
  bool text = false;
};

uint64_t key_of(double v) {
  return std::isnan(v) ? ~uint64_t(0) : std::bit_cast<uint64_t>(v == 0 ? 0.0 : v);
}

std::vector<int64_t> compared_rows(int64_t rows) {
  const int64_t every = rows / kComparedRows + 1;
  std::vector<int64_t> out;
  for (int64_t r = 0; r < rows; r += every) out.push_back(r);
  return out;
}

// keys[element][row]
std::vector<std::vector<uint64_t>> row_keys(const Column& c, const std::vector<int64_t>& rows) {
  std::vector<std::vector<uint64_t>> keys(size_t(c.row_elements()));
  for (auto& k : keys) k.reserve(rows.size());
  if (c.dtype() == DType::kString) {
    for (int64_t r : rows) keys[0].push_back(c.identity(r));
    return keys;
  }
  Tensor row(c.dtype(), {1, c.row_elements()});
  for (int64_t r : rows) {
    c.read({&r, 1}, row.data());
    const std::vector<double> v = row.to_doubles();
    for (size_t k = 0; k < keys.size(); ++k) keys[k].push_back(key_of(v[k]));
  }
  return keys;
}

// Does every value of one belong to one value of the other, and the other way round?
bool tell_each_other(const std::vector<uint64_t>& a, const std::vector<uint64_t>& b) {
  std::unordered_map<uint64_t, uint64_t> of_a, of_b;
  for (size_t k = 0; k < a.size(); ++k)
    if (of_a.try_emplace(a[k], b[k]).first->second != b[k] ||
        of_b.try_emplace(b[k], a[k]).first->second != a[k])
      return false;
  return true;
}

size_t different_keys(std::vector<uint64_t> keys) {
  std::sort(keys.begin(), keys.end());
  return size_t(std::unique(keys.begin(), keys.end()) - keys.begin());
}

bool is_one_key(const std::vector<uint64_t>& keys) {
  return std::all_of(keys.begin(), keys.end(), [&](uint64_t k) { return k == keys[0]; });
}

bool is_comparable(const Column& c) {
  if (c.is_decoded() || c.row_elements() < 1 || c.row_elements() > kComparedColumns) return false;
  if (c.dtype() == DType::kString) return c.row_elements() == 1;
  // whole numbers are tokens and masks, whose places repeat
  return (c.dtype() == DType::kFloat || c.dtype() == DType::kDouble) && c.row_shape().size() <= 1;
}

// Every column of the inputs; none when an input is no table.
std::vector<TableColumn> features_of(const Parts& p, const Model& m,
                                     const std::vector<int64_t>& rows) {
  std::vector<TableColumn> all;
  const std::vector<std::string> names = data_spec(p.data.metadata).features;
  size_t inputs = 0;
  for (const std::string& n : p.train.names) inputs += is_target(m, n) ? 0 : 1;
  for (size_t k = 0; k < p.train.names.size(); ++k) {
    const std::string& input = p.train.names[k];
    if (is_target(m, input)) continue;
    const Column& c = *p.train.columns[k];
    if (!is_comparable(c) || int64_t(all.size()) + c.row_elements() > kComparedColumns) return {};
    std::vector<std::vector<uint64_t>> keys = row_keys(c, rows);
    for (size_t i = 0; i < keys.size(); ++i) {
      TableColumn f;
      if (inputs == 1 && i < names.size())
        f.column = names[i];
      else if (keys.size() == 1 && inputs > 1)
        f.column = input;
      f.name = f.column.empty() ? cat("column ", i, " of '", input, "'") : cat("'", f.column, "'");
      f.keys = std::move(keys[i]);
      f.source = k < p.data.feeds.columns.size() ? p.data.feeds.columns[k]->converted() : nullptr;
      f.element = int64_t(i);
      f.text = c.dtype() == DType::kString;
      all.push_back(std::move(f));
    }
  }
  return all;
}

std::string without_column(const TableColumn& f, const Parts& p, const std::string& table) {
  const std::vector<std::string> targets = data_spec(p.data.metadata).targets;
  if (f.column.empty() || table.empty() || targets.empty())
    return "leave it out of the array, and make a model for the other columns";
  std::string target;
  for (const std::string& t : targets) target += cat(target.empty() ? "" : ",", t);
  return cat("a model for the other columns:  onnxtrain new mlp --data ", shell_word(table),
             " --target ", shell_word(target), " --drop ", shell_word(f.column),
             " -o without.onnx");
}

// The column of the target when it is one value per row.
const Column* single_target(const Parts& p) {
  for (size_t k = 0; k < p.train.names.size(); ++k)
    if (p.train.names[k] == p.train.label && p.train.columns[k]->row_elements() == 1 &&
        p.train.columns[k]->dtype() != DType::kString)
      return p.train.columns[k].get();
  return nullptr;
}

// One number in every row and every place of it.
bool target_is_constant(const Parts& p) {
  for (size_t k = 0; k < p.train.names.size(); ++k)
    if (p.train.names[k] == p.train.label && !dtype_is_integer(p.train.columns[k]->dtype()))
      return p.data.target.classes.empty() && p.data.target.min == p.data.target.max;
  return false;
}

void warn_about_copies(const std::vector<TableColumn>& features,
                       const std::vector<uint64_t>& target, bool classes, const Parts& p,
                       const std::string& table, Observer& observer) {
  const size_t values = different_keys(target);
  for (const TableColumn& f : features) {
    // of classes any two that tell each other, of numbers the same number
    const bool tells =
        classes ? values * 3 <= target.size() && tell_each_other(f.keys, target) : f.keys == target;
    if (!tells) continue;
    observer.on_warning(
        "OT3121",
        cat(f.name.starts_with("column ") ? "" : "column ", f.name, " tells the target '",
            p.data.target.column, "' of every row",
            classes ? cat(": each of its ", values, " values belongs to one class")
                    : std::string(": it holds the same numbers"),
            ". The model learns to copy it, and its figures say nothing about rows where it is not "
            "known"),
        without_column(f, p, table));
  }
}

void warn_about_twins(const std::vector<TableColumn>& features, const Parts& p,
                      const std::string& table, Observer& observer) {
  for (size_t b = 1; b < features.size(); ++b)
    for (size_t a = 0; a < b; ++a) {
      if (features[a].keys != features[b].keys || is_one_key(features[a].keys)) continue;
      observer.on_warning("OT3122",
                          cat("columns ", features[a].name, " and ", features[b].name,
                              " hold the same values in every row: the second adds nothing"),
                          without_column(features[b], p, table));
      return;  // one is enough to look at the table again
    }
}

// Numbers that people write where there is none: -99, -999, 9999, ...
bool is_marker(double v) {
  const double size = std::fabs(v);
  return size == 99 || size == 999 || size == 9999 || size == 99999 || size == 999999;
}

// A column that counts the rows of the file.
bool counts_rows(const TableColumn& f, const Column& source, const std::vector<int64_t>& rows) {
  if (f.text) return false;
  const double first = std::bit_cast<double>(f.keys[0]) - double(source.source_row(rows[0]));
  for (size_t k = 0; k < rows.size(); ++k)
    if (std::bit_cast<double>(f.keys[k]) - double(source.source_row(rows[k])) != first)
      return false;
  return true;
}

void warn_about_row_numbers(const std::vector<TableColumn>& features, const Parts& p,
                            const std::vector<int64_t>& rows, const std::string& table,
                            Observer& observer) {
  for (const TableColumn& f : features)
    if (counts_rows(f, *p.train.columns[0], rows))
      observer.on_warning("OT3122",
                          cat(f.name.starts_with("column ") ? "" : "column ", f.name,
                              " counts the rows: new rows have other numbers, and where the file "
                              "is sorted it tells the target"),
                          without_column(f, p, table));
}

// An id: whole numbers, no two alike, and the column is called so.
bool is_named_id(const TableColumn& f) {
  std::string name = f.column;
  for (char& c : name) c = char(std::tolower(static_cast<unsigned char>(c)));
  if (f.text || (name != "id" && name != "uuid" && !name.ends_with("_id") &&
                 !f.column.ends_with("Id") && !f.column.ends_with("ID")))
    return false;
  return std::all_of(f.keys.begin(), f.keys.end(),
                     [](uint64_t k) {
                       const double v = std::bit_cast<double>(k);
                       return v == std::floor(v);
                     }) &&
         different_keys(f.keys) == f.keys.size();
}

void warn_about_ids(const std::vector<TableColumn>& features, const Parts& p,
                    const std::string& table, Observer& observer) {
  for (const TableColumn& f : features)
    if (is_named_id(f))
      observer.on_warning("OT3122",
                          cat("column ", f.name,
                              " is another number in every row, an id by its name: it says nothing "
                              "about new rows"),
                          without_column(f, p, table));
}

// Rows that are alike in every feature and not in their class: no model can tell them apart.
void note_contradictions(const std::vector<TableColumn>& features,
                         const std::vector<uint64_t>& target, Observer& observer) {
  constexpr double kSeen = 0.02;
  std::map<uint64_t, std::map<uint64_t, int64_t>> seen;
  for (size_t r = 0; r < target.size(); ++r) {
    uint64_t row = 0;
    for (const TableColumn& f : features) row = hash64(&f.keys[r], sizeof f.keys[r], row);
    ++seen[row][target[r]];
  }
  int64_t wrong = 0;
  for (const auto& [row, classes] : seen) {
    int64_t all = 0, most = 0;
    for (const auto& [label, n] : classes) {
      all += n;
      most = std::max(most, n);
    }
    wrong += all - most;
  }
  if (double(wrong) < kSeen * double(target.size())) return;
  observer.on_note("note", cat("rows with the same features have different classes: at most ",
                               std::round(1000 * (1 - double(wrong) / double(target.size()))) / 10,
                               " % of the training rows can be told rightly"));
}

void note_constants(const std::vector<TableColumn>& features, Observer& observer) {
  constexpr size_t kShown = 5;
  std::string all;
  size_t n = 0;
  for (const TableColumn& f : features)
    if (is_one_key(f.keys) && n++ < kShown) all += cat(all.empty() ? "" : ", ", f.name);
  if (n > 0)
    observer.on_note("note", cat("the same in every training row: ", all, n > kShown ? ", ..." : "",
                                 n == 1 ? "; the column adds nothing" : "; they add nothing"));
}

// A value that lies a thousand times farther out than half of all values: a number that marks a
// gap, a typing mistake, another unit.
void warn_about_outliers(const std::vector<TableColumn>& features, const std::vector<int64_t>& rows,
                         Observer& observer) {
  constexpr double kFar = 1000, kFarMarker = 20;
  for (const TableColumn& f : features) {
    if (f.text) continue;
    std::vector<double> v;
    for (uint64_t key : f.keys)
      if (const double x = std::bit_cast<double>(key); std::isfinite(x)) v.push_back(x);
    if (int64_t(v.size()) < kFewestCompared) continue;
    std::sort(v.begin(), v.end());
    const double low = v[v.size() / 4], high = v[v.size() * 3 / 4], middle = v[v.size() / 2];
    const double far = kFar * (high - low);
    const double worst = v.back() - middle > middle - v.front() ? v.back() : v.front();
    const bool marker = is_marker(worst) && std::fabs(worst - middle) > kFarMarker * (high - low);
    if (!(high > low) || (std::fabs(worst - middle) <= far && !marker)) continue;
    const auto at = std::find(f.keys.begin(), f.keys.end(), key_of(worst)) - f.keys.begin();
    observer.on_warning(
        "OT3124",
        cat("column ", f.name, " has the value ", worst, " at training row ", rows[size_t(at)],
            ", far from all others: half of them lie between ", low, " and ", high,
            ". It decides how the column is scaled"),
        "correct it, or remove the row; a number that marks a gap becomes an empty field");
    return;
  }
}

}  // namespace

void check_indices(const FeedColumns& rows, const Model& m, Observer& observer) {
  for (size_t k = 0; k < rows.names.size(); ++k) {
    const ValueId v = m.main.find(rows.names[k]);
    const Column& c = *rows.columns[k];
    if (is_target(m, rows.names[k]) || v == kNone || c.dtype() != DType::kInt64) continue;
    const int64_t n = embedding_rows(m.main, v), width = c.row_elements();
    if (n <= 0 || width == 0) continue;
    Tensor row(c.dtype(), {1, width});
    int64_t negative = 0;
    for (int64_t r = 0; r < c.rows(); ++r) {
      c.read({&r, 1}, row.data());
      for (int64_t i = 0; i < width; ++i) negative += row.as<int64_t>()[i] < 0;
      for (int64_t i = 0; i < width; ++i)
        if (const int64_t id = row.as<int64_t>()[i]; id >= n || id < -n)
          data_error("OT2221",
                     cat("index ", id, " at row ", with_commas(c.source_row(r)), " of input '",
                         rows.names[k], "' is beyond the embedding, which has ", with_commas(n),
                         " rows: 0..", n - 1),
                     cat("number what the model knows from 0 to ", n - 1,
                         "; other ids need a model with a larger embedding"));
    }
    if (negative > 0)
      observer.on_warning("OT3121",
                          cat(with_commas(negative), " indices of input '", rows.names[k],
                              "' are below 0: they count from the end of the embedding, -1 is row ",
                              n - 1, ". Often -1 marks a value that is missing or not known"),
                          cat("give them a row of their own: ids from 0 to ", n - 1));
  }
}

void warn_about_columns(const Parts& p, const Model& m, const std::string& table,
                        Observer& observer) {
  if (p.train.rows() < kFewestCompared) return;
  const std::vector<int64_t> rows = compared_rows(p.train.rows());
  const std::vector<TableColumn> features = features_of(p, m, rows);
  const Column* target = single_target(p);
  const bool classes = !p.data.labels.empty() || p.data.target.two_values;
  const std::vector<uint64_t> keys = target ? row_keys(*target, rows)[0] : std::vector<uint64_t>();
  if (target_is_constant(p))
    observer.on_warning("OT3120",
                        cat("the target '", p.data.target.column, "' is ", p.data.target.min,
                            " in every row: there is nothing to learn, and the model learns to "
                            "say it always"),
                        "add rows with other values; another column:  --target NAME");
  if (features.empty()) return;
  if (std::all_of(features.begin(), features.end(),
                  [](const TableColumn& f) { return is_one_key(f.keys); }))
    observer.on_warning("OT3123",
                        "all rows have the same features: there is nothing to tell them apart by, "
                        "and the model learns a constant guess",
                        "look at the first rows of the data; other columns or arrays:  --map "
                        "INPUT=NAME");
  else
    note_constants(features, observer);
  if (target && !is_one_key(keys)) warn_about_copies(features, keys, classes, p, table, observer);
  if (target && classes) note_contradictions(features, keys, observer);
  warn_about_row_numbers(features, p, rows, table, observer);
  warn_about_ids(features, p, table, observer);
  warn_about_twins(features, p, table, observer);
  warn_about_outliers(features, rows, observer);
  for (const TableColumn& f : features)
    if (f.source && !f.text)
      if (const std::string text = lost_in_float32(*f.source, f.element, f.name); !text.empty()) {
        observer.on_warning("OT3132", text, without_column(f, p, table));
        break;
      }
}

}  // namespace onnxtrain::run
