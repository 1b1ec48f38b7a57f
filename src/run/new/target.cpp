// Classes or numbers.
#include "run/new/target.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/text.hpp"
#include "run/new/number_texts.hpp"

namespace onnxtrain::run {

namespace {

constexpr size_t kMostWhole = 20;  // different whole numbers that are taken for classes
constexpr size_t kMostClasses = 65536;
constexpr size_t kMostLabels = 1000, kRowsPerLabel = 5;  // of an array that looks like labels

// Whole numbers with all digits, which prices and counts have.
std::string shown_number(double v) {
  constexpr double kDigits = 1e12;
  if (std::floor(v) == v && std::fabs(v) < kDigits) return cat(int64_t(v));
  return cat(v);
}

void set_numbers(const std::vector<double>& v, int64_t width, NewTarget& t) {
  const auto n = size_t(width);
  const size_t count = v.size() / n;
  const auto rows = double(count);
  for (size_t k = 0; k < n; ++k) {
    double sum = 0, square = 0;
    for (size_t i = k; i < v.size(); i += n) sum += v[i];
    const double mean = sum / rows;
    for (size_t i = k; i < v.size(); i += n) square += (v[i] - mean) * (v[i] - mean);
    const double std = std::sqrt(square / rows);
    t.mean.push_back(mean);
    t.deviation.push_back(std > 1e-7 * std::fabs(mean) && std > 0 ? std : 1);
  }
  t.outputs = width;
  const auto [low, high] = std::minmax_element(v.begin(), v.end());
  t.text = cat(width == 1 ? std::string("a number") : cat(width, " numbers"), " from ",
               shown_number(*low), " to ", shown_number(*high));
}

}  // namespace

NewTarget find_target(const Dataset& data, const std::string& column, const std::string& shown,
                      const std::string& task, bool labels) {
  NewTarget t;
  const ColumnPtr& c = data.column(column);
  t.names = data.class_names(column);
  if (!t.names.empty() && task == "numbers")
    data_error("OT2184", cat("target ", shown, " holds text: it cannot be learnt as a number"),
               "--task classes");
  t.numeric = t.names.empty();
  if (const std::string numbers = numbers_in_texts(t.names);
      task == "auto" && t.names.size() > kMostWhole && !numbers.empty())
    data_error(
        "OT2184",
        cat("target ", shown, " holds ", t.names.size(), " different texts that look like numbers"),
        cat(numbers, "; to learn the texts as classes:  --task classes"));
  const bool one = c->row_elements() == 1;
  const bool whole = dtype_is_integer(c->dtype()) || c->dtype() == DType::kBool;
  const Tensor all = data.gather_all(column);
  const std::vector<double> v = all.to_doubles();
  for (double x : v)
    if (!std::isfinite(x))
      data_error("OT2120", cat("the target ", shown, " has a value that is not a number"),
                 "remove the row: there is nothing to learn from it");
  std::map<int64_t, int64_t> counts;
  bool integers = true;
  for (size_t i = 0; i < v.size() && integers && counts.size() <= kMostClasses; ++i) {
    integers = v[i] == std::floor(v[i]) && std::fabs(v[i]) < 0x1p53;
    if (integers) ++counts[int64_t(v[i])];
  }
  const bool numbered = integers && !counts.empty() && counts.begin()->first == 0 &&
                        counts.rbegin()->first == int64_t(counts.size()) - 1;
  const bool many = labels && numbered && counts.size() <= kMostLabels &&
                    kRowsPerLabel * counts.size() <= v.size();
  const bool likely =
      whole && 2 * counts.size() <= v.size() && (counts.size() <= kMostWhole || many);
  t.few_wholes = one && likely;
  t.classes = !t.names.empty() || (task == "classes" || (task == "auto" && one && likely));
  if (!t.classes) {
    set_numbers(v, c->row_elements(), t);
    return t;
  }
  if (!one || !integers || counts.size() > kMostClasses)
    data_error("OT2184",
               cat("target ", shown, " cannot be learnt as classes: ",
                   !one ? "it has several values per row"
                        : "it has values that are not whole, or "
                          "too many different ones"),
               "--task numbers");
  if (t.names.empty() &&
      (counts.begin()->first < 0 || counts.rbegin()->first != int64_t(counts.size()) - 1))
    for (const auto& [value, count] : counts) t.names.push_back(std::to_string(value));
  t.outputs = int64_t(t.names.empty() ? counts.size() : t.names.size());
  auto rows = [](const auto& a, const auto& b) { return a.second < b.second; };
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end(), rows);
  t.least = least->second;
  t.most = most->second;
  const std::string upto = t.least == t.most ? std::string() : ".." + with_commas(t.most);
  t.text = cat(t.outputs, t.outputs == 1 ? " class (" : " classes (", with_commas(t.least), upto,
               t.outputs == 1 ? " rows)" : " rows each)");
  return t;
}

NewTarget find_targets(const Dataset& data, const std::string& task) {
  const std::vector<std::string>& names = data.targets();
  const bool named =
      std::all_of(names.begin(), names.end(), [&](const std::string& n) { return data.has(n); });
  if (names.size() < 2 || !named)
    return find_target(data, data.target_column(), listed(names), task);
  NewTarget all;
  for (const std::string& n : names) {
    const bool classes = task == "classes" || !data.class_names(n).empty();
    all.parts.push_back(
        {n, find_target(data, n, cat("'", n, "'"), classes ? "classes" : "numbers")});
    const NewTarget& one = all.parts.back().target;
    all.text += cat(all.text.empty() ? "" : "; ", "'", n, "' ", one.text);
  }
  return all;
}

}  // namespace onnxtrain::run
