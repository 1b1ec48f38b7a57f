// Some steps of an optimizer's operator from the same weights and gradients, for the tests beside
// the optimizers: the kernel against its function body in standard operators, and against the
// numbers that PyTorch 2.13 gives.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "engine/session.hpp"
#include "onnx/onnx.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

using OptimizerNumbers = std::map<std::string, double>;

inline Tensor optimizer_gradient(int step) {
  Tensor g(DType::kFloat, {5});
  for (int k = 0; k < 5; ++k) g.as<float>()[k] = float(std::sin(1.0 + 3 * k + 2 * step));
  return g;
}
inline Tensor optimizer_start() { return Tensor::vector<float>({0.5f, -1.0f, 2.0f, 0.1f, 0.0f}); }
inline Tensor optimizer_state(float v = 0) { return Tensor::vector<float>({v, v, v, v, v}); }

struct OptimizerRule {
  std::string op;
  double lr;
  OptimizerNumbers settings;
  int states;
  bool counts;                     // takes T
  float first = 0;                 // of the state
  std::vector<float> firsts = {};  // of each state, where they differ
  int steps = 5;
  bool rated = true;         // takes R
  bool scalar_last = false;  // the last state is one number
  float momentum = -1;       // B, behind R and T, where it is an input

  std::vector<Tensor> start() const {
    std::vector<Tensor> x = {optimizer_start()};
    for (int k = 0; k < states; ++k) {
      const float v = firsts.empty() ? first : firsts[size_t(k)];
      x.push_back(is_scalar(k) ? Tensor::scalar<float>(v) : optimizer_state(v));
    }
    return x;
  }
  bool is_scalar(int state) const { return scalar_last && state == states - 1; }
};

// One step by the kernel.
inline std::vector<Tensor> step_by_kernel(const OptimizerRule& r, int step,
                                          const std::vector<Tensor>& x) {
  OpCase c(r.op, 1, std::string(kOwnDomain));
  for (const auto& [key, v] : r.settings) c.attr(key, Tensor::scalar<double>(v));
  if (r.rated) c.input(Tensor::scalar<float>(float(r.lr)));
  if (r.counts) c.input(Tensor::scalar<int64_t>(step + 1));
  if (r.momentum >= 0) c.input(Tensor::scalar<float>(r.momentum));
  c.input(x[0]).input(optimizer_gradient(step));
  for (int k = 0; k < r.states; ++k) c.input(x[size_t(k) + 1]);
  return c.outputs(1 + r.states).run();
}

// The same by the body of the function, under a domain that has no kernels.
inline std::vector<Tensor> step_by_body(const OptimizerRule& r, int step,
                                        const std::vector<Tensor>& x) {
  std::string in = cat(r.rated ? "float R, " : "", r.counts ? "int64 T, " : "",
                       r.momentum >= 0 ? "float B, " : "", "float[5] X, float[5] G"),
              out = "float[5] Y0";
  std::string args = cat(r.rated ? "R, " : "", r.counts ? "T, " : "", r.momentum >= 0 ? "B, " : "",
                         "X, G"),
              results = "Y0", settings;
  for (int k = 0; k < r.states; ++k) {
    const char* type = r.is_scalar(k) ? "float" : "float[5]";
    in += cat(", ", type, " S", k);
    args += cat(", S", k);
    out += cat(", ", type, " Y", k + 1);
    results += cat(", Y", k + 1);
  }
  for (const auto& [key, v] : r.settings)
    settings += cat(settings.empty() ? "" : ", ", key, " = double {", v, "}");
  std::string body = all_ops().find(kOwnDomain, r.op, 1)->function;
  body.replace(body.find("ai.onnxtrain"), 12, "body");
  std::string text =
      cat("<ir_version: 8, opset_import: [\"\" : 17, \"body\" : 1]>\ng (", in, ") => (", out,
          ")\n{\n  ", results, " = body.", r.op, " <", settings, "> (", args, ")\n}\n", body);
  Session s(std::make_shared<Model>(parse_model(text, all_ops())));
  Feeds f = {{"X", x[0]}, {"G", optimizer_gradient(step)}};
  if (r.rated) f["R"] = Tensor::scalar<float>(float(r.lr));
  if (r.counts) f["T"] = Tensor::scalar<int64_t>(step + 1);
  if (r.momentum >= 0) f["B"] = Tensor::scalar<float>(r.momentum);
  for (int k = 0; k < r.states; ++k) f[cat("S", k)] = x[size_t(k) + 1];
  std::vector<Tensor> y;
  for (auto& [name, v] : s.run(f)) y.push_back(std::get<Tensor>(v));
  return y;
}

inline void check_optimizer(const OptimizerRule& r, const std::vector<double>& torch) {
  SCOPED_TRACE(r.op);
  std::vector<Tensor> x = r.start();
  for (int step = 0; step < r.steps; ++step) {
    std::vector<Tensor> a = step_by_kernel(r, step, x), b = step_by_body(r, step, x);
    for (size_t k = 0; k < a.size(); ++k)
      for (int64_t i = 0; i < a[k].size(); ++i)
        EXPECT_NEAR(a[k].as<float>()[i], b[k].as<float>()[i],
                    1e-6 * std::max(1.0f, std::abs(a[k].as<float>()[i])));
    x = a;
  }
  for (size_t i = 0; i < torch.size(); ++i)
    EXPECT_NEAR(x[0].as<float>()[i], torch[i], 3e-7 * std::max(1.0, std::abs(torch[i])));
}

}  // namespace onnxtrain::testing
