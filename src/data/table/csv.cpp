// From csv records to columns: values of features and targets.
#include "data/table/csv.hpp"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "core/shell.hpp"
#include "core/text.hpp"
#include "data/table/csv_column.hpp"
#include "data/table/csv_decimal.hpp"
#include "data/table/csv_layout.hpp"
#include "data/table/table_profile.hpp"

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
    ids_.resize(l.targets.size());
    for (size_t t = 0; t < ids_.size(); ++t)
      if (const auto* known = known_classes(t))
        for (size_t i = 0; i < known->size(); ++i) ids_[t].emplace((*known)[i], i);
  }

  void run() {
    Fields fields;
    if (layout_.header) reader_.next(fields);
    while (reader_.next(fields)) {
      if (fields.size() != layout_.names.size()) ragged(fields.size());
      add_features(fields);
      double* target = targets_.as<double>() + rows_ * int64_t(layout_.targets.size());
      for (size_t i = 0; i < layout_.targets.size(); ++i)
        target[i] = target_value(fields[layout_.targets[i]], i);
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

  // int64 when all values are whole, else double; text became class ids in order of the names.
  // class_names: of every target.
  Tensor targets(std::vector<std::vector<std::string>>& class_names) {
    double* v = targets_.as<double>();
    const size_t width = layout_.targets.size();
    const int64_t n = rows_ * int64_t(width);
    class_names.assign(width, {});
    for (size_t t = 0; t < width; ++t) {
      if (const auto* known = known_classes(t)) {
        class_names[t] = *known;
      } else if (text_target(t)) {
        std::vector<std::pair<std::string, size_t>> order(ids_[t].begin(), ids_[t].end());
        std::sort(order.begin(), order.end());
        std::vector<int64_t> rank(order.size());
        for (size_t i = 0; i < order.size(); ++i) {
          rank[order[i].second] = int64_t(i);
          class_names[t].push_back(order[i].first);
        }
        for (int64_t i = int64_t(t); i < n; i += int64_t(width)) v[i] = double(rank[size_t(v[i])]);
      }
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
      row[i] = options_.missing && (csv_missing(field) || csv_dash(field))
                   ? std::nan("")
                   : number(field, layout_.features[i]);
    }
  }

  const std::string& target_name(size_t t) const { return layout_.names[layout_.targets[t]]; }
  // Names of the classes of a target, when they are known; null: not known, or numbers.
  const std::vector<std::string>* known_classes(size_t t) const {
    if (layout_.targets.size() == 1)
      return options_.classes && !options_.classes->empty() ? &*options_.classes : nullptr;
    const auto it = options_.target_classes.find(target_name(t));
    return it == options_.target_classes.end() ? nullptr : &it->second;
  }
  // A column of text, whose words are classes; a run that learnt numbers takes none.
  bool text_target(size_t t) const {
    const size_t column = layout_.targets[t];
    if (layout_.targets.size() == 1) return layout_.text[column] && !options_.classes;
    return options_.text_among && layout_.header && layout_.words[column] &&
           options_.target_classes.empty();
  }

  [[noreturn]] void ragged(size_t found) const {
    const bool comment = !layout_.names.empty() && layout_.names[0].starts_with("#");
    data_error(
        "OT2122",
        cat("'", source_, "' line ", with_commas(reader_.line()), " has ", found,
            found == 1 ? " field" : " fields", ", the first line has ", layout_.names.size()),
        comment
            ? cat("the first line is a comment; a table begins with its names:  grep -v '^#' ",
                  shell_word(source_), " > table.csv")
            : std::string("complete or remove the line; a field that holds the separator stands in "
                          "quotes"));
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
    const bool target = std::find(t.begin(), t.end(), column) != t.end();
    if (target && layout_.guessed && !layout_.instead.empty())
      return cat("'", layout_.names[column],
                 "' was taken because no target is named; name it:  ", "--target ",
                 shell_word(layout_.instead));
    return target ? "remove the row: there is nothing to learn from it"
                  : "fill it in or remove the row; to let the model fill it in:  --preprocess auto";
  }

  std::string text_hint(std::string_view field, size_t column) const {
    const std::string& name = layout_.names[column];
    if (std::string plain = plain_number_hint(field); !plain.empty()) return plain;
    if (std::string comma = decimal_comma_hint(field); !comma.empty()) return comma;
    const auto& t = layout_.targets;
    if (std::find(t.begin(), t.end(), column) != t.end())
      return options_.classes || !options_.target_classes.empty()
                 ? "the run learnt numbers from this column; write numbers"
                 : "several targets are numbers; a model that learns classes among them:  "
                   "onnxtrain "
                   "new";
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

  double target_value(std::string_view field, size_t t) {
    const size_t column = layout_.targets[t];
    if (known_classes(t)) return double(known_class(field, t));
    if (const auto form = layout_.forms.find(column); form != layout_.forms.end())
      if (const auto v = number_of_form(csv_trimmed(field), form->second)) return *v;
    if (!text_target(t)) return number(field, column);
    field = csv_trimmed(field);
    if (field.empty()) number(field, column);  // reports it
    const auto [it, fresh] = ids_[t].try_emplace(std::string(field), ids_[t].size());
    (void)fresh;
    return double(it->second);
  }

  size_t known_class(std::string_view field, size_t t) const {
    const size_t column = layout_.targets[t];
    for (const std::string_view text : {field, csv_trimmed(field)})
      if (const auto it = ids_[t].find(std::string(text)); it != ids_[t].end()) return it->second;
    if (const auto v = csv_number(field))  // 1.0 is the class 1
      for (const auto& [name, id] : ids_[t])
        if (csv_number(name) == v) return id;
    if (csv_missing(field)) number(field, column);  // reports it
    data_error("OT2114",
               cat("class ", csv_shown(field), " in ", place(column),
                   " is not among the classes of the training: ", listed(*known_classes(t), 20)),
               "correct the value or remove the row; a new class needs a new training");
  }

  const CsvLayout& layout_;
  const CsvOptions& options_;
  const std::string& source_;
  CsvReader reader_;
  Tensor matrix_, targets_;
  std::vector<CsvColumnBuilder> columns_;
  int64_t rows_ = 0;
  std::vector<std::unordered_map<std::string, size_t>> ids_;  // of every target
};

// One of several targets, int64 when its own values are whole.
ColumnPtr target_column(const Tensor& y, int64_t index) {
  ColumnPtr column = matrix_column(y, index);
  if (y.dtype() != DType::kDouble) return column;
  std::vector<int64_t> whole;
  for (int64_t r = 0; r < y.shape()[0]; ++r) {
    const double v = y.as<double>()[r * y.shape()[1] + index];
    if (v != std::floor(v) || std::fabs(v) >= 0x1p53) return column;
    whole.push_back(int64_t(v));
  }
  return memory_column(Tensor::vector(whole));
}

// What the column with all targets is called: 'y', unless another column is.
std::string name_of_all(const std::vector<std::string>& targets, const Dataset& features) {
  const bool one = targets.size() == 1;
  std::string name = "y";
  if (one) return features.has(name) ? targets[0] : name;
  while (features.has(name) || std::find(targets.begin(), targets.end(), name) != targets.end())
    name += "_all";
  return name;
}

void add_targets(const CsvLayout& l, Filler& filler, Dataset& d) {
  std::vector<std::string> names;
  std::vector<std::vector<std::string>> classes;
  for (size_t c : l.targets) names.push_back(l.names[c]);
  const Tensor y = filler.targets(classes);
  auto add = [&](const std::string& name, const ColumnPtr& column, size_t t) {
    d.add(name, column);
    if (!classes[t].empty()) d.set_class_names(name, classes[t]);
  };
  const std::string all = name_of_all(names, d);
  if (names.size() == 1)
    add(all, memory_column(y), 0);
  else
    d.add(all, memory_column(y));
  for (size_t i = 0; l.header && i < names.size(); ++i)
    if (!d.has(names[i]))
      add(names[i], names.size() == 1 ? memory_column(y) : target_column(y, int64_t(i)), i);
  std::map<std::string, std::string> forms;
  for (const auto& [column, form] : l.forms) forms[l.names[column]] = form_word(form);
  d.set_target_forms(std::move(forms));
  d.set_targets(std::move(names), all);
}

}  // namespace

Dataset parse_csv(std::string_view text, const std::string& source, const CsvOptions& options) {
  std::string store;
  const std::string encoding = csv_encoding(text, options);
  const std::string about_encoding = encoding_note(text, options);
  text = csv_utf8(text, source, encoding, store);
  CsvLayout l = find_csv_layout(text, source, options);
  if (has_decimal_commas(text, l.separator, source)) {
    text = store = with_decimal_points(text, l.separator);
    l = find_csv_layout(text, source, options);
    l.notes.emplace_back("numbers have a decimal comma: 3,5 is read as 3.5");
  }
  find_target_forms(text, source, options, l);
  if (options.profile) {
    *options.profile = profile_csv(text, source, l);
    l.features.clear();
  }
  Filler filler(text, l, options, source);
  filler.run();
  Dataset d(source, l.separator == '\t' ? "tsv" : "csv");
  const char usual = csv_separator(options.usual_separator);
  const bool told = options.separator != 0 || l.separator == usual;
  d.set_reading({encoding, told ? csv_separator_word(l.separator) : std::string()});
  if (!about_encoding.empty()) d.add_note(about_encoding);
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
