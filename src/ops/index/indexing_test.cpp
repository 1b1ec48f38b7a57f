// Values and gradients of the gathers and scatters by element and by tuple, Pad, OneHot, TopK, and
// the operators that choose or rearrange elements.
#include <gtest/gtest.h>

#include <cmath>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

TEST(GatherElements, ValuesAndGradient) {
  OpCase("GatherElements", 13)
      .attr("axis", int64_t(1))
      .input(floats({1, 2, 3, 4}, {2, 2}))
      .input(ints({0, 0, -1, 0}, {2, 2}))
      .expect(floats({1, 1, 4, 3}, {2, 2}));
  OpCase("GatherElements", 11)
      .attr("axis", int64_t(0))
      .input(random_tensor({3, 4}))
      .input(ints({0, 2, 2, 1, 1, 0}, {2, 3}))
      .check_grad();
  OpCase("GatherElements", 13)
      .attr("axis", int64_t(-1))
      .input(random_tensor({2, 3, 4}))
      .input(random_ints({2, 3, 5}, 0, 4))
      .check_grad();
  EXPECT_THROW(OpCase("GatherElements", 13).input(floats({1, 2})).input(ints({2})).run(), Error);
}

TEST(GatherND, ValuesAndGradient) {
  OpCase("GatherND", 13)
      .input(floats({0, 1, 2, 3}, {2, 2}))
      .input(ints({0, 0, 1, -1}, {2, 2}))
      .expect(floats({0, 3}));
  OpCase("GatherND", 12)
      .attr("batch_dims", int64_t(1))
      .input(floats({0, 1, 2, 3, 4, 5, 6, 7}, {2, 2, 2}))
      .input(ints({1, 0}, {2, 1}))
      .expect(floats({2, 3, 4, 5}, {2, 2}));
  OpCase("GatherND", 13)
      .input(random_tensor({3, 4, 2}))
      .input(ints({0, 1, 2, 3, 0, 1}, {3, 2}))
      .check_grad();
  OpCase("GatherND", 13)
      .attr("batch_dims", int64_t(1))
      .input(random_tensor({2, 3, 4}))
      .input(ints({2, 2, 0, 1}, {2, 2, 1}))
      .check_grad();
  EXPECT_THROW(OpCase("GatherND", 13).input(floats({1, 2})).input(ints({5}, {1, 1})).run(), Error);
}

TEST(Scatter, Values) {
  OpCase("ScatterElements", 18)
      .attr("axis", int64_t(1))
      .attr("reduction", std::string("add"))
      .input(floats({1, 2, 3}, {1, 3}))
      .input(ints({1, 1}, {1, 2}))
      .input(floats({10, 20}, {1, 2}))
      .expect(floats({1, 32, 3}, {1, 3}));
  OpCase("Scatter", 9)
      .input(floats({1, 2, 3}))
      .input(ints({-1}))
      .input(floats({9}))
      .expect(floats({1, 2, 9}));
  OpCase("ScatterND", 18)
      .attr("reduction", std::string("max"))
      .input(floats({1, 2, 3, 4}, {2, 2}))
      .input(ints({1, 1}, {2, 1}))
      .input(floats({0, 9, 5, 8}, {2, 2}))
      .expect(floats({1, 2, 5, 9}, {2, 2}));
  OpCase("ScatterND", 11)
      .input(Tensor::vector<std::string>({"a", "b"}))
      .input(ints({1}, {1, 1}))
      .input(Tensor::vector<std::string>({"z"}))
      .expect(Tensor::vector<std::string>({"a", "z"}));
  EXPECT_THROW(
      OpCase("ScatterElements", 18).input(floats({1})).input(ints({1})).input(floats({1})).run(),
      Error);
  EXPECT_THROW(
      OpCase("ScatterND", 18).input(floats({1})).input(ints({-2}, {1, 1})).input(floats({1})).run(),
      Error);
}

