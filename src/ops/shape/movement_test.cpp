// Values and gradients of the operators that move elements: Transpose, Concat, Split, Slice,
// Gather, Expand, Tile, Where.
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

TEST(Concat, ValuesAndGradient) {
  Tensor a = Tensor::vector<float>({1, 2, 3, 4}).reshaped({2, 2}),
         b = Tensor::vector<float>({5, 6}).reshaped({2, 1});
  OpCase("Concat", 13)
      .attr("axis", int64_t(1))
      .input(a)
      .input(b)
      .expect(Tensor::vector<float>({1, 2, 5, 3, 4, 6}).reshaped({2, 3}));
  OpCase("Concat", 13)
      .attr("axis", int64_t(-1))
      .input(random_tensor({2, 3, 1}))
      .input(random_tensor({2, 3, 4}, -1, 1, 2))
      .input(random_tensor({2, 3, 0}))
      .check_grad();
  OpCase("Concat", 4)
      .attr("axis", int64_t(0))
      .input(random_tensor({2, 3}))
      .input(random_tensor({1, 3}, -1, 1, 2))
      .check_grad();
  EXPECT_THROW(OpCase("Concat", 13).attr("axis", int64_t(0)).input(a).input(b).run(), Error);
}

TEST(Split, ValuesAndGradient) {
  Tensor x = Tensor::vector<float>({1, 2, 3, 4, 5, 6, 7});
  OpCase("Split", 18)
      .attr("num_outputs", int64_t(3))
      .input(x)
      .outputs(3)
      .expect(Tensor::vector<float>({7}), 2);
  OpCase("Split", 13)
      .input(x)
      .constant(ints({2, 5}))
      .outputs(2)
      .expect(Tensor::vector<float>({3, 4, 5, 6, 7}), 1);
  OpCase("Split", 13).input(x).input(ints({0, 7})).outputs(2).expect(x, 1);
  OpCase("Split", 2)
      .attr("split", Ints{3, 4})
      .input(x)
      .outputs(2)
      .expect(Tensor::vector<float>({1, 2, 3}), 0);
  OpCase("Split", 18)
      .attr("axis", int64_t(1))
      .attr("num_outputs", int64_t(2))
      .input(random_tensor({2, 4}))
      .outputs(2)
      .check_grad();
  OpCase("Split", 13)
      .attr("axis", int64_t(-1))
      .input(random_tensor({2, 5}))
      .constant(ints({1, 4}))
      .outputs(2)
      .check_grad();
  EXPECT_THROW(OpCase("Split", 13).input(x).constant(ints({2, 4})).outputs(2).run(), Error);
}

TEST(Slice, Values) {
  Tensor x = random_tensor({3, 4, 5});
  const float* p = x.as<float>();
  std::vector<float> back;
  for (int64_t i = 4; i-- > 0;) back.push_back(p[20 + i * 5 + 1]);
  OpCase("Slice", 13)
      .input(x)
      .constant(ints({1, -1, 1}))
      .constant(ints({2, -100, 2}))
      .constant(ints({0, 1, 2}))
      .constant(ints({1, -1, 1}))
      .expect(Tensor::vector<float>(back).reshaped({1, 4, 1}));
  OpCase("Slice", 1)
      .attr("starts", Ints{1})
      .attr("ends", Ints{1000})
      .attr("axes", Ints{2})
      .input(Tensor::vector<float>({1, 2, 3}).reshaped({1, 1, 3}))
      .expect(Tensor::vector<float>({2, 3}).reshaped({1, 1, 2}));
  OpCase("Slice", 10)
      .input(Tensor::vector<int64_t>({1, 2, 3}))
      .input(ints({INT64_MAX}))
      .input(ints({INT64_MIN}))
      .skip_input()
      .input(ints({INT64_MIN}))
      .expect(Tensor::vector<int64_t>({3}));
  EXPECT_THROW(OpCase("Slice", 13)
                   .input(x)
                   .constant(ints({0}))
                   .constant(ints({1}))
                   .constant(ints({0}))
                   .constant(ints({0}))
                   .run(),
               Error);
}

