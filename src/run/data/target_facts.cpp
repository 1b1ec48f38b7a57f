// What the values of a target are.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "run/data/each_value.hpp"
#include "run/data/target_check.hpp"

namespace onnxtrain::run {

TargetFacts target_facts(const Dataset& data, const std::string& column, const Column& adapted) {
  TargetFacts t;
  t.column =
      data.targets().size() == 1 && column == data.target_column() ? data.targets()[0] : column;
  t.classes = data.class_names(column);
  if (dtype_is_integer(adapted.dtype())) return t;
  if (!t.classes.empty()) t.ids = data.gather_all(column).to_ints();
  bool zero = false, one = false, other = false, signs = true;
  int64_t n = 0, outside = 0;
  std::set<double> few;  // up to three different values
  t.min = std::numeric_limits<double>::infinity();
  t.max = -t.min;
  for_each_value(adapted, [&](double v) {
    zero |= v == 0;
    one |= v == 1;
    other |= v != 0 && v != 1;
    signs &= v == 1 || v == -1;
    outside += v < 0 || v > 1;
    t.min = std::min(t.min, v);
    t.max = std::max(t.max, v);
    if (few.size() < 3) few.insert(v);
    ++n;
  });
  t.two_values = zero && one && !other;
  if (few.size() == 2 && !t.two_values && t.classes.empty() && n > 2) {
    const double a = *few.begin(), b = *few.rbegin();
    if (a == std::floor(a) && b == std::floor(b)) t.two_wholes = cat(a, " and ", b);
  }
  t.signs = n > 0 && signs;
  t.outside = n > 0 ? double(outside) / double(n) : 0;
  return t;
}

}  // namespace onnxtrain::run
