// Row conversion through small chunks of double or int64, so that types add up instead of multiply.
#include "data/columns/convert.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace onnxtrain {
namespace {

constexpr int64_t kChunk = 256;
constexpr float kLargest = std::numeric_limits<float>::max();

template <class F>
auto with_type(DType t, F&& f) {
  return dispatch<float, double, Half, BFloat16, uint8_t, int8_t, uint16_t, int16_t, uint32_t,
                  int32_t, uint64_t, int64_t, bool>(t, "data", std::forward<F>(f));
}

bool is_whole(DType t) { return dtype_is_integer(t) || t == DType::kBool; }

template <class T>
T load(const void* from, int64_t i) {
  if constexpr (std::is_same_v<T, bool>)
    return static_cast<const uint8_t*>(from)[i] != 0;
  else
    return static_cast<const T*>(from)[i];
}

// Each returns the first element that cannot be taken, or -1.
int64_t load_doubles(DType t, const void* from, int64_t at, int64_t n, bool missing, double* out) {
  return with_type(t, [&]<class T>() -> int64_t {
    for (int64_t i = 0; i < n; ++i) {
      out[i] = double(compute_t<T>(load<T>(from, at + i)));
      if (!is_whole(DTypeOf<T>::value) && !std::isfinite(out[i]) &&
          !(missing && std::isnan(out[i])))
        return i;
    }
    return -1;
  });
}

int64_t load_ints(DType t, const void* from, int64_t at, int64_t n, int64_t* out) {
  return with_type(t, [&]<class T>() -> int64_t {
    for (int64_t i = 0; i < n; ++i) {
      const auto v = compute_t<T>(load<T>(from, at + i));
      if constexpr (std::is_floating_point_v<decltype(v)>) {
        // the comparison is false for NaN; 2^63 itself does not fit
        if (!(v == std::floor(v) && v >= -0x1p63f && v < 0x1p63f)) return i;
      } else if constexpr (std::is_same_v<T, uint64_t>) {
        if (v > uint64_t(std::numeric_limits<int64_t>::max())) return i;
      }
      out[i] = int64_t(v);  // NOLINT(bugprone-signed-char-misuse): int8 is a number here
    }
    return -1;
  });
}

int64_t store_doubles(DType t, const double* from, int64_t at, int64_t n, void* to) {
  return dispatch<float, double, Half, BFloat16>(t, "data", [&]<class T>() -> int64_t {
    T* out = static_cast<T*>(to) + at;
    for (int64_t i = 0; i < n; ++i) {
      if constexpr (std::is_same_v<T, Half>)
        out[i] = T(round_to_odd(from[i]));
      else
        out[i] = T(from[i]);
      if (std::isinf(compute_t<T>(out[i])) && !std::isinf(from[i])) return i;
    }
    return -1;
  });
}

int64_t store_ints(DType t, const int64_t* from, int64_t at, int64_t n, void* to) {
  return dispatch<uint8_t, int8_t, uint16_t, int16_t, uint32_t, int32_t, uint64_t, int64_t, bool>(
      t, "data", [&]<class T>() -> int64_t {
        for (int64_t i = 0; i < n; ++i) {
          if constexpr (std::is_same_v<T, bool>) {
            static_cast<uint8_t*>(to)[at + i] = from[i] != 0;
          } else {
            const T v = T(from[i]);
            if (int64_t(v) != from[i] || (std::is_unsigned_v<T> && from[i] < 0)) return i;
            static_cast<T*>(to)[at + i] = v;
          }
        }
        return -1;
      });
}

void scale_doubles(const RowConversion& c, double* v, int64_t n) {
  if (c.to == DType::kDouble) {
    for (int64_t i = 0; i < n; ++i) v[i] = (v[i] / c.divide - c.mean) / c.std;
  } else {  // as float32 arithmetic would
    for (int64_t i = 0; i < n; ++i) v[i] = (float(v[i]) / c.divide - c.mean) / c.std;
  }
}

int64_t first_not_finite(const float* v, int64_t n) {
  for (int64_t i = 0; i < n; i += kChunk) {
    const int64_t end = std::min(n, i + kChunk);
    bool bad = false;
    for (int64_t j = i; j < end; ++j) bad |= !(std::fabs(v[j]) <= kLargest);
    if (!bad) continue;
    for (int64_t j = i; j < end; ++j)
      if (!(std::fabs(v[j]) <= kLargest)) return j;
  }
  return -1;
}

}  // namespace

bool convertible(DType t) {
  return is_whole(t)
             ? dtype_size(t) > 1 || t == DType::kUint8 || t == DType::kInt8 || t == DType::kBool
             : dtype_is_differentiable(t);
}

void RowConversion::prepare() {
  for (int i = 0; i < 256; ++i)
    bytes_to_float[i] = scaled ? (float(i) / divide - mean) / std : float(i);
}

int64_t convert_row(const RowConversion& c, const void* from, void* to, int64_t n) {
  if (c.from == DType::kFloat && c.to == DType::kFloat && !c.scaled && !c.missing) {
    if (n > 0) std::memcpy(to, from, size_t(n) * 4);
    return first_not_finite(static_cast<const float*>(from), n);
  }
  if (c.from == DType::kUint8 && c.to == DType::kFloat) {
    const auto* p = static_cast<const uint8_t*>(from);
    auto* out = static_cast<float*>(to);
    for (int64_t i = 0; i < n; ++i) out[i] = c.bytes_to_float[p[i]];
    return -1;
  }
  double doubles[kChunk];
  int64_t ints[kChunk];
  for (int64_t at = 0; at < n; at += kChunk) {
    const int64_t m = std::min(kChunk, n - at);
    int64_t bad = -1;
    if (is_whole(c.to)) {
      bad = load_ints(c.from, from, at, m, ints);
      for (int64_t i = 0; i < m && bad < 0 && c.offset != 0; ++i)
        if (ints[i] != c.keep && __builtin_add_overflow(ints[i], c.offset, &ints[i])) bad = i;
      if (bad < 0) bad = store_ints(c.to, ints, at, m, to);
    } else {
      bad = load_doubles(c.from, from, at, m, c.missing, doubles);
      if (c.scaled) scale_doubles(c, doubles, m);
      if (bad < 0) bad = store_doubles(c.to, doubles, at, m, to);
    }
    if (bad >= 0) return at + bad;
  }
  return -1;
}

}  // namespace onnxtrain
