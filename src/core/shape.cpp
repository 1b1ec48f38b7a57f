// Shape arithmetic with overflow checks.
#include "core/shape.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace onnxtrain {
namespace {

// Multiplies max(d,1): a shape with a zero must not overflow either, its strides are products too.
int64_t checked_product(const Shape& s, size_t begin, size_t end) {
  int64_t n = 1;
  bool zero = false;
  for (size_t i = begin; i < end; ++i) {
    const int64_t d = s[i];
    if (d < 0) model_error("OT1102", cat("shape ", to_string(s), " has a negative dimension"));
    if (d == 0)
      zero = true;
    else if (__builtin_mul_overflow(n, d, &n))
      model_error("OT1103", cat("shape ", to_string(s), " has more than 2^63 elements"));
  }
  return zero ? 0 : n;
}

}  // namespace

int64_t num_elements(const Shape& s) { return checked_product(s, 0, s.size()); }

int64_t product(const Shape& s, size_t begin, size_t end) {
  return checked_product(s, begin, std::min(end, s.size()));
}

Shape strides_of(const Shape& s) {
  num_elements(s);  // throws when a product does not fit
  Shape strides(s.size());
  int64_t n = 1;
  for (size_t i = s.size(); i-- > 0;) {
    strides[i] = n;
    n *= std::max<int64_t>(s[i], 1);
  }
  return strides;
}

std::string to_string(const Shape& s) {
  std::string out = "[";
  for (size_t i = 0; i < s.size(); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(s[i]);
  }
  return out + "]";
}

Shape broadcast(const Shape& a, const Shape& b) {
  const size_t rank = std::max(a.size(), b.size());
  Shape out(rank);
  for (size_t i = 0; i < rank; ++i) {
    const size_t skip_a = rank - a.size(), skip_b = rank - b.size();
    const int64_t da = i < skip_a ? 1 : a[i - skip_a];
    const int64_t db = i < skip_b ? 1 : b[i - skip_b];
    if (da != db && da != 1 && db != 1)
      model_error("OT1104", cat("shapes ", to_string(a), " and ", to_string(b),
                                " do not broadcast: ", da, " against ", db));
    out[i] = da == 1 ? db : da;
  }
  return out;
}

Shape broadcast_strides(const Shape& s, const Shape& to) {
  if (s.size() > to.size())
    model_error("OT1104", cat("shape ", to_string(s), " does not broadcast to ", to_string(to)));
  const Shape own = strides_of(s);
  const size_t skip = to.size() - s.size();
  Shape out(to.size(), 0);
  for (size_t i = 0; i < s.size(); ++i) {
    if (s[i] == to[skip + i])
      out[skip + i] = s[i] == 1 ? 0 : own[i];
    else if (s[i] != 1)
      model_error("OT1104", cat("shape ", to_string(s), " does not broadcast to ", to_string(to)));
  }
  return out;
}

int64_t normalize_axis(int64_t axis, int64_t rank, const char* what) {
  if (axis < -rank || axis >= rank)
    model_error("OT1105",
                cat(what, " ", axis, " is outside ", -rank, "..", rank - 1, " (the tensor has ",
                    rank, rank == 1 ? " dimension)" : " dimensions)"));
  return axis < 0 ? axis + rank : axis;
}

}  // namespace onnxtrain