TEST(Scatter, Gradients) {
  for (const char* how : {"none", "add", "mul", "max", "min"}) {
    bool once = std::string(how) == "none";
    OpCase("ScatterElements", 18)
        .attr("axis", int64_t(1))
        .attr("reduction", std::string(how))
        .input(random_tensor({2, 4}))
        .input(ints(once ? Ints{1, 3, 0, 2} : Ints{1, 1, 0, 2}, {2, 2}))
        .input(random_tensor({2, 2}, -1, 1, 5))
        .check_grad();
    OpCase("ScatterND", 18)
        .attr("reduction", std::string(how))
        .input(random_tensor({3, 2}))
        .input(ints(once ? Ints{1, 0} : Ints{1, 1}, {2, 1}))
        .input(random_tensor({2, 2}, -1, 1, 5))
        .check_grad();
  }
  // a factor of zero: the others get nothing, it gets their product
  OpCase("ScatterElements", 18)
      .attr("reduction", std::string("mul"))
      .input(floats({2, 3}))
      .input(ints({0, 0, 1}))
      .input(floats({0, 5, 4}))
      .check_grad();
}

TEST(Pad, Values) {
  Tensor x = floats({1, 2, 3}, {1, 3});
  OpCase("Pad", 13)
      .input(x)
      .input(ints({0, 1, 1, 0}))
      .input(Tensor::scalar<float>(9))
      .expect(floats({9, 1, 2, 3, 9, 9, 9, 9}, {2, 4}));
  OpCase("Pad", 13)
      .attr("mode", std::string("reflect"))
      .input(x)
      .input(ints({0, 2, 0, 1}))
      .expect(floats({3, 2, 1, 2, 3, 2}, {1, 6}));
  OpCase("Pad", 13)
      .attr("mode", std::string("edge"))
      .input(x)
      .input(ints({0, 2, 0, 1}))
      .expect(floats({1, 1, 1, 2, 3, 3}, {1, 6}));
  OpCase("Pad", 19)
      .attr("mode", std::string("wrap"))
      .input(x)
      .input(ints({4, 1}))
      .skip_input()
      .input(ints({1}))
      .expect(floats({3, 1, 2, 3, 1, 2, 3, 1}, {1, 8}));
  OpCase("Pad", 13).input(x).input(ints({0, -1, 0, 1})).expect(floats({2, 3, 0}, {1, 3}));
  OpCase("Pad", 2)
      .attr("pads", Ints{0, 1, 0, 0})
      .attr("value", 7.f)
      .input(x)
      .expect(floats({7, 1, 2, 3}, {1, 4}));
  EXPECT_THROW(OpCase("Pad", 13).input(x).input(ints({0, -4, 0, 0})).run(), Error);
}

TEST(Pad, Gradients) {
  for (const char* mode : {"constant", "reflect", "edge", "wrap"}) {
    OpCase("Pad", 19)
        .attr("mode", std::string(mode))
        .input(random_tensor({3, 4}))
        .constant(ints({1, 2, 0, 3}))
        .check_grad({0});
    OpCase("Pad", 19)
        .attr("mode", std::string(mode))
        .input(random_tensor({3, 4}))
        .input(ints({2, 1}))
        .skip_input()
        .input(ints({-1}))
        .check_grad({0});
  }
  OpCase("Pad", 13)
      .input(random_tensor({3, 4}))
      .constant(ints({1, -1, 0, 2}))
      .input(random_tensor({}))
      .check_grad();
  OpCase("Pad", 2).attr("pads", Ints{0, 1, 1, 0}).input(random_tensor({2, 3})).check_grad();
}

TEST(OneHot, ValuesAndGradient) {
  OpCase("OneHot", 11)
      .input(ints({1, -1, 7}))
      .input(Tensor::scalar<int64_t>(3))
      .input(floats({0, 5}))
      .expect(floats({0, 5, 0, 0, 0, 5, 0, 0, 0}, {3, 3}));
  OpCase("OneHot", 11)
      .attr("axis", int64_t(0))
      .input(ints({1, 0}))
      .constant(Tensor::scalar<int64_t>(2))
      .input(floats({1, 2}))
      .check_grad();
}

