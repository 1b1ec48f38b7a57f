// AlignAxis: broadcasting of opsets before 7 with ranks that are not known.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(AlignAxis, ValuesAndGradient) {
  auto align = [](int64_t axis, const Tensor& b, const Tensor& a) {
    return OpCase("AlignAxis", 1, std::string(kOwnDomain)).attr("axis", axis).input(b).input(a);
  };
  Tensor b = random_tensor({3}), a = random_tensor({2, 3, 4, 5});
  align(1, b, a).expect(b.reshaped({3, 1, 1}));
  align(-3, b, a).expect(b.reshaped({3, 1, 1}));
  Tensor two = random_tensor({3, 4});
  align(1, two, a).expect(two.reshaped({3, 4, 1}));
  align(1, b, a).check_grad({0});
  EXPECT_THROW(align(3, two, a).run(), Error);
}

}  // namespace onnxtrain::testing
