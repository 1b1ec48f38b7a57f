// Class labels: every one is checked before training begins.
#include <algorithm>
#include <map>
#include <numeric>

#include "data/adapt.hpp"

namespace onnxtrain {

namespace {

// Reads the column in pieces and calls visit(row, value) for every element as int64.
template <class Visit>
void for_each_label(const Column& c, Visit&& visit) {
  const int64_t per_row = c.row_elements();
  if (per_row == 0) return;
  const int64_t piece = std::max<int64_t>(1, 65536 / per_row);
  std::vector<int64_t> rows(size_t(std::min(piece, c.rows())));
  Tensor block(c.dtype(), {int64_t(rows.size()), per_row});
  for (int64_t begin = 0; begin < c.rows(); begin += piece) {
    const size_t n = size_t(std::min(piece, c.rows() - begin));
    std::iota(rows.begin(), rows.begin() + long(n), begin);
    c.read({rows.data(), n}, block.data());
    dispatch<int64_t, int32_t>(c.dtype(), "labels", [&]<class T>() {
      const T* p = block.as<T>();
      for (size_t i = 0; i < n * size_t(per_row); ++i)
        visit(begin + int64_t(i) / per_row, int64_t(p[i]));
    });
  }
}

class Scan {
 public:
  Scan(int64_t classes, std::optional<int64_t> ignore) : classes_(classes), ignore_(ignore) {}

  void operator()(int64_t row, int64_t v) {
    if (ignore_ && v == *ignore_) return;
    if (seen_++ == 0) min = max = v;
    min = std::min(min, v);
    max = std::max(max, v);
    if (v < 0 || (classes_ > 0 && v >= classes_)) {
      if (bad_row < 0) bad_row = row, bad_value = v;
      one_bad &= v == bad_value;
    }
    if (v >= 0 && v < kDense) {
      if (size_t(v) >= dense.size()) dense.resize(size_t(v) + 1);
      ++dense[size_t(v)];
    } else if (sparse.size() < kMostSparse) {
      ++sparse[v];
    }
  }

  static constexpr int64_t kDense = 65536;
  static constexpr size_t kMostSparse = 1000000;
  int64_t min = 0, max = 0, bad_row = -1, bad_value = 0;
  bool one_bad = true;  // all labels outside are the same
  std::vector<int64_t> dense;
  std::map<int64_t, int64_t> sparse;

 private:
  int64_t classes_, seen_ = 0;
  std::optional<int64_t> ignore_;
};

[[noreturn]] void outside(const Scan& s, const Column& c, const std::string& column,
                          const LabelSpec& label, const std::vector<std::string>& names,
                          int64_t offset) {
  if (label.classes > 0 && int64_t(names.size()) > label.classes && s.bad_value >= 0 &&
      s.bad_value < int64_t(names.size()))
    data_error("OT2104",
               cat("'", column, "' has ", names.size(), " classes (", listed(names),
                   ") and the model's output '", label.output, "' has ", label.classes,
                   ": there is none for '", names[size_t(s.bad_value)], "' at row ",
                   with_commas(c.source_row(s.bad_row))),
               cat("a model with ", names.size(), " outputs, or data without the other classes"));
  const std::string range = cat("values seen: ", s.min - offset, "..", s.max - offset);
  const std::string allowed =
      label.classes > 0 ? cat("0..", label.classes - 1, " (model output '", label.output, "' has ",
                              label.classes, label.classes == 1 ? " class)" : " classes)")
                        : std::string("0 and up");
  const std::string message =
      cat("label ", s.bad_value - offset, " at row ", with_commas(c.source_row(s.bad_row)), " of '",
          column, "' is outside ", allowed);
  std::string hint =
      cat("number the classes from 0, in Python: classes, y = numpy.unique(y, "
          "return_inverse=True)        (",
          range, ")");
  // the labels would fit if they were counted from another first value
  if (label.classes > 0 && s.min != 0 && s.max - s.min < label.classes)
    hint = offset - s.min == 0 ? cat("leave --label-offset out        (", range, ")")
                               : cat("labels start at ", s.min - offset, "?  add --label-offset ",
                                     offset - s.min, "        (", range, ")");
  else if (s.bad_value < 0 && s.one_bad && offset == 0 && names.empty())
    hint = cat("rows without a label?  --ignore-index ", s.bad_value, " leaves them out        (",
               range, ")");
  data_error("OT2104", message, hint);
}

}  // namespace

Adapted adapt_labels(const Dataset& data, const std::string& column, const LabelSpec& label,
                     const AdaptOptions& options, LabelSummary& summary) {
  if (label.input.dtype != DType::kInt64 && label.input.dtype != DType::kInt32)
    data_error("OT2112", cat("labels for '", label.input.name, "' must be int64 or int32, not ",
                             dtype_name(label.input.dtype)));
  Adapted adapted = adapt_label_column(data, column, label.input, options);
  Scan scan(label.classes, options.ignore_index);
  for_each_label(*adapted.column, [&](int64_t row, int64_t v) { scan(row, v); });
  if (scan.bad_row >= 0)
    outside(scan, *adapted.column, column, label, data.class_names(column), options.label_offset);
  summary = {};
  summary.min = scan.min;
  summary.max = scan.max;
  const auto count = [&](int64_t n) {
    if (n == 0) return;
    summary.smallest = summary.classes == 0 ? n : std::min(summary.smallest, n);
    summary.largest = std::max(summary.largest, n);
    ++summary.classes;
  };
  for (int64_t n : scan.dense) count(n);
  for (const auto& [value, n] : scan.sparse) count(n);
  if (scan.max < Scan::kDense) summary.counts = std::move(scan.dense);
  return adapted;
}

std::string LabelSummary::text() const {
  if (classes == 0) return "no labels";
  const std::string some = smallest == largest
                               ? rounded_count(smallest)
                               : rounded_count(smallest) + ".." + rounded_count(largest);
  return cat(with_commas(classes), classes == 1 ? " class (" : " classes (", some, " each)");
}

std::vector<int64_t> labels_by_row(const Column& column) {
  std::vector<int64_t> labels;
  if (column.row_elements() != 1) return labels;
  if (column.dtype() != DType::kInt64 && column.dtype() != DType::kInt32) return labels;
  labels.reserve(size_t(column.rows()));
  for_each_label(column, [&](int64_t, int64_t v) { labels.push_back(v); });
  return labels;
}

}  // namespace onnxtrain
