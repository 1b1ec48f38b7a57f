#include "core/dtype.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace onnxtrain {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
const float kNan = std::numeric_limits<float>::quiet_NaN();

// The nearest of `values` by search; ties go to the even position.
size_t nearest(const std::vector<double>& values, double v) {
  size_t best = 0;
  for (size_t i = 1; i < values.size(); ++i) {
    const double a = std::fabs(values[i] - v), b = std::fabs(values[best] - v);
    if (a < b || (a == b && i % 2 == 0)) best = i;
  }
  return best;
}

TEST(DType, HalfRoundTripsAllBits) {
  for (uint32_t b = 0; b < 65536; ++b) {
    const float f = half_to_float(uint16_t(b));
    if (std::isnan(f)) {
      EXPECT_TRUE(std::isnan(half_to_float(float_to_half(f))));
      continue;
    }
    ASSERT_EQ(float_to_half(f), b);
  }
}

TEST(DType, HalfRoundsToNearestEven) {
  for (uint32_t b = 0; b < 0x7C00; ++b) {  // midpoints between neighbours
    const double lo = half_to_float(uint16_t(b));
    const double hi = b == 0x7BFF ? 65536.0 : half_to_float(uint16_t(b + 1));
    const float mid = float((lo + hi) / 2);
    const uint32_t even = b % 2 == 0 ? b : b + 1;
    ASSERT_EQ(float_to_half(mid), even) << mid;
    ASSERT_EQ(float_to_half(std::nextafter(mid, 0.0f)), b);
    ASSERT_EQ(float_to_half(std::nextafter(mid, kInf)), b + 1);
    ASSERT_EQ(float_to_half(-mid), even | 0x8000);
  }
  EXPECT_EQ(float_to_half(kInf), 0x7C00);
  EXPECT_EQ(float_to_half(-kInf), 0xFC00);
  EXPECT_EQ(float_to_half(1e30f), 0x7C00);
  EXPECT_EQ(float_to_half(1e-30f), 0);
  EXPECT_EQ(float_to_half(-0.0f), 0x8000);
  EXPECT_EQ(float_to_half(kNan), 0x7E00);
}

TEST(DType, BFloat16RoundsToNearestEven) {
  EXPECT_EQ(float_to_bf16(1.0f), 0x3F80);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3F808000u)), 0x3F80);  // tie to even
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3F818000u)), 0x3F82);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x3F808001u)), 0x3F81);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_EQ(float_to_bf16(std::numeric_limits<float>::denorm_min()), 0);
  EXPECT_EQ(float_to_bf16(std::bit_cast<float>(0x7F800001u)), 0x7FC0);  // a NaN stays one
  EXPECT_EQ(float_to_bf16(-kInf), 0xFF80);
  for (uint32_t b = 0; b < 65536; ++b) {
    const float f = bf16_to_float(uint16_t(b));
    if (!std::isnan(f)) {
      ASSERT_EQ(float_to_bf16(f), b);
    }
  }
}

struct SmallCase {
  DType type;
  uint8_t max, nan, overflow;
  uint8_t sign;
  bool unsigned_zero;
};
const SmallCase kSmall[] = {
    {DType::kFloat8E4M3FN, 0x7E, 0x7F, 0x7F, 0x80, false},
    {DType::kFloat8E4M3FNUZ, 0x7F, 0x80, 0x80, 0x80, true},
    {DType::kFloat8E5M2, 0x7B, 0x7E, 0x7C, 0x80, false},
    {DType::kFloat8E5M2FNUZ, 0x7F, 0x80, 0x80, 0x80, true},
    {DType::kFloat4E2M1, 0x07, 0x08, 0x07, 0x08, false},
};

TEST(DType, SmallFloatsRoundToNearestEven) {
  for (const SmallCase& c : kSmall) {
    std::vector<double> values;
    for (int b = 0; b <= c.max; ++b) values.push_back(small_float_decode(c.type, uint8_t(b)));
    values.push_back(2 * values[c.max] - values[c.max - 1]);  // the step after the largest
    for (uint32_t u = 0; u < 0x7F800000u; u += 0x3779) {
      const float v = std::bit_cast<float>(u);
      const size_t want = v > 4 * values[c.max] ? size_t(c.max) + 1 : nearest(values, v);
      const uint8_t saturated = uint8_t(std::min<size_t>(want, c.max));
      const uint8_t exact = want > c.max ? c.overflow : uint8_t(want);
      ASSERT_EQ(small_float_encode(c.type, v, true), saturated) << dtype_name(c.type) << " " << v;
      ASSERT_EQ(small_float_encode(c.type, v, false), exact) << dtype_name(c.type) << " " << v;
      const bool bare = c.unsigned_zero && (exact == 0 || exact == 0x80);
      ASSERT_EQ(small_float_encode(c.type, -v, false), bare ? exact : (exact | c.sign)) << v;
    }
    for (int b = 0; b < c.max; ++b) {  // exact midpoints
      const float mid = float((values[size_t(b)] + values[size_t(b) + 1]) / 2);
      ASSERT_EQ(small_float_encode(c.type, mid, true), b % 2 == 0 ? b : b + 1);
    }
  }
}

