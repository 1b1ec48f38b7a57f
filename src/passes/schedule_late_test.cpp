// Order of nodes for memory: text in, text out.
#include <gtest/gtest.h>

#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

TEST(ScheduleLate, ALargeResultOfASmallOperandWaitsForItsReader) {
  EXPECT_EQ(after_pass(pass_schedule_late, R"(
    g (float[8,96] x) => (float[1,1,1] z) <int64[3] shape = {64, 8, 96}> {
      small = Tanh(x)
      large = Expand(small, shape)
      other = Expand(x, shape)
      sum = ReduceSum(other)
      last = ReduceSum(large)
      z = Mul(last, sum)
    })"),
            "other = Expand(x, shape)\n"
            "sum = ReduceSum(other)\n"
            "small = Tanh(x)\n"
            "large = Expand(small, shape)\n"
            "last = ReduceSum(large)\n"
            "z = Mul(last, sum)\n");
}

TEST(ScheduleLate, ASmallResultOfALargeOperandStays) {
  EXPECT_EQ(after_pass(pass_schedule_late, R"(
    g (float[8,96] x) => (float[1,1,1] z) <int64[3] shape = {64, 8, 96}> {
      large = Expand(x, shape)
      last = ReduceSum(large)
      other = Expand(x, shape)
      sum = ReduceMax(other)
      z = Mul(last, sum)
    })"),
            "large = Expand(x, shape)\n"
            "last = ReduceSum(large)\n"
            "other = Expand(x, shape)\n"
            "sum = ReduceMax(other)\n"
            "z = Mul(last, sum)\n");
}

TEST(ScheduleLate, WhatOnlyUpdatesStateRunsLast) {
  EXPECT_EQ(after_pass(pass_schedule_late, R"(
    g (float[2] x) => (float[2] y) {
      w = Neg(x)
      a = Exp(x)
      y = Sin(a)
    })",
                       {"w"}),
            "a = Exp(x)\ny = Sin(a)\nw = Neg(x)\n");
}

}  // namespace onnxtrain::testing
