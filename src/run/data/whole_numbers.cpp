// Numbers of more than 24 bits, and dates written as 20261118.
#include "run/data/whole_numbers.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

#include "core/text.hpp"

namespace onnxtrain::run {

namespace {

constexpr int64_t kWholeRows = 20000;     // every n-th row of more
constexpr double kExact = 16777216;       // 2^24: above it float32 leaves whole numbers out
constexpr double kCoarseRounding = 1e-3;  // of the width of a column: a rounding that is seen
constexpr double kMergedShare = 0.01;     // of the different values
constexpr size_t kFewestDates = 3;        // different ones

std::vector<double> values_of(const Column& c, int64_t element) {
  const int64_t every = c.rows() / kWholeRows + 1;
  Tensor row(c.dtype(), {1, c.row_elements()});
  std::vector<double> v;
  for (int64_t r = 0; r < c.rows(); r += every) {
    c.read({&r, 1}, row.data());
    const double x = row.to_doubles()[size_t(element)];
    if (std::isfinite(x)) v.push_back(x);
  }
  return v;
}

size_t different(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return size_t(std::unique(v.begin(), v.end()) - v.begin());
}

std::string plain(double v) {
  char text[40];
  std::snprintf(text, sizeof text, "%.0f", v);
  return text;
}

// 20261118, or 202611181530 and 20261118153000 with a time behind it.
bool is_date(double v) {
  for (const double unit : {1.0, 1e4, 1e6}) {
    const double day = std::floor(v / unit);
    const auto d = int64_t(std::min(day, 1e9));
    if (d >= 19000101 && d <= 21001231)
      return d / 100 % 100 >= 1 && d / 100 % 100 <= 12 && d % 100 >= 1 && d % 100 <= 31;
  }
  return false;
}

}  // namespace

std::string lost_in_float32(const Column& c, int64_t element, const std::string& name) {
  const DType t = c.dtype();
  if (t != DType::kDouble && t != DType::kInt64 && t != DType::kInt32 && t != DType::kUint32 &&
      t != DType::kUint64)
    return {};
  const std::vector<double> v = values_of(c, element);
  if (v.empty() || !std::all_of(v.begin(), v.end(), [](double x) { return x == std::floor(x); }))
    return {};
  const auto [low, high] = std::minmax_element(v.begin(), v.end());
  const std::string column = name.starts_with("column ") ? name : "column " + name;
  const size_t before = different(v);
  if (before >= kFewestDates && std::all_of(v.begin(), v.end(), is_date))
    return cat(column, " holds dates written as numbers (", plain(v[0]),
               "): from one month to the next they jump by 70 and more, from one year to the next "
               "by 8870. Write 2026-11-18, which `onnxtrain new` reads as a date, or count days");
  double error = 0;
  std::vector<double> rounded;
  for (double x : v) {
    rounded.push_back(double(float(x)));
    error = std::max(error, std::fabs(rounded.back() - x));
  }
  if (error == 0 || std::max(std::fabs(*low), std::fabs(*high)) <= kExact) return {};
  const size_t merged = before - different(std::move(rounded));
  if (error <= kCoarseRounding * (*high - *low) && double(merged) <= kMergedShare * double(before))
    return {};
  return cat(column, " holds whole numbers from ", plain(*low), " to ", plain(*high),
             ", and float32 has not every one of them above 16,777,216: they are rounded by up to ",
             plain(error),
             merged > 0
                 ? cat(", and ", with_commas(int64_t(merged)), " of ", with_commas(int64_t(before)),
                       " different values become equal to another")
                 : std::string(),
             ". Subtract the smallest number, or count hours or days");
}

}  // namespace onnxtrain::run
