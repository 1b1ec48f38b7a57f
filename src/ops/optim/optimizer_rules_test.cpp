// Our optimizers against PyTorch 2.13 (five steps from the same weights and gradients), and each
// kernel against its function body in standard operators.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/session.hpp"
#include "onnx/onnx.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain {
namespace {

using testing::OpCase;
using Settings = std::map<std::string, double>;

Tensor gradient(int step) {
  Tensor g(DType::kFloat, {5});
  for (int k = 0; k < 5; ++k) g.as<float>()[k] = float(std::sin(1.0 + 3 * k + 2 * step));
  return g;
}
Tensor start() { return Tensor::vector<float>({0.5f, -1.0f, 2.0f, 0.1f, 0.0f}); }
Tensor zeros(float v = 0) { return Tensor::vector<float>({v, v, v, v, v}); }

struct Rule {
  std::string op;
  double rate;
  Settings settings;
  int states;
  bool counts;      // takes T
  float first = 0;  // of the state
};

// One step by the kernel.
std::vector<Tensor> by_kernel(const Rule& r, int step, const std::vector<Tensor>& x) {
  OpCase c(r.op, 1, std::string(kOwnDomain));
  for (const auto& [key, v] : r.settings) c.attr(key, Tensor::scalar<double>(v));
  c.input(Tensor::scalar<float>(float(r.rate)));
  if (r.counts) c.input(Tensor::scalar<int64_t>(step + 1));
  c.input(x[0]).input(gradient(step));
  for (int k = 0; k < r.states; ++k) c.input(x[size_t(k) + 1]);
  return c.outputs(1 + r.states).run();
}

// The same by the body of the function, under a domain that has no kernels.
std::vector<Tensor> by_body(const Rule& r, int step, const std::vector<Tensor>& x) {
  std::string in = cat("float R", r.counts ? ", int64 T" : "", ", float[5] X, float[5] G"),
              out = "float[5] Y0";
  std::string args = cat("R", r.counts ? ", T" : "", ", X, G"), results = "Y0", settings;
  for (int k = 0; k < r.states; ++k) {
    in += cat(", float[5] S", k);
    args += cat(", S", k);
    out += cat(", float[5] Y", k + 1);
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
  Feeds f = {{"R", Tensor::scalar<float>(float(r.rate))}, {"X", x[0]}, {"G", gradient(step)}};
  if (r.counts) f["T"] = Tensor::scalar<int64_t>(step + 1);
  for (int k = 0; k < r.states; ++k) f[cat("S", k)] = x[size_t(k) + 1];
  std::vector<Tensor> y;
  for (auto& [name, v] : s.run(f)) y.push_back(std::get<Tensor>(v));
  return y;
}

void check(const Rule& r, const std::vector<double>& torch) {
  SCOPED_TRACE(r.op);
  std::vector<Tensor> x = {start()};
  for (int k = 0; k < r.states; ++k) x.push_back(zeros(r.first));
  for (int step = 0; step < 5; ++step) {
    std::vector<Tensor> a = by_kernel(r, step, x), b = by_body(r, step, x);
    for (size_t k = 0; k < a.size(); ++k)
      for (int64_t i = 0; i < 5; ++i)
        EXPECT_NEAR(a[k].as<float>()[i], b[k].as<float>()[i],
                    1e-6 * std::max(1.0f, std::abs(a[k].as<float>()[i])));
    x = a;
  }
  for (size_t i = 0; i < torch.size(); ++i)
    EXPECT_NEAR(x[0].as<float>()[i], torch[i], 3e-7 * std::max(1.0, std::abs(torch[i])));
}

TEST(Optimizers, AreTorchsAndTheirBodies) {
  check({"Sgd", 0.1, {{"decay", 0.05}}, 0, false},
        {0.379600137, -0.863707781, 1.83767247, 0.209376022, -0.108638473});
  Settings s = {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"decay", 0.1}};
  check({"Adam", 0.01, s, 2, true},
        {0.475417882, -0.972448826, 1.96834397, 0.123709582, -0.023628084});
  check({"AdamAms", 0.01, s, 3, true},
        {0.475417882, -0.972448826, 1.96834397, 0.123709582, -0.023628084});
  check({"AdamWAms", 0.01, s, 3, true},
        {0.475163311, -0.971634209, 1.96599925, 0.123624273, -0.0236149523});
  check({"AdamW",
         0.01,
         {{"beta1", 0.8}, {"beta2", 0.99}, {"epsilon", 1e-6}, {"decay", 0.1}},
         2,
         true},
        {0.476527065, -0.972904682, 1.96715045, 0.122613586, -0.0227601789});
  check({"RMSprop",
         0.01,
         {{"alpha", 0.99}, {"epsilon", 1e-8}, {"momentum", 0}, {"decay", 0.1}},
         1,
         false},
        {0.373728603, -0.845637918, 1.81176293, 0.259525895, -0.171495497});
  check({"RMSpropCentered",
         0.01,
         {{"alpha", 0.9}, {"epsilon", 1e-8}, {"momentum", 0}, {"decay", 0}},
         2,
         false},
        {0.459853202, -0.953161478, 1.94669068, 0.158543944, -0.0616884902});
  check({"RMSpropMomentum",
         0.01,
         {{"alpha", 0.99}, {"epsilon", 1e-8}, {"momentum", 0.9}, {"decay", 0}},
         2,
         false},
        {0.121661745, -0.570168793, 1.51732957, 0.630323887, -0.566558599});
  check({"RMSpropCenteredMomentum",
         0.01,
         {{"alpha", 0.9}, {"epsilon", 1e-8}, {"momentum", 0.9}, {"decay", 0.05}},
         3,
         false},
        {0.365143687, -0.841242313, 1.81487477, 0.284935236, -0.197341636});
}

TEST(Optimizers, KernelsEqualBodies) {
  Settings adam = {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-7}, {"decay", 0.1}};
  Settings rms = {{"alpha", 0.9}, {"epsilon", 1e-7}, {"momentum", 0.5}, {"decay", 0.1}};
  check({"AdamKeras", 0.01, adam, 2, true}, {});
  check({"AdamKerasAms", 0.01, adam, 3, true}, {});
  check({"Lamb", 0.01, adam, 2, true}, {});
  check({"Lion", 0.01, {{"beta1", 0.9}, {"beta2", 0.99}, {"decay", 0.1}}, 1, false}, {});
  check({"AdagradKeras", 0.01, {{"epsilon", 1e-7}, {"decay", 0.1}}, 1, false, 0.1f}, {});
  check({"RMSpropKeras", 0.01, rms, 1, false}, {});
  check({"RMSpropKerasMomentum", 0.01, rms, 2, false}, {});
  check({"RMSpropKerasCentered", 0.01, rms, 2, false}, {});
  check({"RMSpropKerasCenteredMomentum", 0.01, rms, 3, false}, {});
}

}  // namespace
}  // namespace onnxtrain
