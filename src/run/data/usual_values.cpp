// Ranges of inputs, measured and compared.
#include "run/data/usual_values.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>

#include <nlohmann/json.hpp>

#include "data/columns/fingerprint.hpp"

namespace onnxtrain::run {

namespace {

using nlohmann::json;

constexpr int64_t kMostRows = 20000;  // every n-th row of more
constexpr int64_t kMostImages = 32;   // of files that are decoded one by one
constexpr int64_t kMostColumns = 256;
const std::string kTarget = "target ";  // in front of its name
constexpr double kSmaller = 20;         // so many times smaller in every column: another scale

struct Range {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  double size() const { return std::max(std::fabs(low), std::fabs(high)); }
  double width() const { return high - low; }
  bool known() const { return low <= high; }
};

bool is_measured(const Column& c) {
  return (c.dtype() == DType::kFloat || c.dtype() == DType::kDouble ||
          c.dtype() == DType::kFloat16) &&
         c.row_elements() > 0 && c.rows() > 0;
}

bool has_columns(const Column& c) {
  return c.row_shape().size() <= 1 && c.row_elements() <= kMostColumns;
}

// Calls visit(column, value) for the finite numbers of some rows; returns how many rows.
template <class Visit>
int64_t visit_values(const Column& c, const Visit& visit) {
  const int64_t most = c.is_decoded() ? kMostImages : kMostRows;
  const int64_t every = (c.rows() + most - 1) / most;
  const bool by_column = has_columns(c);
  Tensor row(c.dtype(), {1, c.row_elements()});
  int64_t seen = 0;
  for (int64_t r = 0; r < c.rows(); r += every, ++seen) {
    c.read({&r, 1}, row.data());
    const std::vector<double> v = row.to_doubles();
    for (size_t k = 0; k < v.size(); ++k)
      if (std::isfinite(v[k])) visit(by_column ? k : 0, v[k]);
  }
  return seen;
}

std::vector<Range> ranges_of(const Column& c) {
  std::vector<Range> ranges(has_columns(c) ? size_t(c.row_elements()) : 1);
  visit_values(c, [&](size_t k, double v) {
    ranges[k].low = std::min(ranges[k].low, v);
    ranges[k].high = std::max(ranges[k].high, v);
  });
  return ranges;
}

// Six digits are enough to tell units apart.
double rounded(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", v);
  return std::strtod(text, nullptr);
}

std::vector<Range> read_ranges(const json& j) {
  std::vector<Range> ranges;
  if (!j.is_array()) return ranges;
  for (const json& r : j) {
    if (!r.is_array() || r.size() != 2 || !r[0].is_number() || !r[1].is_number()) return {};
    ranges.emplace_back();
    ranges.back().low = r[0];
    ranges.back().high = r[1];
  }
  return ranges;
}

std::string in_words(const Range& r) {
  char text[80];
  std::snprintf(text, sizeof text, "%.3g to %.3g", r.low, r.high);
  return text;
}

// The first column of which most values lie farther outside than the training's range is wide; -1.
int64_t far_column(const Column& c, const std::vector<Range>& usual) {
  std::vector<int64_t> outside(usual.size(), 0), all(usual.size(), 0);
  visit_values(c, [&](size_t k, double v) {
    const Range& r = usual[k];
    ++all[k];
    outside[k] += r.width() > 0 && (v < r.low - r.width() || v > r.high + r.width());
  });
  for (size_t k = 0; k < usual.size(); ++k)
    if (2 * outside[k] > all[k]) return int64_t(k);
  return -1;
}

// Every column that changes at all is much smaller than in the training: the first of them; -1.
int64_t small_column(const std::vector<Range>& here, const std::vector<Range>& usual) {
  int64_t first = -1;
  for (size_t k = 0; k < usual.size(); ++k) {
    if (!(usual[k].width() > 0) || !here[k].known()) continue;
    if (here[k].size() == 0 || kSmaller * here[k].size() > usual[k].size()) return -1;
    if (first < 0) first = int64_t(k);
  }
  return first;
}

std::string compared(const Column& c, const std::string& input, const std::vector<Range>& usual,
                     const std::vector<std::string>& features) {
  const std::vector<Range> here = ranges_of(c);
  if (here.size() != usual.size()) return {};
  int64_t at = far_column(c, usual);
  if (at < 0) at = small_column(here, usual);
  if (at < 0) return {};
  const auto k = size_t(at);
  const std::string what = input.starts_with(kTarget) ? "the target"
                           : usual.size() == 1        ? cat("input '", input, "'")
                           : features.size() == usual.size()
                               ? cat("column '", features[k], "'")
                               : cat("column ", k, " of '", input, "'");
  return cat(what, " holds ", in_words(here[k]), " here and ", in_words(usual[k]),
             " in the training: other units, another scale or another column?");
}

}  // namespace

std::string usual_values(const FeedColumns& rows, const Model& m) {
  json all = json::object();
  for (size_t k = 0; k < rows.names.size(); ++k) {
    const bool target = is_target(m, rows.names[k]);
    if ((target && rows.names[k] != rows.label) || !is_measured(*rows.columns[k])) continue;
    json& list = all[target ? kTarget + rows.names[k] : rows.names[k]] = json::array();
    for (const Range& r : ranges_of(*rows.columns[k]))
      list.push_back(r.known() ? json{rounded(r.low), rounded(r.high)} : json{0, 0});
  }
  return all.empty() ? std::string() : all.dump();
}

std::string unlike_training(const FeedColumns& rows,
                            const std::map<std::string, std::string>& metadata,
                            const std::vector<std::string>& features) {
  const auto known = metadata.find(kValuesKey);
  const json all = known == metadata.end() ? json() : json::parse(known->second, nullptr, false);
  if (!all.is_object()) return {};
  for (size_t k = 0; k < rows.names.size(); ++k) {
    const bool target = !rows.label.empty() && rows.names[k] == rows.label;
    const std::string key = target ? kTarget + rows.names[k] : rows.names[k];
    if (!all.contains(key) || !is_measured(*rows.columns[k])) continue;
    std::string text = compared(*rows.columns[k], key, read_ranges(all[key]), features);
    if (!text.empty()) return text;
  }
  return {};
}

void note_training_data(const FeedColumns& rows, const std::map<std::string, std::string>& metadata,
                        Observer& observer) {
  const auto known = metadata.find("onnxtrain.data");
  if (known != metadata.end() && known->second == hash_rows(rows.columns).text())
    observer.on_note("note",
                     "this is the data that the run was trained on: the figures say nothing about "
                     "new data");
}

void warn_unlike(const FeedColumns& rows, const std::map<std::string, std::string>& metadata,
                 const std::vector<std::string>& features, Observer& observer,
                 const std::string& what) {
  if (const std::string text = unlike_training(rows, metadata, features); !text.empty())
    observer.on_warning(
        "OT3129", what + text,
        "give the data as the training had it: the same units, type, scale and order of columns");
}

}  // namespace onnxtrain::run
