// Finite or not, in one pass.
#include "runtime/finite.hpp"

#include <cmath>
#include <limits>
#include <vector>

namespace onnxtrain {

namespace {

constexpr int64_t kGrain = int64_t(1) << 15;
constexpr int kLanes = 8;  // independent sums, so that the loop can be vectorised

template <class T>
double squares(const T* x, int64_t n) {
  double sum[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int k = 0; k < kLanes; ++k) {
      double v = double(compute_t<T>(x[i + k]));
      sum[k] += v * v;
    }
  double total = 0;
  for (; i < n; ++i) {
    double v = double(compute_t<T>(x[i]));
    total += v * v;
  }
  for (double s : sum) total += s;
  return total;
}

template <class T>
unsigned kinds(const T* x, int64_t n) {
  unsigned mask = kAllFinite;
  for (int64_t i = 0; i < n; ++i) {
    double v = double(compute_t<T>(x[i]));
    if (std::isfinite(v)) continue;
    mask |= std::isnan(v) ? kHasNan : v > 0 ? kHasPlusInf : kHasMinusInf;
  }
  return mask;
}

template <class F>
bool with_float(DType t, F&& f) {
  switch (t) {
    case DType::kFloat:
      f.template operator()<float>();
      return true;
    case DType::kDouble:
      f.template operator()<double>();
      return true;
    case DType::kFloat16:
      f.template operator()<Half>();
      return true;
    case DType::kBFloat16:
      f.template operator()<BFloat16>();
      return true;
    default:
      return false;
  }
}

}  // namespace

unsigned not_finite(const Tensor& t) {
  unsigned mask = kAllFinite;
  with_float(t.dtype(), [&]<class T>() { mask = kinds(t.as<T>(), t.size()); });
  return mask;
}

double sum_of_squares(DType dtype, const void* data, int64_t n, ThreadPool& pool) {
  double total = 0;
  with_float(dtype, [&]<class T>() {
    const T* x = static_cast<const T*>(data);
    if (n <= kGrain) {
      total = squares(x, n);
    } else {
      std::vector<double> parts(size_t((n + kGrain - 1) / kGrain));
      parallel_for(pool, n, kGrain, [&](int64_t b, int64_t e) {
        parts[size_t(b / kGrain)] = squares(x + b, e - b);
      });
      for (double p : parts) total += p;
    }
    if (dtype == DType::kDouble && !std::isfinite(total) && kinds(x, n) == kAllFinite)
      total = std::numeric_limits<double>::max();
  });
  return total;
}

}  // namespace onnxtrain
