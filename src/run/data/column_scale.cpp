// Mean and spread of columns.
#include "run/data/column_scale.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

namespace onnxtrain::run {

namespace {

constexpr int64_t kMostRows = 100000;   // every n-th row of more
constexpr int64_t kMostColumns = 4096;  // wider rows are signals or images, no tables
constexpr double kApart = 100;          // columns whose spreads differ more than so often
constexpr double kLarge = 1000;         // values that are larger
constexpr double kSmall = 1e-3;         // than the largest of all columns
constexpr double kBrightest = 50;       // of an image that was scaled

// Does the graph itself scale this input, or need no scale (trees)?
bool is_scaled_inside(const Graph& g, ValueId input) {
  constexpr std::array<const char*, 6> kOps = {
      "BatchNormalization", "LayerNormalization", "InstanceNormalization", "Sub", "Div", "Mul"};
  bool any = false;
  for (const Node& n : g.nodes)
    for (ValueId v : n.inputs) {
      if (v != input) continue;
      const bool linear = n.is("LinearClassifier", kMlDomain) || n.is("LinearRegressor", kMlDomain);
      const bool ml = n.domain == kMlDomain && !linear;
      if (!ml && std::none_of(kOps.begin(), kOps.end(), [&](const char* o) { return n.is(o); }))
        return false;
      any = true;
    }
  return any;
}

bool is_table(const Column& c) {
  return (c.dtype() == DType::kFloat || c.dtype() == DType::kDouble) && c.row_shape().size() <= 1 &&
         c.row_elements() > 0 && c.row_elements() <= kMostColumns && !c.is_decoded();
}

ColumnScale measure(const Column& c, bool range = false) {
  const auto n = size_t(c.row_elements());
  const int64_t every = c.rows() / kMostRows + 1;
  std::vector<double> mean(n, 0), square(n, 0);
  std::vector<double> low(n, std::numeric_limits<double>::infinity()), high(n, -low[0]);
  double count = 0;
  Tensor row(c.dtype(), {1, int64_t(n)});
  for (int64_t r = 0; r < c.rows(); r += every) {
    c.read({&r, 1}, row.data());
    const std::vector<double> v = row.to_doubles();
    ++count;
    for (size_t k = 0; k < n; ++k) {
      const double d = v[k] - mean[k];
      mean[k] += d / count;
      square[k] += d * (v[k] - mean[k]);
      low[k] = std::min(low[k], v[k]);
      high[k] = std::max(high[k], v[k]);
    }
  }
  ColumnScale s;
  for (size_t k = 0; k < n; ++k) {
    if (range) {
      s.mean.push_back(float(low[k]));
      s.std.push_back(high[k] > low[k] ? float(high[k] - low[k]) : 1.0F);
      continue;
    }
    const double std = count > 0 ? std::sqrt(square[k] / count) : 0;
    s.mean.push_back(float(mean[k]));
    // a column that never changes: its rounding errors are no spread
    s.std.push_back(std > 1e-7 * std::fabs(mean[k]) && std > 0 ? float(std) : 1.0F);
  }
  return s;
}

std::string short_number(double v) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", v);
  return text;
}

// The largest number of some images [channels, height, width]; 0 for anything else.
double largest_pixel(const Column& c) {
  if (c.dtype() != DType::kFloat || c.row_shape().size() != 3 || c.is_decoded() ||
      (c.row_shape()[0] != 1 && c.row_shape()[0] != 3))
    return 0;
  constexpr int64_t kLooked = 50;
  double top = 0;
  Tensor row(c.dtype(), {1, c.row_elements()});
  for (int64_t r = 0; r < c.rows(); r += c.rows() / kLooked + 1) {
    c.read({&r, 1}, row.data());
    for (double x : row.to_doubles()) top = std::max(top, std::fabs(x));
  }
  return top;
}

}  // namespace

std::map<std::string, ColumnScale> measured_scale(const FeedColumns& rows, const Model& m,
                                                  const std::string& kind) {
  std::map<std::string, ColumnScale> all;
  for (size_t k = 0; k < rows.names.size(); ++k)
    if (!is_target(m, rows.names[k]) && is_table(*rows.columns[k]))
      all[rows.names[k]] = measure(*rows.columns[k], kind == "minmax");
  if (all.empty())
    usage_error("OT2132",
                cat("--scale ", kind, " is for inputs of float32 or float64 numbers in columns"),
                "images:  --scale auto   or   --scale MEAN,STD");
  return all;
}

std::string scaled_twice(const FeedColumns& rows, const Model& m) {
  constexpr double kByMany = 100;
  for (size_t k = 0; k < rows.names.size(); ++k) {
    const ValueId v = m.main.find(rows.names[k]);
    const Column* source = rows.columns[k]->converted();
    if (v == kNone || is_target(m, rows.names[k]) || !source || source->dtype() != DType::kUint8 ||
        !dtype_is_float(rows.columns[k]->dtype()))
      continue;
    for (const Node& n : m.main.nodes) {
      const bool div = n.is("Div"), mul = n.is("Mul");
      if ((!div && !mul) || n.inputs[0] != v) continue;
      const Tensor& by = m.main.value(n.inputs[1]).constant;
      if (!by.defined() || by.size() == 0) continue;
      const double c = std::fabs(by.to_doubles()[0]);
      if (div ? c >= kByMany : c > 0 && c * kByMany <= 1)
        return cat("bytes of input '", rows.names[k],
                   "' are divided by 255 while they are read, and ", n.label(),
                   " of the model scales them by ", div ? "1/" : "", short_number(c), " again");
    }
  }
  return {};
}

std::string scale_problem(const FeedColumns& rows, const Model& m,
                          const std::vector<std::string>& features) {
  for (size_t k = 0; k < rows.names.size(); ++k) {
    const std::string& input = rows.names[k];
    const ValueId v = m.main.find(input);
    if (is_target(m, input) || v == kNone || is_scaled_inside(m.main, v)) continue;
    if (const double top = largest_pixel(*rows.columns[k]); top > kBrightest)
      return cat("images of input '", input, "' are floating-point numbers up to ",
                 short_number(top), "; networks learn from small ones. Training may stall");
    if (!is_table(*rows.columns[k])) continue;
    const ColumnScale s = measure(*rows.columns[k]);
    auto size = [&](size_t i) { return std::max<double>(std::fabs(s.mean[i]), s.std[i]); };
    size_t wide = 0, narrow = 0;
    for (size_t i = 1; i < s.std.size(); ++i) {
      if (size(i) > size(wide)) wide = i;
      if (s.std[i] < s.std[narrow]) narrow = i;
    }
    const bool small = size(wide) < kSmall && s.std[wide] < kSmall;
    if (!small && size(wide) <= kLarge && size(wide) <= kApart * s.std[narrow]) continue;
    auto name = [&](size_t i) {
      return i < features.size() ? cat("'", features[i], "'") : cat("column ", i);
    };
    if (small)
      return cat("columns of input '", input, "' hold next to nothing: the widest is ", name(wide),
                 ", spread ", short_number(s.std[wide]),
                 ". Training may stall at a constant guess");
    std::string text = cat("columns of input '", input,
                           "' differ in scale or are large: ", name(wide), " has values around ",
                           short_number(s.mean[wide]), ", spread ", short_number(s.std[wide]));
    if (wide != narrow) text += cat("; ", name(narrow), " spread ", short_number(s.std[narrow]));
    return text + ". Training may stall at a constant guess";
  }
  return {};
}

}  // namespace onnxtrain::run
