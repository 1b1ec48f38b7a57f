// From csv records to columns: values of features and targets.
#include "data/csv.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/shell.hpp"
#include "core/text.hpp"
#include "data/csv_column.hpp"
#include "data/csv_decimal.hpp"
#include "data/csv_layout.hpp"
#include "data/table_profile.hpp"

namespace onnxtrain {
namespace {

using Fields = std::vector<std::string_view>;

// Fills the feature matrix and the targets from the records.
class Filler {
 public:
  Filler(std::string_view text, const CsvLayout& l, const CsvOptions& o, const std::string& source)
      : layout_(l), options_(o), source_(source), reader_(text, l.separator, source) {
    // a record has at least one byte per column: bounds the rows before anything is read
    const size_t lines = size_t(std::count(text.begin(), text.end(), '\n')) + 1;
    const size_t most = std::min(lines, text.size() / l.names.size() + 1);
    for (const CsvColumn& c : o.columns) columns_.emplace_back(c);
    if (columns_.empty())
      matrix_ = Tensor(DType::kDouble, {int64_t(most), int64_t(l.features.size())});
    targets_ = Tensor(DType::kDouble, {int64_t(most), int64_t(l.targets.size())});
    for (size_t i = 0; known_classes() && i < o.classes->size(); ++i)
      ids_.emplace((*o.classes)[i], i);
  }

  void run() {
    Fields fields;
    if (layout_.header) reader_.next(fields);
    while (reader_.next(fields)) {
      if (fields.size() != layout_.names.size()) ragged(fields.size());
      add_features(fields);
      double* target = targets_.as<double>() + rows_ * int64_t(layout_.targets.size());
      for (size_t i = 0; i < layout_.targets.size(); ++i)
        target[i] = target_value(fields[layout_.targets[i]], layout_.targets[i]);
      ++rows_;
    }
    if (rows_ == 0)
      data_error("OT2101", cat("'", source_, "' has a header but no rows"),
                 "one line per example belongs below the names of the columns");
  }

  // Columns by themselves, where the options name them.
  void add_columns(Dataset& d) {
    for (CsvColumnBuilder& c : columns_) {
      if (const std::string note = c.note(); !note.empty()) d.add_note(note);
      d.add(c.spec().name, c.finish());
    }
  }

  Tensor features() const {
    return Tensor(DType::kDouble, {rows_, int64_t(layout_.features.size())},
                  const_cast<void*>(matrix_.data()), matrix_.owner());
  }

  // int64 when all values are whole, else double; text became class ids in order of the names
  Tensor targets(std::vector<std::string>& class_names) {
    double* v = targets_.as<double>();
    const int64_t n = rows_ * int64_t(layout_.targets.size());
    if (known_classes()) {
      class_names = *options_.classes;
    } else if (text_target()) {
      std::vector<std::pair<std::string, size_t>> order(ids_.begin(), ids_.end());
      std::sort(order.begin(), order.end());
      std::vector<int64_t> rank(order.size());
      for (size_t i = 0; i < order.size(); ++i) {
        rank[order[i].second] = int64_t(i);
        class_names.push_back(order[i].first);
      }
      for (int64_t i = 0; i < n; ++i) v[i] = double(rank[size_t(v[i])]);
    }
    Shape shape{rows_};
    if (layout_.targets.size() > 1) shape.push_back(int64_t(layout_.targets.size()));
    const bool whole =
        std::all_of(v, v + n, [](double x) { return x == std::floor(x) && std::fabs(x) < 0x1p53; });
    if (!whole) return Tensor(DType::kDouble, shape, v, targets_.owner());
    Tensor out(DType::kInt64, shape);
    std::transform(v, v + n, out.as<int64_t>(), [](double x) { return int64_t(x); });
    return out;
  }

 private:
  void add_features(const Fields& fields) {
    if (!columns_.empty()) {
      for (size_t i = 0; i < columns_.size(); ++i) {
        const size_t column = layout_.features[i];
        columns_[i].add(fields[column], [&] { return place(column); });
      }
      return;
    }
    double* row = matrix_.as<double>() + rows_ * int64_t(layout_.features.size());
    for (size_t i = 0; i < layout_.features.size(); ++i) {
      const std::string_view field = fields[layout_.features[i]];
      row[i] = options_.missing && csv_missing(field) ? std::nan("")
                                                      : number(field, layout_.features[i]);
    }
  }

  bool known_classes() const { return options_.classes && !options_.classes->empty(); }
  // One column of text, whose words are classes; a run that learnt numbers takes none.
  bool text_target() const {
    return layout_.targets.size() == 1 && layout_.text[layout_.targets[0]] && !options_.classes;
  }

  [[noreturn]] void ragged(size_t found) const {
    data_error(
        "OT2122",
        cat("'", source_, "' line ", with_commas(reader_.line()), " has ", found,
            found == 1 ? " field" : " fields", ", the first line has ", layout_.names.size()),
        "complete or remove the line; a field that holds the separator stands in quotes");
  }

  std::string place(size_t column) const {
    return cat("'", source_, "' line ", with_commas(reader_.line()), ", column '",
               layout_.names[column], "'");
  }