TEST(TopK, ValuesAndGradient) {
  Tensor x = floats({3, 1, 3, 2}, {1, 4});
  OpCase("TopK", 11).input(x).input(ints({2})).outputs(2).expect(ints({0, 2}, {1, 2}), 1);
  OpCase("TopK", 11)
      .attr("largest", int64_t(0))
      .input(x)
      .input(ints({3}))
      .outputs(2)
      .expect(floats({1, 2, 3}, {1, 3}), 0);
  OpCase("TopK", 1)
      .attr("k", int64_t(1))
      .attr("axis", int64_t(0))
      .input(random_tensor({3, 4}))
      .outputs(2)
      .check_grad();
  OpCase("TopK", 11).input(random_tensor({3, 4})).constant(ints({2})).outputs(2).check_grad();
  EXPECT_THROW(OpCase("TopK", 11).input(x).input(ints({5})).outputs(2).run(), Error);
}

TEST(ArgMax, Values) {
  Tensor x = floats({2, 2, 1, 3, 3, 0}, {2, 3});
  OpCase("ArgMax", 13).attr("axis", int64_t(1)).input(x).expect(ints({0, 0}, {2, 1}));
  OpCase("ArgMax", 13)
      .attr("axis", int64_t(1))
      .attr("select_last_index", int64_t(1))
      .attr("keepdims", int64_t(0))
      .input(x)
      .expect(ints({1, 1}));
  OpCase("ArgMin", 1).input(x).expect(ints({0, 0, 1}, {1, 3}));
}

TEST(Select, Values) {
  OpCase("NonZero", 13)
      .input(floats({1, 0, 2, 3}, {2, 2}))
      .expect(ints({0, 1, 1, 0, 0, 1}, {2, 3}));
  OpCase("Compress", 11)
      .attr("axis", int64_t(1))
      .input(floats({1, 2, 3, 4}, {2, 2}))
      .input(bools({0, 1}))
      .expect(floats({2, 4}, {2, 1}));
  OpCase("Compress", 11)
      .input(floats({1, 2, 3, 4}, {2, 2}))
      .input(bools({0, 1, 1}))
      .expect(floats({2, 3}));
  OpCase("Compress", 11)
      .attr("axis", int64_t(0))
      .input(random_tensor({3, 2}))
      .constant(bools({1, 0, 1}))
      .check_grad({0});
  OpCase u("Unique", 11);
  u.attr("sorted", int64_t(0)).input(floats({2, 1, 1, 3, 4, 3})).outputs(4);
  u.expect(floats({2, 1, 3, 4}), 0)
      .expect(ints({0, 1, 3, 4}), 1)
      .expect(ints({0, 1, 1, 2, 3, 2}), 2)
      .expect(ints({1, 2, 2, 1}), 3);
  OpCase("Unique", 11)
      .attr("axis", int64_t(0))
      .input(floats({1, 0, 1, 0, 0, 9}, {3, 2}))
      .outputs(1)
      .expect(floats({0, 9, 1, 0}, {2, 2}));
}

TEST(Rearrange, ValuesAndGradients) {
  for (const char* mode : {"DCR", "CRD"})
    OpCase("DepthToSpace", 13)
        .attr("blocksize", int64_t(2))
        .attr("mode", std::string(mode))
        .input(random_tensor({1, 8, 2, 3}))
        .check_grad();
  OpCase("SpaceToDepth", 13)
      .attr("blocksize", int64_t(2))
      .input(random_tensor({1, 2, 4, 2}))
      .check_grad();
  OpCase("ReverseSequence", 10)
      .input(floats({0, 1, 2, 3}, {2, 2}))
      .input(ints({1, 2}))
      .expect(floats({0, 3, 2, 1}, {2, 2}));
  OpCase("ReverseSequence", 10)
      .attr("batch_axis", int64_t(0))
      .attr("time_axis", int64_t(1))
      .input(random_tensor({2, 3, 2}))
      .input(ints({2, 3}))
      .check_grad();
  EXPECT_THROW(OpCase("ReverseSequence", 10).input(random_tensor({2, 2})).input(ints({1, 3})).run(),
               Error);
  OpCase("CenterCropPad", 18)
      .input(floats({1, 2, 3}))
      .input(ints({6}))
      .expect(floats({0, 1, 2, 3, 0, 0}));
  OpCase("CenterCropPad", 18).input(random_tensor({5, 2})).constant(ints({2, 5})).check_grad();
  OpCase("CenterCropPad", 18)
      .attr("axes", Ints{1})
      .input(random_tensor({2, 4}))
      .constant(ints({1}))
      .check_grad();
}

