// MultiUpdate gives the bits of one update per tensor.
#include <gtest/gtest.h>

#include <cstring>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {
namespace {

OpCase lion(const std::string& op) {
  OpCase c(op, 1, std::string(kOwnDomain));
  c.attr("beta1", Tensor::scalar<double>(0.9)).attr("beta2", Tensor::scalar<double>(0.99));
  c.attr("decay", Tensor::scalar<double>(0.1)).input(Tensor::scalar<float>(0.01f));
  return c;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.data(), b.data(), a.bytes()) == 0;
}

TEST(MultiUpdate, IsOneUpdatePerTensor) {
  const Shape shapes[] = {{3, 5}, {7}, {1, 300}};
  OpCase all = lion("MultiUpdate");
  all.attr("rule", std::string("Lion")).outputs(6);
  std::vector<Tensor> want;
  for (uint64_t k = 0; k < 3; ++k) {
    const Tensor x = random_tensor(shapes[k], -1, 1, 3 * k + 1),
                 g = random_tensor(shapes[k], -1, 1, 3 * k + 2),
                 m = random_tensor(shapes[k], -1, 1, 3 * k + 3);
    all.input(x).input(g).input(m);
    for (Tensor& t : lion("Lion").input(x).input(g).input(m).outputs(2).run()) want.push_back(t);
  }
  const std::vector<Tensor> got = all.run();
  ASSERT_EQ(got.size(), want.size());
  for (size_t k = 0; k < want.size(); ++k) EXPECT_TRUE(same_bits(got[k], want[k])) << k;
}

TEST(MultiUpdate, WhatDoesNotFitIsAnError) {
  OpCase c = lion("MultiUpdate");
  c.attr("rule", std::string("Lion")).outputs(2);
  c.input(random_tensor({3})).input(random_tensor({3})).input(random_tensor({4}));
  EXPECT_THROW(c.run(), Error);
}

}  // namespace
}  // namespace onnxtrain::testing
