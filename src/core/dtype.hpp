// Element types. Numbers are ONNX's TensorProto.DataType.
// In memory every element has a whole number of bytes: the 4- and 2-bit types use one byte each;
// packing happens only at the file's edge.
#pragma once
#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace onnxtrain {

enum class DType : uint8_t {
  kUndefined = 0,
  kFloat = 1,
  kUint8 = 2,
  kInt8 = 3,
  kUint16 = 4,
  kInt16 = 5,
  kInt32 = 6,
  kInt64 = 7,
  kString = 8,
  kBool = 9,
  kFloat16 = 10,
  kDouble = 11,
  kUint32 = 12,
  kUint64 = 13,
  kComplex64 = 14,
  kComplex128 = 15,
  kBFloat16 = 16,
  kFloat8E4M3FN = 17,
  kFloat8E4M3FNUZ = 18,
  kFloat8E5M2 = 19,
  kFloat8E5M2FNUZ = 20,
  kUint4 = 21,
  kInt4 = 22,
  kFloat4E2M1 = 23,
  kFloat8E8M0 = 24,
  kUint2 = 25,
  kInt2 = 26,
};
inline constexpr int kDTypeCount = 27;

float half_to_float(uint16_t bits);
uint16_t float_to_half(float v);
inline float bf16_to_float(uint16_t bits) {
  uint32_t u = uint32_t(bits) << 16;
  float f;
  __builtin_memcpy(&f, &u, 4);
  return f;
}
uint16_t float_to_bf16(float v);
// One-byte formats (float8 family, float4): decode by table; encode round-to-nearest-even,
// `saturate` as in ONNX Cast.
float small_float_decode(DType t, uint8_t bits);
uint8_t small_float_encode(DType t, float v, bool saturate);
// float8e8m0 with Cast's round_mode (small_float_encode takes kUp, the default of Cast). The sign
// is ignored, as in ONNX's reference; zero, infinity and what is out of range follow Cast's table.
enum class E8M0Round { kUp, kDown, kNearest };
uint8_t e8m0_encode(float v, bool saturate, E8M0Round mode);
// double -> float such that a second rounding to 16 bits or fewer is as if done directly:
// float_to_half(round_to_odd(d)) is d correctly rounded.
float round_to_odd(double v);

// Storage types with conversion to and from float: usable in templates like built-in numbers.
struct Half {
  uint16_t bits = 0;
  Half() = default;
  Half(float v) : bits(float_to_half(v)) {}
  operator float() const { return half_to_float(bits); }
};
struct BFloat16 {
  uint16_t bits = 0;
  BFloat16() = default;
  BFloat16(float v) : bits(float_to_bf16(v)) {}
  operator float() const { return bf16_to_float(bits); }
};
template <DType D>
struct SmallFloat {
  uint8_t bits = 0;
  SmallFloat() = default;
  SmallFloat(float v) : bits(small_float_encode(D, v, true)) {}
  operator float() const { return small_float_decode(D, bits); }
};
using Float8E4M3FN = SmallFloat<DType::kFloat8E4M3FN>;
using Float8E4M3FNUZ = SmallFloat<DType::kFloat8E4M3FNUZ>;
using Float8E5M2 = SmallFloat<DType::kFloat8E5M2>;
using Float8E5M2FNUZ = SmallFloat<DType::kFloat8E5M2FNUZ>;
using Float8E8M0 = SmallFloat<DType::kFloat8E8M0>;
using Float4E2M1 = SmallFloat<DType::kFloat4E2M1>;
// Small integers: value in one byte, in range of the type.
template <DType D>
struct SmallInt {
  int8_t v = 0;
  SmallInt() = default;
  SmallInt(int x) {
    switch (D) {
      case DType::kInt4:
        v = int8_t(int8_t(uint8_t(x) << 4) >> 4);
        break;
      case DType::kUint4:
        v = int8_t(x & 15);
        break;
      case DType::kInt2:
        v = int8_t(int8_t(uint8_t(x) << 6) >> 6);
        break;
      default:
        v = int8_t(x & 3);
        break;
    }
  }
  operator int() const { return v; }
};
using Int4 = SmallInt<DType::kInt4>;
using UInt4 = SmallInt<DType::kUint4>;
using Int2 = SmallInt<DType::kInt2>;
using UInt2 = SmallInt<DType::kUint2>;