TEST(Slice, Gradient) {
  OpCase("Slice", 13)
      .input(random_tensor({4, 5}))
      .constant(ints({1}))
      .constant(ints({3}))
      .check_grad({0});
  OpCase("Slice", 13)
      .input(random_tensor({4, 5}))
      .constant(ints({-1, 0}))
      .constant(ints({-9, 5}))
      .constant(ints({0, 1}))
      .constant(ints({-2, 3}))
      .check_grad({0});
  OpCase("Slice", 1)
      .attr("starts", Ints{1})
      .attr("ends", Ints{3})
      .attr("axes", Ints{1})
      .input(random_tensor({2, 5}))
      .check_grad();
  OpCase("Slice", 13)
      .input(random_tensor({4, 5}))
      .input(ints({2}))
      .input(ints({2}))
      .check_grad({0});
}

TEST(Gather, ValuesAndGradient) {
  Tensor x = Tensor::vector<float>({1, 2, 3, 4, 5, 6}).reshaped({3, 2});
  OpCase("Gather", 13)
      .input(x)
      .input(ints({2, -3}))
      .expect(Tensor::vector<float>({5, 6, 1, 2}).reshaped({2, 2}));
  OpCase("Gather", 13)
      .attr("axis", int64_t(1))
      .input(x)
      .input(Tensor::scalar<int64_t>(1))
      .expect(Tensor::vector<float>({2, 4, 6}));
  OpCase("Gather", 1)
      .input(random_tensor({5, 3}))
      .input(ints({1, 4, 1, 0, -1}).reshaped({5}))
      .check_grad();
  OpCase("Gather", 13)
      .attr("axis", int64_t(-1))
      .input(random_tensor({2, 5}))
      .input(ints({1, 1, -5, 2}).reshaped({2, 2}))
      .check_grad();
  OpCase("Gather", 13)
      .attr("axis", int64_t(1))
      .input(random_tensor({2, 3, 70}))
      .input(ints({0, 0, 2}))
      .check_grad();
  OpCase("Gather", 13).input(random_tensor({5, 3})).input(ints({})).check_grad();
  EXPECT_THROW(OpCase("Gather", 13).input(x).input(ints({3})).run(), Error);
  EXPECT_THROW(OpCase("Gather", 13).input(x).input(ints({-4})).run(), Error);
}

TEST(Expand, ValuesAndGradient) {
  OpCase("Expand", 13)
      .input(Tensor::vector<float>({1, 2}).reshaped({2, 1}))
      .input(ints({3, 1, 2}))
      .expect(Tensor::vector<float>({1, 1, 2, 2, 1, 1, 2, 2, 1, 1, 2, 2}).reshaped({3, 2, 2}));
  OpCase("Expand", 8).input(random_tensor({3, 1})).constant(ints({2, 3, 4})).check_grad();
  OpCase("Expand", 8).input(random_tensor({3, 4})).constant(ints({1})).check_grad();
}

TEST(Tile, ValuesAndGradient) {
  OpCase("Tile", 13)
      .input(Tensor::vector<float>({1, 2, 3, 4}).reshaped({2, 2}))
      .input(ints({1, 2}))
      .expect(Tensor::vector<float>({1, 2, 1, 2, 3, 4, 3, 4}).reshaped({2, 4}));
  OpCase("Tile", 6).input(random_tensor({2, 3})).constant(ints({3, 2})).check_grad();
  OpCase("Tile", 6).input(random_tensor({2, 3})).input(ints({3, 2})).check_grad({0});
  OpCase("Tile", 6).input(random_tensor({2, 3})).constant(ints({0, 2})).check_grad();
}

TEST(Where, ValuesAndGradient) {
  Tensor c(DType::kBool, {2, 1});
  c.as<bool>()[0] = true;
  c.as<bool>()[1] = false;
  OpCase("Where", 16)
      .input(c)
      .input(Tensor::vector<float>({1, 2}))
      .input(Tensor::scalar<float>(9))
      .expect(Tensor::vector<float>({1, 2, 9, 9}).reshaped({2, 2}));
  OpCase("Where", 9)
      .input(c)
      .input(random_tensor({2, 3}))
      .input(random_tensor({3}, -1, 1, 2))
      .check_grad();
}

}  // namespace onnxtrain::testing
