// Names, sizes and exact conversions of the element types.
#include "core/dtype.hpp"

#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace onnxtrain {
namespace {

struct DTypeInfo {
  std::string_view name;
  uint8_t size;
};

constexpr std::array<DTypeInfo, kDTypeCount> kInfo = {{
    {"undefined", 0},      {"float", 4},      {"uint8", 1},
    {"int8", 1},           {"uint16", 2},     {"int16", 2},
    {"int32", 4},          {"int64", 8},      {"string", sizeof(std::string)},
    {"bool", 1},           {"float16", 2},    {"double", 8},
    {"uint32", 4},         {"uint64", 8},     {"complex64", 8},
    {"complex128", 16},    {"bfloat16", 2},   {"float8e4m3fn", 1},
    {"float8e4m3fnuz", 1}, {"float8e5m2", 1}, {"float8e5m2fnuz", 1},
    {"uint4", 1},          {"int4", 1},       {"float4e2m1", 1},
    {"float8e8m0", 1},     {"uint2", 1},      {"int2", 1},
}};

// A sign-exponent-mantissa format of at most 8 bits.
struct SmallFormat {
  int exponent_bits, mantissa_bits, bias;
  uint8_t max_bits;       // largest finite magnitude
  uint8_t overflow_bits;  // magnitude for what is too large and not saturated
  uint8_t nan_bits;       // magnitude of NaN
  bool unsigned_zero;     // "uz": no -0, the pattern 0x80 is the only NaN
};

constexpr SmallFormat kE4M3FN = {4, 3, 7, 0x7E, 0x7F, 0x7F, false};
constexpr SmallFormat kE4M3FNUZ = {4, 3, 8, 0x7F, 0x80, 0x80, true};
constexpr SmallFormat kE5M2 = {5, 2, 15, 0x7B, 0x7C, 0x7E, false};
constexpr SmallFormat kE5M2FNUZ = {5, 2, 16, 0x7F, 0x80, 0x80, true};
// float4 has neither infinity nor NaN: it always saturates.
constexpr SmallFormat kE2M1 = {2, 1, 1, 0x7, 0x7, 0x8, false};

const SmallFormat* small_format(DType t) {
  switch (t) {
    case DType::kFloat8E4M3FN:
      return &kE4M3FN;
    case DType::kFloat8E4M3FNUZ:
      return &kE4M3FNUZ;
    case DType::kFloat8E5M2:
      return &kE5M2;
    case DType::kFloat8E5M2FNUZ:
      return &kE5M2FNUZ;
    case DType::kFloat4E2M1:
      return &kE2M1;
    default:
      return nullptr;
  }
}

constexpr float pow2(int e) {  // for -149..127
  return e >= -126 ? std::bit_cast<float>(uint32_t(e + 127) << 23)
                   : std::bit_cast<float>(uint32_t(1) << (e + 149));
}

constexpr float decode_by_rule(const SmallFormat& f, uint32_t bits) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const int magnitude_bits = f.exponent_bits + f.mantissa_bits;
  const uint32_t magnitude = bits & ((1u << magnitude_bits) - 1);
  const bool negative = (bits >> magnitude_bits) & 1;
  if (f.unsigned_zero && negative && magnitude == 0) return nan;
  if (!f.unsigned_zero && magnitude > f.max_bits) {
    if (&f == &kE5M2 && magnitude == f.overflow_bits) {
      const float inf = std::numeric_limits<float>::infinity();
      return negative ? -inf : inf;
    }
    return negative ? -nan : nan;
  }
  const uint32_t mantissa = magnitude & ((1u << f.mantissa_bits) - 1);
  const int exponent = int(magnitude >> f.mantissa_bits);
  const float v = exponent == 0 ? float(mantissa) * pow2(1 - f.bias - f.mantissa_bits)
                                : float(mantissa + (1u << f.mantissa_bits)) *
                                      pow2(exponent - f.bias - f.mantissa_bits);
  return negative ? -v : v;
}

using DecodeTable = std::array<float, 256>;

constexpr DecodeTable make_table(const SmallFormat& f) {
  DecodeTable t{};
  const uint32_t mask = (2u << (f.exponent_bits + f.mantissa_bits)) - 1;
  for (uint32_t i = 0; i < 256; ++i) t[i] = decode_by_rule(f, i & mask);
  return t;
}

