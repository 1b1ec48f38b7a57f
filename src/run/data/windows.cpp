// Windows are found by comparing neighbours.
#include "run/data/windows.hpp"

#include <algorithm>

#include "core/text.hpp"

namespace onnxtrain::run {

namespace {

constexpr int64_t kFewestRows = 30, kLookedAt = 300;
constexpr int64_t kFewestNumbers = 4;   // of a row: fewer agree by chance
constexpr int64_t kMostNumbers = 4096;  // of a row: larger ones are images or sounds
constexpr double kNearlyAll = 0.9;      // of the pairs: a series may have gaps

// Is `b` what `a` is from element `by` on? Not where that part is one number over and over.
bool continues(const double* a, const double* b, int64_t size, int64_t by) {
  const auto n = size_t(size - by);
  if (!std::equal(a + by, a + size, b)) return false;
  return std::any_of(b + 1, b + n, [&](double v) { return v != b[0]; });
}

// By how many elements rows are shifted, 0: they are not.
int64_t shift_of(const std::vector<double>& v, int64_t rows, int64_t size, int64_t step) {
  for (int64_t by = step; 2 * by <= size; by += step) {
    int64_t same = 0, wrong = 0;
    const auto most_wrong = int64_t((1 - kNearlyAll) * double(rows - 1));
    for (int64_t r = 0; r + 1 < rows && wrong <= most_wrong; ++r) {
      const bool fits = continues(&v[size_t(r * size)], &v[size_t((r + 1) * size)], size, by);
      ++(fits ? same : wrong);
    }
    if (wrong <= most_wrong) return by;
  }
  return 0;
}

}  // namespace

std::string overlapping_rows(const FeedColumns& rows) {
  for (size_t k = 0; k < rows.names.size(); ++k) {
    const Column& c = *rows.columns[k];
    const int64_t n = std::min(c.rows(), kLookedAt), size = c.row_elements();
    if (rows.names[k] == rows.label || c.is_decoded() || c.rows() < kFewestRows ||
        !dtype_is_float(c.dtype()) || size < kFewestNumbers || size > kMostNumbers ||
        c.row_shape().size() > 2)
      continue;
    std::vector<int64_t> first(static_cast<size_t>(n));
    for (size_t r = 0; r < first.size(); ++r) first[r] = int64_t(r);
    Tensor values(c.dtype(), {n, size});
    c.read(first, values.data());
    // [time, features]: whole points in time
    const int64_t step = c.row_shape().size() == 2 ? c.row_shape()[1] : 1;
    const int64_t by = shift_of(values.to_doubles(), n, size, step);
    if (by > 0)
      return cat("the rows of '", rows.names[k], "' are windows of one series: each begins ",
                 by / step, by == step ? " point" : " points",
                 " after the one before and shares the other ", (size - by) / step,
                 " with it. Validation rows are chosen at random, so their numbers are in training "
                 "rows, too");
  }
  return {};
}

}  // namespace onnxtrain::run