TEST(Trilu, ValuesAndGradient) {
  Tensor x = floats({1, 2, 3, 4}, {2, 2});
  OpCase("Trilu", 14).input(x).expect(floats({1, 2, 0, 4}, {2, 2}));
  OpCase("Trilu", 14)
      .attr("upper", int64_t(0))
      .input(x)
      .input(Tensor::scalar<int64_t>(-1))
      .expect(floats({0, 0, 3, 0}, {2, 2}));
  OpCase("Trilu", 14)
      .input(random_tensor({2, 3, 4}))
      .constant(Tensor::scalar<int64_t>(1))
      .check_grad({0});
}

TEST(TensorScatter, ValuesAndGradient) {
  OpCase("TensorScatter", 24)
      .attr("axis", int64_t(1))
      .attr("mode", std::string("circular"))
      .input(floats({1, 2, 3, 4, 5, 6}, {2, 3}))
      .input(floats({7, 8, 9, 10}, {2, 2}))
      .input(ints({2, 1}))
      .expect(floats({8, 2, 7, 4, 9, 10}, {2, 3}));
  OpCase("TensorScatter", 24)
      .input(random_tensor({2, 3, 2}))
      .input(random_tensor({2, 1, 2}, -1, 1, 3))
      .input(ints({2, 0}))
      .check_grad();
  EXPECT_THROW(OpCase("TensorScatter", 24)
                   .input(random_tensor({2, 3, 2}))
                   .input(random_tensor({2, 2, 2}))
                   .input(ints({2, 0}))
                   .run(),
               Error);
}

TEST(Logic, Values) {
  OpCase("Xor", 7).input(bools({0, 1, 1})).input(bools({1, 1, 0})).expect(bools({1, 0, 1}));
  OpCase("Not", 1).input(bools({0, 1})).expect(bools({1, 0}));
  OpCase("BitShift", 28)
      .attr("direction", std::string("RIGHT"))
      .input(Tensor::vector<int8_t>({-8, 4, -1}))
      .input(Tensor::vector<int8_t>({1, 9, -1}))
      .expect(Tensor::vector<int8_t>({-4, 0, -1}));
  OpCase("BitwiseNot", 18)
      .input(Tensor::vector<uint8_t>({0, 5}))
      .expect(Tensor::vector<uint8_t>({255, 250}));
  OpCase("IsInf", 20)
      .attr("detect_negative", int64_t(0))
      .input(floats({INFINITY, -INFINITY, 1}))
      .expect(bools({1, 0, 0}));
  OpCase("Mod", 13)
      .input(Tensor::vector<int32_t>({-5, 5, INT32_MIN}))
      .input(Tensor::vector<int32_t>({3, -3, -1}))
      .expect(Tensor::vector<int32_t>({1, -1, 0}));
  OpCase("Mod", 13)
      .attr("fmod", int64_t(1))
      .input(floats({-5.5f, 5.5f}))
      .input(floats({3, -3}))
      .expect(floats({-2.5f, 2.5f}));
  for (int64_t fmod : {0, 1})
    OpCase("Mod", 28)
        .attr("fmod", fmod)
        .input(floats({-5.3f, 5.2f, 1.1f}))
        .input(floats({3, -2, 0.4f}))
        .check_grad();
}

}  // namespace onnxtrain::testing