constexpr DecodeTable make_e8m0_table() {
  DecodeTable t{};
  for (int i = 0; i < 255; ++i) t[size_t(i)] = pow2(i - 127);
  t[255] = std::numeric_limits<float>::quiet_NaN();
  return t;
}

constexpr DecodeTable kTableE4M3FN = make_table(kE4M3FN);
constexpr DecodeTable kTableE4M3FNUZ = make_table(kE4M3FNUZ);
constexpr DecodeTable kTableE5M2 = make_table(kE5M2);
constexpr DecodeTable kTableE5M2FNUZ = make_table(kE5M2FNUZ);
constexpr DecodeTable kTableE2M1 = make_table(kE2M1);
constexpr DecodeTable kTableE8M0 = make_e8m0_table();

const DecodeTable& decode_table(DType t) {
  switch (t) {
    case DType::kFloat8E4M3FN:
      return kTableE4M3FN;
    case DType::kFloat8E4M3FNUZ:
      return kTableE4M3FNUZ;
    case DType::kFloat8E5M2:
      return kTableE5M2;
    case DType::kFloat8E5M2FNUZ:
      return kTableE5M2FNUZ;
    case DType::kFloat4E2M1:
      return kTableE2M1;
    case DType::kFloat8E8M0:
      return kTableE8M0;
    default:
      unsupported_dtype(t, "small float");
  }
}

// Round-to-nearest-even right shift.
uint32_t shift_rne(uint32_t v, int shift) {
  if (shift > 31) return 0;
  const uint32_t half = 1u << (shift - 1);
  return (v + half - 1 + ((v >> shift) & 1)) >> shift;
}

// Magnitude bits of |v| rounded into the format, before any check for overflow.
uint32_t round_magnitude(const SmallFormat& f, uint32_t abs_bits) {
  int exponent = int(abs_bits >> 23);
  uint32_t significand = abs_bits & 0x7FFFFF;
  if (exponent == 0)
    exponent = 1;  // a float denormal has no hidden bit
  else
    significand |= 0x800000;
  const int target = exponent - 127 + f.bias;  // exponent field in the target
  const int shift = 23 - f.mantissa_bits;
  if (target >= 1) {
    // the hidden bit, shifted, is worth one step of the exponent; a carry moves into it
    return (uint32_t(target - 1) << f.mantissa_bits) + shift_rne(significand, shift);
  }
  return shift_rne(significand, shift + 1 - target);
}

uint8_t encode(const SmallFormat& f, float v, bool saturate) {
  const uint32_t u = std::bit_cast<uint32_t>(v);
  const bool negative = u >> 31;
  const uint32_t abs_bits = u & 0x7FFFFFFF;
  const uint8_t sign = uint8_t(1u << (f.exponent_bits + f.mantissa_bits));
  if (abs_bits > 0x7F800000) {
    if (f.unsigned_zero) return f.nan_bits;
    // no NaN in float4: ml_dtypes, which defines the expected values, gives the opposite zero
    if (&f == &kE2M1) return negative ? 0 : sign;
    return negative ? uint8_t(f.nan_bits | sign) : f.nan_bits;
  }
  uint32_t magnitude = abs_bits == 0x7F800000 ? 0x100u : round_magnitude(f, abs_bits);
  if (magnitude > f.max_bits) magnitude = saturate ? f.max_bits : f.overflow_bits;
  if (f.unsigned_zero && (magnitude == 0 || magnitude == f.nan_bits)) return uint8_t(magnitude);
  return negative ? uint8_t(magnitude | sign) : uint8_t(magnitude);
}

}  // namespace

float half_to_float(uint16_t bits) {
  constexpr uint32_t kExponent = 0x7C00u << 13;
  uint32_t u = uint32_t(bits & 0x7FFF) << 13;
  const uint32_t exponent = u & kExponent;
  u += uint32_t(127 - 15) << 23;
  if (exponent == kExponent) {
    u += uint32_t(128 - 16) << 23;  // infinity, NaN
  } else if (exponent == 0) {       // zero, denormal: let the FPU normalise
    u += 1u << 23;
    u = std::bit_cast<uint32_t>(std::bit_cast<float>(u) - pow2(-14));
  }
  return std::bit_cast<float>(u | uint32_t(bits & 0x8000) << 16);
}