// bytes of one element in memory (sizeof(std::string) for strings)
size_t dtype_size(DType t);
// "float", "int64", ... as in ONNX's tensor(...) names
std::string_view dtype_name(DType t);
DType dtype_from_name(std::string_view name);  // kUndefined when unknown
bool dtype_is_float(DType t);                  // float, double, float16, bfloat16, float8*, float4
bool dtype_is_integer(DType t);                // all signed and unsigned integers, not bool
// the types gradients exist in: float, double, float16, bfloat16
inline bool dtype_is_differentiable(DType t) {
  return t == DType::kFloat || t == DType::kDouble || t == DType::kFloat16 || t == DType::kBFloat16;
}

template <class T>
struct DTypeOf;
#define OT_DTYPE(T, D)                       \
  template <>                                \
  struct DTypeOf<T> {                        \
    static constexpr DType value = DType::D; \
  };
// clang-format off
OT_DTYPE(float, kFloat)
OT_DTYPE(uint8_t, kUint8)
OT_DTYPE(int8_t, kInt8)
OT_DTYPE(uint16_t, kUint16)
OT_DTYPE(int16_t, kInt16)
OT_DTYPE(int32_t, kInt32)
OT_DTYPE(int64_t, kInt64)
OT_DTYPE(std::string, kString)
OT_DTYPE(bool, kBool)
OT_DTYPE(Half, kFloat16)
OT_DTYPE(double, kDouble)
OT_DTYPE(uint32_t, kUint32)
OT_DTYPE(uint64_t, kUint64)
OT_DTYPE(std::complex<float>, kComplex64)
OT_DTYPE(std::complex<double>, kComplex128)
OT_DTYPE(BFloat16, kBFloat16)
OT_DTYPE(Float8E4M3FN, kFloat8E4M3FN)
OT_DTYPE(Float8E4M3FNUZ, kFloat8E4M3FNUZ)
OT_DTYPE(Float8E5M2, kFloat8E5M2)
OT_DTYPE(Float8E5M2FNUZ, kFloat8E5M2FNUZ)
OT_DTYPE(UInt4, kUint4)
OT_DTYPE(Int4, kInt4)
OT_DTYPE(Float4E2M1, kFloat4E2M1)
OT_DTYPE(Float8E8M0, kFloat8E8M0)
OT_DTYPE(UInt2, kUint2)
OT_DTYPE(Int2, kInt2)
// clang-format on
#undef OT_DTYPE

// The type to calculate in: float for the 16- and 8-bit floats, itself otherwise.
template <class T>
struct ComputeType {
  using type = T;
};
template <>
struct ComputeType<Half> {
  using type = float;
};
template <>
struct ComputeType<BFloat16> {
  using type = float;
};
template <DType D>
struct ComputeType<SmallFloat<D>> {
  using type = float;
};
template <DType D>
struct ComputeType<SmallInt<D>> {
  using type = int;
};
template <class T>
using compute_t = typename ComputeType<T>::type;

// Calls f.template operator()<T>() for the C++ type behind `t` if T is one of Ts; otherwise throws
// a model error that names `what` (an operator) and the type.
template <class... Ts, class F>
decltype(auto) dispatch(DType t, std::string_view what, F&& f);

[[noreturn]] void unsupported_dtype(DType t, std::string_view what);

namespace detail {
template <class F, class T, class... Rest>
decltype(auto) dispatch_one(DType t, std::string_view what, F&& f) {
  if (t == DTypeOf<T>::value) return f.template operator()<T>();
  if constexpr (sizeof...(Rest) > 0) {
    return dispatch_one<F, Rest...>(t, what, static_cast<F&&>(f));
  } else {
    unsupported_dtype(t, what);
  }
}
}  // namespace detail

template <class... Ts, class F>
decltype(auto) dispatch(DType t, std::string_view what, F&& f) {
  return detail::dispatch_one<F, Ts...>(t, what, static_cast<F&&>(f));
}

}  // namespace onnxtrain