TEST(DType, SmallFloatSpecialValues) {
  for (const SmallCase& c : kSmall) {
    EXPECT_EQ(small_float_encode(c.type, kNan, true), c.nan);
    EXPECT_EQ(small_float_encode(c.type, kInf, true), c.max);
    EXPECT_EQ(small_float_encode(c.type, kInf, false), c.overflow);
    EXPECT_EQ(small_float_encode(c.type, -0.0f, true), c.unsigned_zero ? 0 : c.sign);
  }
  EXPECT_EQ(small_float_decode(DType::kFloat8E4M3FN, 0x7E), 448.0f);
  EXPECT_EQ(small_float_decode(DType::kFloat8E4M3FNUZ, 0x7F), 240.0f);
  EXPECT_EQ(small_float_decode(DType::kFloat8E5M2, 0x7B), 57344.0f);
  EXPECT_EQ(small_float_decode(DType::kFloat8E5M2, 0xFC), -kInf);
  EXPECT_EQ(small_float_decode(DType::kFloat8E5M2FNUZ, 0x7F), 57344.0f);
  EXPECT_EQ(small_float_decode(DType::kFloat4E2M1, 0x0F), -6.0f);
  EXPECT_EQ(small_float_decode(DType::kFloat8E4M3FN, 0x01), 0x1p-9f);
  EXPECT_EQ(small_float_decode(DType::kFloat8E5M2, 0x01), 0x1p-16f);
  EXPECT_TRUE(std::isnan(small_float_decode(DType::kFloat8E4M3FN, 0x7F)));
  EXPECT_TRUE(std::isnan(small_float_decode(DType::kFloat8E5M2FNUZ, 0x80)));
  EXPECT_THROW(small_float_decode(DType::kFloat, 0), Error);
}

TEST(DType, E8M0) {
  for (int b = 0; b < 255; ++b) {
    const float v = small_float_decode(DType::kFloat8E8M0, uint8_t(b));
    EXPECT_EQ(v, std::ldexp(1.0f, b - 127));
    for (E8M0Round r : {E8M0Round::kUp, E8M0Round::kDown, E8M0Round::kNearest})
      EXPECT_EQ(e8m0_encode(v, true, r), b);
  }
  EXPECT_TRUE(std::isnan(small_float_decode(DType::kFloat8E8M0, 255)));
  EXPECT_EQ(e8m0_encode(1.1f, true, E8M0Round::kUp), 128);
  EXPECT_EQ(e8m0_encode(1.9f, true, E8M0Round::kDown), 127);
  EXPECT_EQ(e8m0_encode(1.49f, true, E8M0Round::kNearest), 127);
  EXPECT_EQ(e8m0_encode(1.5f, true, E8M0Round::kNearest), 128);
  EXPECT_EQ(e8m0_encode(0x1.8p127f, true, E8M0Round::kUp), 254);
  EXPECT_EQ(e8m0_encode(0x1.8p127f, false, E8M0Round::kUp), 255);
  EXPECT_EQ(e8m0_encode(0.0f, true, E8M0Round::kUp), 0);
  EXPECT_EQ(e8m0_encode(0.0f, false, E8M0Round::kNearest), 255);
  EXPECT_EQ(e8m0_encode(kInf, true, E8M0Round::kUp), 254);
  EXPECT_EQ(e8m0_encode(kInf, false, E8M0Round::kNearest), 255);
  EXPECT_EQ(e8m0_encode(kNan, true, E8M0Round::kUp), 255);
}

TEST(DType, RoundToOddAvoidsDoubleRounding) {
  const double v = 1.0 + 0x1p-11 + 0x1p-40;    // just above a half-precision tie
  EXPECT_EQ(float_to_half(float(v)), 0x3C00);  // what two roundings give
  EXPECT_EQ(float_to_half(round_to_odd(v)), 0x3C01);
  EXPECT_EQ(float_to_half(round_to_odd(-v)), 0xBC01);
  EXPECT_EQ(float_to_half(round_to_odd(65519.999999999)), 0x7BFF);
  EXPECT_EQ(round_to_odd(0.5), 0.5f);
  EXPECT_TRUE(std::isnan(round_to_odd(std::nan(""))));
  EXPECT_EQ(float_to_half(round_to_odd(1e300)), 0x7C00);
}

TEST(DType, NamesAndSizes) {
  for (int i = 1; i < kDTypeCount; ++i) {
    EXPECT_EQ(dtype_from_name(dtype_name(DType(i))), DType(i));
    EXPECT_GT(dtype_size(DType(i)), 0u);
  }
  EXPECT_EQ(dtype_from_name("float32"), DType::kFloat);
  EXPECT_EQ(dtype_from_name("nonsense"), DType::kUndefined);
  EXPECT_EQ(dtype_name(DType(200)), "unknown");
  EXPECT_EQ(dtype_size(DType::kComplex128), 16u);
  EXPECT_TRUE(dtype_is_float(DType::kFloat4E2M1));
  EXPECT_FALSE(dtype_is_integer(DType::kBool));
  EXPECT_TRUE(dtype_is_integer(DType::kUint2));
}

TEST(DType, DispatchNamesTheTypeItRefuses) {
  EXPECT_EQ((dispatch<float, int64_t>(DType::kInt64, "Op", []<class T>() { return sizeof(T); })),
            8u);
  try {
    dispatch<float>(DType::kString, "Conv", []<class T>() {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "OT1110");
    EXPECT_NE(e.message().find("'Conv'"), std::string::npos);
    EXPECT_NE(e.message().find("string"), std::string::npos);
  }
}

TEST(DType, SmallInts) {
  EXPECT_EQ(int(Int4(-8)), -8);
  EXPECT_EQ(int(Int4(8)), -8);
  EXPECT_EQ(int(UInt4(17)), 1);
  EXPECT_EQ(int(Int2(2)), -2);
  EXPECT_EQ(int(UInt2(7)), 3);
}

}  // namespace
}  // namespace onnxtrain
