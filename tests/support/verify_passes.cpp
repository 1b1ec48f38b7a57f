// All C++ tests look for damage to the graph after every pass.
#include <gtest/gtest.h>

#include <cstdlib>

namespace onnxtrain::testing {

namespace {

class VerifyPasses : public ::testing::Environment {
 public:
  void SetUp() override { setenv("ONNXTRAIN_VERIFY_PASSES", "1", 0); }
};

[[maybe_unused]] const ::testing::Environment* const verify_passes =
    ::testing::AddGlobalTestEnvironment(new VerifyPasses);

}  // namespace

}  // namespace onnxtrain::testing
