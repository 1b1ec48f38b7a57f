// A dataset: named columns with the same number of rows, and what is known about them.
// Datasets are small values: renaming, splitting and adapting make new ones over the same memory.
#pragma once
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/closest.hpp"
#include "core/error.hpp"
#include "core/text.hpp"
#include "data/columns/column.hpp"

namespace onnxtrain {

class Dataset {
 public:
  Dataset() = default;
  // source: what the user typed; format: "npz", "idx, gzip", ...
  Dataset(std::string source, std::string format)
      : source_(std::move(source)), format_(std::move(format)) {}

  // In-memory arrays of other languages; the first dimension counts the rows.
  static Dataset from_tensors(const std::vector<std::pair<std::string, Tensor>>& arrays);

  // Throws OT2103 when the number of rows differs from the other columns.
  void add(std::string name, ColumnPtr column);
  // One of several arrays of a file: whether their rows agree is asked of those that are used.
  void add_array(std::string name, ColumnPtr column);
  // An array that cannot feed anything; asking for the column throws `why`.
  void add_unreadable(const std::string& name, Error why);
  void set(const std::string& name, ColumnPtr column);  // replaces or adds

  int64_t rows() const { return rows_; }  // of the longest array, before used()
  bool empty() const { return names_.empty(); }
  const std::vector<std::string>& columns() const { return names_; }
  bool has(const std::string& name) const {
    return columns_.count(name) > 0 || unreadable_.count(name) > 0;
  }
  const ColumnPtr& column(const std::string& name) const;  // OT2105 with a suggestion
  DType dtype(const std::string& name) const { return column(name)->dtype(); }
  const Shape& row_shape(const std::string& name) const { return column(name)->row_shape(); }

  // Rows into `out`, [n, row shape]; its memory is used again when type and shape fit.
  void gather(const std::string& name, std::span<const int64_t> rows, Tensor& out) const;
  Tensor gather_all(const std::string& name) const;

  Dataset subset(std::vector<int64_t> rows) const;
  // Only these columns, which must have the same number of rows (OT2103) and at least one
  // (OT2101); arrays that are left out are named in a note.
  Dataset used(const std::vector<std::string>& names) const;

  const std::string& source() const { return source_; }
  void set_source(std::string source) { source_ = std::move(source); }
  const std::string& format() const { return format_; }
  void set_format(std::string format) { format_ = std::move(format); }
  bool is_table() const { return format_ == "csv" || format_ == "tsv" || format_ == "parquet"; }
  // Names of the classes when a column was text: id i is names[i].
  const std::vector<std::string>& class_names(const std::string& column) const;
  void set_class_names(const std::string& column, std::vector<std::string> names);
  // Names of the features inside a column (csv: those of 'x', in order).
  const std::vector<std::string>& feature_names(const std::string& column) const;
  void set_feature_names(const std::string& column, std::vector<std::string> names);
  // Columns of a table that are to be predicted, and those that are left out, by name.
  const std::vector<std::string>& targets() const { return targets_; }
  // column: the one that holds them all.
  void set_targets(std::vector<std::string> names, std::string column = "y") {
    targets_ = std::move(names);
    target_column_ = std::move(column);
  }
  // 'y', unless a feature is called so.
  const std::string& target_column() const { return target_column_; }
  // The same for data whose targets are arrays of their own: names only.
  const std::vector<std::string>& target_names() const {
    return targets_.empty() ? target_names_ : targets_;
  }
  void set_target_names(std::vector<std::string> names) { target_names_ = std::move(names); }
  // How the numbers of targets are written, where they have a unit: "number, $#".
  const std::map<std::string, std::string>& target_forms() const { return target_forms_; }
  void set_target_forms(std::map<std::string, std::string> forms) {
    target_forms_ = std::move(forms);
  }
  const std::vector<std::string>& dropped() const { return dropped_; }
  void set_dropped(std::vector<std::string> names) { dropped_ = std::move(names); }
  // How the text of a table was read where it does not say so itself, as --encoding and --separator
  // are written.
  struct Reading {
    std::string encoding, separator;
  };
  const Reading& reading() const { return reading_; }
  void set_reading(Reading reading) { reading_ = std::move(reading); }
  // What a row is called (the file of an image); empty: rows have no names.
  const std::vector<std::string>& row_names() const { return row_names_; }
  void set_row_names(std::vector<std::string> names) { row_names_ = std::move(names); }
  // What was decided while opening ("target 'species', the only text column").
  const std::vector<std::string>& notes() const { return notes_; }
  void add_note(std::string note) { notes_.push_back(std::move(note)); }
  // Did the source hold parts (DataPart), of which this is one?
  bool of_part() const { return of_part_; }
  void set_of_part(bool yes) { of_part_ = of_part_ || yes; }

 private:
  void enter(const std::string& name, ColumnPtr column);

  std::string source_, format_;
  std::vector<std::string> names_;  // in the file's order
  std::map<std::string, ColumnPtr> columns_;
  std::map<std::string, Error> unreadable_;
  std::vector<std::string> arrays_;  // of names_: those added by add_array
  std::map<std::string, std::vector<std::string>> class_names_, feature_names_;
  std::vector<std::string> notes_, targets_, target_names_, dropped_, row_names_;
  std::string target_column_ = "y";
  std::map<std::string, std::string> target_forms_;
  Reading reading_;
  int64_t rows_ = 0;
  bool of_part_ = false;
};

// Sources may hold both parts: x_train and x_test, train-images and t10k-images.
enum class DataPart { kTrain, kTest };
// Pairs of column name and the name in the source, for the arrays that belong to `part`: "x_train"
// becomes "x". Names without a part are kept as they are.
std::vector<std::pair<std::string, std::string>> select_part(const std::vector<std::string>& names,
                                                             DataPart part,
                                                             const std::string& source);

// "60,000 images uint8 [28,28]" for the printed data line.
std::string describe_column(const Column& column);
// The name users know: "float32", not "float".
std::string type_text(DType t);
// "5.4k"
std::string rounded_count(int64_t n);
// "'a', 'b' and 3 more"
std::string listed(const std::vector<std::string>& names, size_t most = 8);
// The same of what is not to be put in quotes: "'a' (12), 'b' (3) and 4 more".
std::string listed_plain(const std::vector<std::string>& parts, size_t most = 8);

}  // namespace onnxtrain
