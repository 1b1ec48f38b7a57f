// Loaders and storers of Cast: any type <-> one of four carriers.
#include "ops/common/cast_kernel.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

namespace onnxtrain::ops {

namespace {

constexpr int64_t kTile = 1024;

template <class T>
struct CarrierOf {
  using type = std::conditional_t<std::is_integral_v<T>, int64_t, float>;
};
template <>
struct CarrierOf<double> {
  using type = double;
};
template <>
struct CarrierOf<uint64_t> {
  using type = uint64_t;
};
template <DType D>
struct CarrierOf<SmallInt<D>> {
  using type = int64_t;
};

// Out-of-range numbers have no defined result; they must only not be undefined behaviour.
template <class F>
int64_t to_int64(F v) {
  if (v >= F(-9223372036854775808.0) && v < F(9223372036854775808.0)) return int64_t(v);
  return std::numeric_limits<int64_t>::min();
}
template <class F>
uint64_t to_uint64(F v) {
  if (v >= F(9223372036854775808.0) && v < F(18446744073709551616.0)) return uint64_t(v);
  return uint64_t(to_int64(v));
}

// A float that rounds to 16 bits or fewer as the carrier itself would.
inline float narrow(float v) { return v; }
inline float narrow(double v) { return round_to_odd(v); }
template <class I, class = std::enable_if_t<std::is_integral_v<I>>>
float narrow(I v) {
  return round_to_odd(double(v));
}

template <class T>
struct IsSmallFloat : std::false_type {};
template <DType D>
struct IsSmallFloat<SmallFloat<D>> : std::true_type {};
template <class T>
struct IsSmallInt : std::false_type {};
template <DType D>
struct IsSmallInt<SmallInt<D>> : std::true_type {};

template <class R, class S>
R convert(S v, const CastOptions& o) {
  if constexpr (std::is_same_v<R, bool>) {
    return v != S(0);
  } else if constexpr (std::is_same_v<R, float> || std::is_same_v<R, double>) {
    return R(v);
  } else if constexpr (std::is_same_v<R, Half> || std::is_same_v<R, BFloat16>) {
    return R(narrow(v));
  } else if constexpr (std::is_same_v<R, Float8E8M0>) {
    R r;
    r.bits = e8m0_encode(narrow(v), o.saturate, o.round);
    return r;
  } else if constexpr (IsSmallFloat<R>::value) {
    R r;
    r.bits = small_float_encode(DTypeOf<R>::value, narrow(v), o.saturate);
    return r;
  } else if constexpr (std::is_floating_point_v<S>) {
    if constexpr (std::is_same_v<R, uint64_t>)
      return to_uint64(v);
    else if constexpr (IsSmallInt<R>::value)
      return R(int(to_int64(v)));
    else
      return R(to_int64(v));
  } else {
    if constexpr (IsSmallInt<R>::value)
      return R(int(v));
    else
      return R(v);
  }
}

template <class F>
decltype(auto) any_number(DType t, F&& f) {
  return dispatch<float, double, Half, BFloat16, int64_t, int32_t, uint8_t, int8_t, bool, int16_t,
                  uint16_t, uint32_t, uint64_t, Float8E4M3FN, Float8E4M3FNUZ, Float8E5M2,
                  Float8E5M2FNUZ, Float8E8M0, Float4E2M1, Int4, UInt4, Int2, UInt2>(
      t, "Cast", std::forward<F>(f));
}

template <class S>
void store(const S* tile, DType to, void* y, int64_t at, int64_t n, const CastOptions& o) {
  any_number(to, [&]<class R>() {
    R* p = static_cast<R*>(y) + at;
    for (int64_t i = 0; i < n; ++i) p[i] = convert<R>(tile[i], o);
  });
}

template <class T, class S>
void load(const void* x, int64_t at, int64_t n, S* tile) {
  const T* p = static_cast<const T*>(x) + at;
  for (int64_t i = 0; i < n; ++i) tile[i] = S(p[i]);  // NOLINT(bugprone-signed-char-misuse)
}

// ---------------------------------------------------------------- text
std::string trimmed(const std::string& s) {
  size_t b = s.find_first_not_of(" \t\r\n"), e = s.find_last_not_of(" \t\r\n");
  return b == std::string::npos ? std::string() : s.substr(b, e - b + 1);
}

[[noreturn]] void not_a_number(const std::string& s) {
  data_error("OT2111", cat("Cast: the text '", s.substr(0, 40), "' is not a number"));
}

double parse_double(const std::string& text) {
  std::string s = trimmed(text);
  const char* begin = s.data();
  const char* end = begin + s.size();
  if (begin != end && *begin == '+') ++begin;
  double v = 0;
  // from_chars knows inf, infinity and nan in any case, and no locale
  auto [p, ec] = std::from_chars(begin, end, v);
  if (ec == std::errc::result_out_of_range) return std::strtod(s.c_str(), nullptr);
  if (ec != std::errc() || p != end || begin == end) not_a_number(text);
  return v;
}

template <class R>
R parse(const std::string& text, const CastOptions& o) {
  if constexpr (std::is_integral_v<R> || IsSmallInt<R>::value) {
    std::string s = trimmed(text);
    const char* begin = s.data() + (!s.empty() && s[0] == '+');
    std::conditional_t<std::is_same_v<R, uint64_t>, uint64_t, int64_t> v = 0;
    auto [p, ec] = std::from_chars(begin, s.data() + s.size(), v);
    if (ec == std::errc() && p == s.data() + s.size()) return convert<R>(v, o);
    if constexpr (std::is_same_v<R, bool>) {
      if (s == "True" || s == "true") return true;
      if (s == "False" || s == "false") return false;
    }
  }
  return convert<R>(parse_double(text), o);
}

// The shortest text that reads back as the same number; whole numbers without a point, as in C.
template <class T>
std::string print(T v) {
  if constexpr (std::is_same_v<T, bool>) {
    return v ? "True" : "False";
  } else if constexpr (std::is_integral_v<T>) {
    return std::to_string(v);
  } else {
    if (std::isnan(v)) return "NaN";
    if (std::isinf(v)) return v > 0 ? "INF" : "-INF";
    char buffer[64];
    auto [p, ec] = std::to_chars(buffer, buffer + sizeof buffer, v);
    return std::string(buffer, ec == std::errc() ? p : buffer);
  }
}

void from_text(const std::string* x, DType to, void* y, int64_t n, const CastOptions& o) {
  if (to == DType::kString) {
    std::copy_n(x, n, static_cast<std::string*>(y));
    return;
  }
  any_number(to, [&]<class R>() {
    for (int64_t i = 0; i < n; ++i) static_cast<R*>(y)[i] = parse<R>(x[i], o);
  });
}

void to_text(DType from, const void* x, std::string* y, int64_t n) {
  any_number(from, [&]<class T>() {
    const T* p = static_cast<const T*>(x);
    for (int64_t i = 0; i < n; ++i) y[i] = print(compute_t<T>(p[i]));
  });
}

}  // namespace

void check_castable(DType t) {
  if (t != DType::kString) any_number(t, []<class T>() {});
}

void cast_elements(DType from, const void* x, DType to, void* y, int64_t n, const CastOptions& o) {
  if (from == DType::kString) return from_text(static_cast<const std::string*>(x), to, y, n, o);
  if (to == DType::kString) return to_text(from, x, static_cast<std::string*>(y), n);
  any_number(from, [&]<class T>() {
    using S = typename CarrierOf<T>::type;
    S tile[kTile];
    for (int64_t at = 0; at < n; at += kTile) {
      int64_t count = std::min(kTile, n - at);
      load<T>(x, at, count, tile);
      store(tile, to, y, at, count, o);
    }
  });
}

}  // namespace onnxtrain::ops