  double number(std::string_view field, size_t column) const {
    if (const auto v = csv_number(field)) {
      if (!std::isinf(*v)) return *v;
      data_error("OT2120", cat("the data has an infinity: ", place(column)),
                 "correct the value or remove the row before training");
    }
    if (csv_missing(field))
      data_error("OT2121", cat("a value is missing: ", place(column)), missing_hint(column));
    data_error("OT2124",
               cat("text where a number is needed: ", csv_shown(field), " in ", place(column)),
               text_hint(field, column));
  }

  std::string missing_hint(size_t column) const {
    const auto& t = layout_.targets;
    return std::find(t.begin(), t.end(), column) != t.end()
               ? "remove the row: there is nothing to learn from it"
               : "fill it in or remove the row; to let the model fill it in:  --preprocess auto";
  }

  std::string text_hint(std::string_view field, size_t column) const {
    const std::string& name = layout_.names[column];
    if (std::string comma = decimal_comma_hint(field); !comma.empty()) return comma;
    const auto& t = layout_.targets;
    if (std::find(t.begin(), t.end(), column) != t.end())
      return options_.classes ? "the run learnt numbers from this column; write numbers"
                              : "several targets are numbers; classes need a column of their own";
    if (!layout_.words[column]) return "correct the value, or remove the line";
    const int64_t width = int64_t(layout_.features.size());
    const bool one_text = std::count(layout_.words.begin(), layout_.words.end(), true) == 1;
    if (layout_.guessed && one_text && (options_.width == 0 || options_.width == width))
      return cat("if this column is what to predict:  --target ", shell_word(name));
    if (options_.width == 0 || options_.width < width)
      return cat("leave the column out:  --drop ", shell_word(name));
    return cat(
        "categories become numbers in a model that is made for the data:  onnxtrain new mlp --data "
        "DATA",
        t.empty() ? "" : " --target " + shell_word(layout_.names[t[0]]), " -o model.onnx");
  }

  double target_value(std::string_view field, size_t column) {
    if (known_classes()) return double(known_class(field, column));
    if (!text_target()) return number(field, column);
    field = csv_trimmed(field);
    if (field.empty()) number(field, column);  // reports it
    const auto [it, fresh] = ids_.try_emplace(std::string(field), ids_.size());
    (void)fresh;
    return double(it->second);
  }

  size_t known_class(std::string_view field, size_t column) const {
    for (const std::string_view text : {field, csv_trimmed(field)})
      if (const auto it = ids_.find(std::string(text)); it != ids_.end()) return it->second;
    if (const auto v = csv_number(field))  // 1.0 is the class 1
      for (const auto& [name, id] : ids_)
        if (csv_number(name) == v) return id;
    if (csv_missing(field)) number(field, column);  // reports it
    data_error("OT2114",
               cat("class ", csv_shown(field), " in ", place(column),
                   " is not among the classes of the training: ", listed(*options_.classes, 20)),
               "correct the value or remove the row; a new class needs a new training");
  }

  const CsvLayout& layout_;
  const CsvOptions& options_;
  const std::string& source_;
  CsvReader reader_;
  Tensor matrix_, targets_;
  std::vector<CsvColumnBuilder> columns_;
  int64_t rows_ = 0;
  std::unordered_map<std::string, size_t> ids_;
};

void add_targets(const CsvLayout& l, Filler& filler, Dataset& d) {
  std::vector<std::string> classes, names;
  for (size_t c : l.targets) names.push_back(l.names[c]);
  const Tensor y = filler.targets(classes);
  auto add = [&](const std::string& name, const ColumnPtr& column) {
    d.add(name, column);
    if (!classes.empty()) d.set_class_names(name, classes);
  };
  add("y", memory_column(y));
  for (size_t i = 0; l.header && i < names.size(); ++i)
    if (!d.has(names[i]))
      add(names[i], names.size() == 1 ? memory_column(y) : matrix_column(y, int64_t(i)));
  d.set_targets(std::move(names));
}

}  // namespace

Dataset parse_csv(std::string_view text, const std::string& source, const CsvOptions& options) {
  std::string store;
  text = csv_utf8(text, source, options.encoding, store);
  CsvLayout l = find_csv_layout(text, source, options);
  if (has_decimal_commas(text, l.separator, source)) {
    text = store = with_decimal_points(text, l.separator);
    l = find_csv_layout(text, source, options);
    l.notes.emplace_back("numbers have a decimal comma: 3,5 is read as 3.5");
  }
  if (options.profile) {
    *options.profile = profile_csv(text, source, l);
    l.features.clear();
  }
  Filler filler(text, l, options, source);
  filler.run();
  Dataset d(source, l.separator == '\t' ? "tsv" : "csv");
  if (options.profile || !options.columns.empty()) {
    filler.add_columns(d);
    if (!l.targets.empty()) add_targets(l, filler, d);
    d.set_dropped(l.dropped);
    for (const std::string& note : l.notes) d.add_note(note);
    return d;
  }
  const Tensor x = filler.features();
  d.add("x", memory_column(x));
  std::vector<std::string> feature_names;
  for (size_t c : l.features) feature_names.push_back(l.names[c]);
  if (!l.targets.empty()) add_targets(l, filler, d);
  if (l.header && l.features.size() <= 4096)
    for (size_t i = 0; i < feature_names.size(); ++i)
      if (!d.has(feature_names[i])) d.add(feature_names[i], matrix_column(x, int64_t(i)));
  d.set_feature_names("x", std::move(feature_names));
  d.set_dropped(l.dropped);
  for (const std::string& note : l.notes) d.add_note(note);
  return d;
}

}  // namespace onnxtrain
