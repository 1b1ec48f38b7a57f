// Values and gradients of Transpose.
#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

// Every element by the definition.
static Tensor transposed(const Tensor& x, const Ints& perm) {
  Shape out, strides = strides_of(x.shape());
  for (int64_t d : perm) out.push_back(x.shape()[size_t(d)]);
  Tensor y(x.dtype(), out);
  for (int64_t i = 0; i < y.size(); ++i) {
    int64_t rest = i, from = 0;
    for (size_t d = out.size(); d-- > 0;) {
      from += (rest % out[d]) * strides[size_t(perm[d])];
      rest /= out[d];
    }
    y.as<float>()[i] = x.as<float>()[from];
  }
  return y;
}

TEST(Transpose, Values) {
  for (const Ints& perm :
       {Ints{0, 1, 2, 3}, Ints{0, 2, 1, 3}, Ints{0, 2, 3, 1}, Ints{3, 2, 1, 0}, Ints{1, 0, 3, 2}}) {
    Tensor x = random_tensor({3, 17, 5, 21});
    OpCase("Transpose", 13).attr("perm", perm).input(x).expect(transposed(x, perm), 0, 0, 0);
  }
  Tensor x = random_tensor({70, 133});
  OpCase("Transpose", 13).input(x).expect(transposed(x, {1, 0}), 0, 0, 0);
  Tensor s = Tensor::vector<std::string>({"a", "b", "c", "d", "e", "f"}).reshaped({2, 3});
  OpCase("Transpose", 13)
      .input(s)
      .expect(Tensor::vector<std::string>({"a", "d", "b", "e", "c", "f"}).reshaped({3, 2}));
  EXPECT_THROW(OpCase("Transpose", 13).attr("perm", Ints{0, 0}).input(x).run(), Error);
}

TEST(Transpose, Gradient) {
  OpCase("Transpose", 13).input(random_tensor({2, 3, 4})).check_grad();
  OpCase("Transpose", 1).attr("perm", Ints{2, 0, 1}).input(random_tensor({2, 3, 4})).check_grad();
  OpCase("Transpose", 13).attr("perm", Ints{1, 0}).input(random_tensor({0, 4})).check_grad();
}

}  // namespace onnxtrain::testing
