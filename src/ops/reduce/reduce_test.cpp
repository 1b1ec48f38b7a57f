// Values and gradients of the Reduce* operators.
#include <gtest/gtest.h>

#include <limits>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {
const char* kOps[] = {"ReduceSum",    "ReduceMean",     "ReduceMax", "ReduceMin",
                      "ReduceProd",   "ReduceL1",       "ReduceL2",  "ReduceSumSquare",
                      "ReduceLogSum", "ReduceLogSumExp"};
}  // namespace

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
  OpCase("ReduceSumSquare", 18)
      .input(x)
      .attr("noop_with_empty_axes", int64_t(1))
      .expect(Tensor::vector<float>({1, 4, 9, 16, 25, 36}).reshaped({2, 3}));
  OpCase("ReduceMax", 20)
      .input(Tensor::vector<bool>({true, false}).reshaped({2, 1}))
      .constant(ints({1}))
      .expect(Tensor::vector<bool>({true, false}).reshaped({2, 1}));
}

TEST(Reduce, EmptySets) {
  float inf = std::numeric_limits<float>::infinity();
  struct {
    const char* op;
    float want;
  } cases[] = {{"ReduceSum", 0},       {"ReduceProd", 1},      {"ReduceMax", -inf},
               {"ReduceMin", inf},     {"ReduceL1", 0},        {"ReduceL2", 0},
               {"ReduceSumSquare", 0}, {"ReduceLogSum", -inf}, {"ReduceLogSumExp", -inf}};
  for (const auto& c : cases)
    OpCase(c.op, 20)
        .input(Tensor(DType::kFloat, {2, 0}))
        .constant(ints({1}))
        .expect(Tensor::vector<float>({c.want, c.want}).reshaped({2, 1}));
}

TEST(Reduce, BigOnesAreSplit) {
  Tensor x = random_tensor({3, 100003}, 0, 1);
  std::vector<double> v = x.to_doubles();
  double total = 0;
  std::vector<float> rows;
  for (int r = 0; r < 3; ++r) {
    double s = 0;
    for (int i = 0; i < 100003; ++i) s += v[size_t(r * 100003 + i)];
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
    for (int i = 0; i < 100003; ++i) s += v[size_t(i * 3 + c)];
    columns[size_t(c)] = float(s);
  }
  OpCase("ReduceSum", 13)
      .input(t)
      .constant(ints({0}))
      .attr("keepdims", int64_t(0))
      .expect(Tensor::vector<float>(columns));
}

TEST(Reduce, Gradients) {
  for (const char* op : kOps) {
    for (int64_t keep : {0, 1}) {
      OpCase(op, 18)
          .input(random_tensor({2, 3, 4}, 0.5, 2))
          .constant(ints({1}))
          .attr("keepdims", keep)
          .check_grad();
      OpCase(op, 18)
          .input(random_tensor({2, 3, 4}, 0.5, 2))
          .input(ints({0, -1}))
          .attr("keepdims", keep)
          .check_grad();
      OpCase(op, 18).input(random_tensor({2, 3}, 0.5, 2)).attr("keepdims", keep).check_grad();
      OpCase(op, 11)
          .input(random_tensor({2, 3}, 0.5, 2))
          .attr("axes", std::vector<int64_t>{1})
          .attr("keepdims", keep)
          .check_grad();
    }
    OpCase(op, 18)
        .input(random_tensor({2, 3}, 0.5, 2))
        .attr("noop_with_empty_axes", int64_t(1))
        .check_grad();
    OpCase(op, 18).input(random_tensor({}, 0.5, 2)).check_grad();
    OpCase(op, 18).input(random_tensor({2, 0}, 0.5, 2)).constant(ints({1})).check_grad();
  }
  OpCase("ReduceProd", 18)
      .input(Tensor::vector<float>({2, 0, 3, 0, 0, 5, 1, 2, 3}).reshaped({3, 3}))
      .constant(ints({1}))
      .check_grad();
}

}  // namespace onnxtrain::testing