uint16_t float_to_half(float v) {
  const uint32_t u = std::bit_cast<uint32_t>(v);
  const uint16_t sign = uint16_t((u >> 16) & 0x8000);
  const uint32_t a = u & 0x7FFFFFFF;
  if (a > 0x7F800000) return uint16_t(sign | 0x7E00 | ((a >> 13) & 0x3FF));
  if (a >= 0x477FF000) return uint16_t(sign | 0x7C00);  // 65520 and more
  if (a < 0x38800000) {                                 // below 2^-14: denormal
    const int shift = 126 - int(a >> 23);
    if (shift > 24) return sign;
    const uint32_t significand = (a & 0x7FFFFF) | 0x800000;
    return uint16_t(sign | shift_rne(significand, shift));
  }
  const uint32_t rounded = a + 0xFFF + ((a >> 13) & 1) - (uint32_t(127 - 15) << 23);
  return uint16_t(sign | (rounded >> 13));
}

uint16_t float_to_bf16(float v) {
  const uint32_t u = std::bit_cast<uint32_t>(v);
  if ((u & 0x7FFFFFFF) > 0x7F800000) return uint16_t(((u >> 16) & 0x8000) | 0x7FC0);
  return uint16_t((u + 0x7FFF + ((u >> 16) & 1)) >> 16);
}

float round_to_odd(double v) {
  float f = float(v);
  if (double(f) == v || std::isnan(v) || std::isinf(v)) return f;
  if (std::isinf(f)) return std::copysign(std::numeric_limits<float>::max(), f);
  uint32_t u = std::bit_cast<uint32_t>(f);
  if (std::fabs(double(f)) > std::fabs(v)) --u;  // towards zero
  return std::bit_cast<float>(u | 1);
}

float small_float_decode(DType t, uint8_t bits) { return decode_table(t)[bits]; }

uint8_t small_float_encode(DType t, float v, bool saturate) {
  if (t == DType::kFloat8E8M0) return e8m0_encode(v, saturate, E8M0Round::kUp);
  const SmallFormat* f = small_format(t);
  if (f == nullptr) unsupported_dtype(t, "small float");
  return encode(*f, v, saturate);
}

uint8_t e8m0_encode(float v, bool saturate, E8M0Round mode) {
  const uint32_t a = std::bit_cast<uint32_t>(v) & 0x7FFFFFFF;
  if (a > 0x7F800000) return 0xFF;
  if (a == 0x7F800000) return saturate ? 0xFE : 0xFF;
  if (a < 0x00400000) return saturate ? 0 : 0xFF;  // below 2^-127, the smallest
  // 2^-127 is a float denormal with its one bit where a normal number has the fraction's top
  uint32_t exponent = a >> 23, fraction = a & 0x7FFFFF;
  if (exponent == 0) fraction = (fraction << 1) & 0x7FFFFF;
  const bool up =
      mode == E8M0Round::kUp ? fraction != 0 : mode == E8M0Round::kNearest && fraction >= 0x400000;
  if (up) ++exponent;
  return exponent == 0xFF && saturate ? uint8_t(0xFE) : uint8_t(exponent);
}

size_t dtype_size(DType t) { return size_t(t) < kInfo.size() ? kInfo[size_t(t)].size : 0; }

std::string_view dtype_name(DType t) {
  return size_t(t) < kInfo.size() ? kInfo[size_t(t)].name : std::string_view("unknown");
}

DType dtype_from_name(std::string_view name) {
  for (size_t i = 1; i < kInfo.size(); ++i)
    if (kInfo[i].name == name) return DType(i);
  if (name == "float32") return DType::kFloat;
  if (name == "float64") return DType::kDouble;
  return DType::kUndefined;
}

bool dtype_is_float(DType t) {
  switch (t) {
    case DType::kFloat:
    case DType::kDouble:
    case DType::kFloat16:
    case DType::kBFloat16:
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2:
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat8E8M0:
    case DType::kFloat4E2M1:
      return true;
    default:
      return false;
  }
}

bool dtype_is_integer(DType t) {
  switch (t) {
    case DType::kUint8:
    case DType::kInt8:
    case DType::kUint16:
    case DType::kInt16:
    case DType::kInt32:
    case DType::kInt64:
    case DType::kUint32:
    case DType::kUint64:
    case DType::kUint4:
    case DType::kInt4:
    case DType::kUint2:
    case DType::kInt2:
      return true;
    default:
      return false;
  }
}

void unsupported_dtype(DType t, std::string_view what) {
  model_error("OT1110", cat("'", what, "' does not support the element type ", dtype_name(t)));
}

}  // namespace onnxtrain
