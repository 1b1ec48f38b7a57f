// Values and gradients of ReduceSum, ReduceMean, ReduceMax, ReduceMin and ReduceProd.
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/reduce_case.hpp"

namespace onnxtrain::testing {

TEST(Reduce, Values) {
  Tensor x = Tensor::vector<float>({1, 2, 3, 4, 5, 6}).reshaped({2, 3});
  OpCase("ReduceSum", 13)
      .input(x)
      .constant(ints({1}))
      .attr("keepdims", int64_t(0))
      .expect(Tensor::vector<float>({6, 15}));
  OpCase("ReduceSum", 13)
      .input(x)
      .input(ints({0}))
      .expect(Tensor::vector<float>({5, 7, 9}).reshaped({1, 3}));
  OpCase("ReduceSum", 11)
      .input(x)
      .attr("axes", std::vector<int64_t>{-1})
      .expect(Tensor::vector<float>({6, 15}).reshaped({2, 1}));
  OpCase("ReduceSum", 13).input(x).attr("noop_with_empty_axes", int64_t(1)).expect(x);
  OpCase("ReduceMean", 18)
      .input(x)
      .attr("keepdims", int64_t(0))
      .expect(Tensor::scalar<float>(3.5f));
  OpCase("ReduceMax", 20)
      .input(Tensor::vector<bool>({true, false}).reshaped({2, 1}))
      .constant(ints({1}))
      .expect(Tensor::vector<bool>({true, false}).reshaped({2, 1}));
}

TEST(Reduce, ExtremesAndProducts) {
  Tensor x = floats({1, -2, 3, 4, 5, -6}, {2, 3});
  auto along = [&](const char* op) {
    return OpCase(op, 18).attr("keepdims", int64_t(0)).input(x).constant(ints({1}));
  };
  along("ReduceMax").expect(floats({3, 5}));
  along("ReduceMin").expect(floats({-2, -6}));
  along("ReduceProd").expect(floats({-6, -120}));
}

TEST(Reduce, EmptySets) {
  float inf = std::numeric_limits<float>::infinity();
  expect_of_nothing("ReduceSum", 0);
  expect_of_nothing("ReduceProd", 1);
  expect_of_nothing("ReduceMax", -inf);
  expect_of_nothing("ReduceMin", inf);
}

TEST(Reduce, BigOnesAreSplit) {
  Tensor x = random_tensor({3, 100003}, 0, 1);
  std::vector<double> v = x.to_doubles();
  double total = 0;
  std::vector<float> rows;
  for (int r = 0; r < 3; ++r) {
    double s = 0;
    for (int i = 0; i < 100003; ++i) s += v[size_t(r) * 100003 + size_t(i)];
    rows.push_back(float(s));
    total += s;
  }
  OpCase("ReduceSum", 13)
      .input(x)
      .attr("keepdims", int64_t(0))
      .expect(Tensor::scalar<float>(float(total)));
  OpCase("ReduceSum", 13)
      .input(x)
      .constant(ints({1}))
      .attr("keepdims", int64_t(0))
      .expect(Tensor::vector<float>(rows));
  Tensor t = x.reshaped({100003, 3});
  std::vector<float> columns(3);
  for (int c = 0; c < 3; ++c) {
    double s = 0;
    for (int i = 0; i < 100003; ++i) s += v[size_t(i) * 3 + size_t(c)];
    columns[size_t(c)] = float(s);
  }
  OpCase("ReduceSum", 13)
      .input(t)
      .constant(ints({0}))
      .attr("keepdims", int64_t(0))
      .expect(Tensor::vector<float>(columns));
}

TEST(Reduce, Gradients) {
  for (const char* op : {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"})
    check_reduce_gradients(op);
  OpCase("ReduceProd", 18)
      .input(Tensor::vector<float>({2, 0, 3, 0, 0, 5, 1, 2, 3}).reshaped({3, 3}))
      .constant(ints({1}))
      .check_grad();
}

}  // namespace onnxtrain::testing
