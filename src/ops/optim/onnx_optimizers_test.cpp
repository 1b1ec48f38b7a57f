// One step of each ONNX optimizer, against its definition.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {
OpCase step(const char* op, int64_t t) {
  OpCase o(op, 1, std::string(kTrainingDomain));
  o.input(Tensor::scalar<float>(0.1f)).input(Tensor::scalar<int64_t>(t));
  return o;
}
Tensor one(double v) { return Tensor::vector<float>({float(v)}); }
}  // namespace

TEST(Optimizers, Adagrad) {
  double g = 0.5 * 2 + 3, h = 4 + g * g, r = 0.1 / (1 + 2 * 0.25);
  step("Adagrad", 2)
      .attr("norm_coefficient", 0.5f)
      .attr("decay_factor", 0.25f)
      .attr("epsilon", 1e-5f)
      .outputs(2)
      .input(one(2))
      .input(one(3))
      .input(one(4))
      .expect(one(2 - r * g / (std::sqrt(h) + 1e-5)), 0)
      .expect(one(h), 1);
}

TEST(Optimizers, Momentum) {
  for (int64_t t : {0, 3})
    for (const char* mode : {"standard", "nesterov"}) {
      double g = 0.5 * 2 + 3, b = t > 0 ? 0.7 : 1, v = 0.9 * 4 + b * g;
      double x = mode[0] == 's' ? 2 - 0.1 * v : 2 - 0.1 * (g + 0.9 * v);
      step("Momentum", t)
          .attr("norm_coefficient", 0.5f)
          .attr("alpha", 0.9f)
          .attr("beta", 0.7f)
          .attr("mode", std::string(mode))
          .outputs(2)
          .input(one(2))
          .input(one(3))
          .input(one(4))
          .expect(one(x), 0)
          .expect(one(v), 1);
    }
}

TEST(Optimizers, AdamOnTwoTensors) {
  double a = 0.9, b = 0.999, lr = 0.1 * std::sqrt(1 - std::pow(b, 3)) / (1 - std::pow(a, 3));
  auto next = [&](double x, double g, double v, double h, double* nv, double* nh) {
    *nv = a * v + (1 - a) * g;
    *nh = b * h + (1 - b) * g * g;
    return x - lr * *nv / (std::sqrt(*nh) + 1e-6);
  };
  double v1, h1, v2, h2, x1 = next(1, 2, 3, 4, &v1, &h1), x2 = next(5, 6, 7, 8, &v2, &h2);
  OpCase o = step("Adam", 3).outputs(6);
  o.input(one(1))
      .input(one(5))
      .input(one(2))
      .input(one(6))
      .input(one(3))
      .input(one(7))
      .input(one(4))
      .input(one(8));
  o.expect(one(x1), 0)
      .expect(one(x2), 1)
      .expect(one(v1), 2)
      .expect(one(v2), 3)
      .expect(one(h1), 4)
      .expect(one(h2), 5);
}

}  // namespace onnxtrain::testing
