// Words of --augment, and the distribution that mixup draws from.
#include "convert/step/augment.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"

namespace onnxtrain {
namespace {

std::string refusal(const std::string& text) {
  try {
    (void)parse_augment(text);
  } catch (const Error& e) {
    return e.code() + " " + e.hint();
  }
  return "";
}

TEST(Augment, Words) {
  const std::vector<Augmentation> all = parse_augment("flip, crop:3,my.onnx,mixup:0.4");
  ASSERT_EQ(all.size(), 4u);
  EXPECT_EQ(all[0].kind, "flip");
  EXPECT_EQ(all[0].amount, 0.5);
  EXPECT_EQ(all[1].amount, 3);
  EXPECT_EQ(all[2].kind, "my.onnx");
  EXPECT_TRUE(parse_augment("").empty());
  EXPECT_EQ(augment_text("flip,crop:3"), "flip:0.5, crop:3");
  EXPECT_EQ(refusal("flp"), "OT2210 --augment flip");
  EXPECT_EQ(refusal("crop:2.5"), "OT2211 --augment crop:4");
  for (const char* bad : {"crop:0", "rotate:200", "color:-1", "cutout:x", "mixup:0", "flip:", ","})
    EXPECT_EQ(refusal(bad).substr(0, 5), "OT221") << bad;
  EXPECT_EQ(refusal("mixup,mixup").substr(0, 6), "OT2211");
}

TEST(Augment, BetaQuantiles) {
  const std::vector<float> uniform = beta_quantiles(1, 5), arcsine = beta_quantiles(0.5, 9);
  for (size_t k = 0; k < uniform.size(); ++k) EXPECT_NEAR(uniform[k], double(k) / 4, 1e-7);
  for (size_t k = 0; k < arcsine.size(); ++k) {
    const double s = std::sin(std::acos(-1.0) / 2 * double(k) / 8);
    EXPECT_NEAR(arcsine[k], s * s, 1e-6);
  }
  const std::vector<float> small = beta_quantiles(0.2, 1025);
  for (size_t k = 1; k < small.size(); ++k) {
    EXPECT_LE(small[k - 1], small[k]);
    EXPECT_NEAR(small[k] + small[small.size() - 1 - k], 1, 1e-5);
  }
}

}  // namespace
}  // namespace onnxtrain
