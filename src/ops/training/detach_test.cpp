// Detach keeps the value; that it stops the gradient is tested with training files
// (python/tests/pytorch).
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(Detach, KeepsTheValue) {
  Tensor x = random_tensor({3, 4});
  OpCase("Detach", 1, std::string(kOwnDomain)).input(x).expect(x);
}

}  // namespace onnxtrain::testing
