// How losses and speeds are shown in the table of epochs.
#include "cli/print/progress.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace onnxtrain::testing {

TEST(Progress, LossesOfAnySizeAreShort) {
  EXPECT_EQ(cli::format_loss(0.0611), "0.0611");
  EXPECT_EQ(cli::format_loss(3016.25), "3016.2500");
  EXPECT_EQ(cli::format_loss(11176788878.2222), "1.118e+10");
  EXPECT_EQ(cli::format_loss(2.5e-5), "2.5e-05");
  EXPECT_EQ(cli::format_loss(-2.5e7), "-2.5e+07");
  EXPECT_EQ(cli::format_loss(0), "0.0000");
  EXPECT_EQ(cli::format_loss(std::numeric_limits<double>::quiet_NaN()), "nan");
}

TEST(Progress, SlowStepsHaveASpeedToo) {
  EXPECT_EQ(cli::format_speed(4031.7), "4,031");
  EXPECT_EQ(cli::format_speed(0.417), "0.42");
}

}  // namespace onnxtrain::testing
