// Nodes of another runtime: neighbours are one partition, results go on, a missing gradient is
// said.
#include <gtest/gtest.h>

#include "engine/gradients.hpp"
#include "engine/session.hpp"
#include "onnx/onnx.hpp"
#include "op/foreign.hpp"

namespace onnxtrain {
namespace {

// Twice: 2 x, whatever the operator is called.
class Doubling final : public ForeignRunner {
 public:
  const char* name() const override { return "doubling"; }
  std::vector<Tensor> run(const Graph& part, const std::vector<const Tensor*>& inputs) override {
    nodes.push_back(part.nodes.size());
    Tensor t = inputs.at(0)->clone();
    for (size_t n = 0; n < part.nodes.size(); ++n)
      for (int64_t k = 0; k < t.size(); ++k) t.as<float>()[k] *= 2;
    return std::vector<Tensor>(part.outputs.size() + extra, t);
  }
  bool has_gradient(const std::string&, const std::string&) override { return false; }
  std::vector<size_t> nodes;
  size_t extra = 0;
};

struct Runner {
  Runner() { set_foreign_runner(doubling); }
  ~Runner() { set_foreign_runner(nullptr); }
  std::shared_ptr<Doubling> doubling = std::make_shared<Doubling>();
};

const char* kModel = R"(<ir_version: 8, opset_import: ["" : 17, "elsewhere" : 1]>
m (float[N] x) => (float[N] y) {
  a = Neg (x)
  b = elsewhere.Twice (a)
  c = elsewhere.Twice (b)
  y = Neg (c)
})";

TEST(Partition, NeighboursRunTogether) {
  const Runner r;
  Session s(std::make_shared<Model>(parse_model(kModel, all_ops())));
  const auto out = s.run({{"x", Tensor::vector<float>({1, -3})}});
  EXPECT_EQ(std::get<Tensor>(out[0].second).to_doubles(), (std::vector<double>{4, -12}));
  EXPECT_EQ(r.doubling->nodes, (std::vector<size_t>{2}));
}

TEST(Partition, HasNoGradientOfItsOwn) {
  const Op* op = all_ops().find(kOwnDomain, "Partition", 1);
  ASSERT_NE(op, nullptr);
  EXPECT_EQ(op->grad, nullptr);  // nodes are joined after differentiation
}

TEST(Partition, OtherNumbersOfResultsAreSaid) {
  const Runner r;
  r.doubling->extra = 1;
  Session s(std::make_shared<Model>(parse_model(kModel, all_ops())));
  EXPECT_THROW(s.run({{"x", Tensor::vector<float>({1})}}), Error);
}

TEST(Partition, UnknownWithoutARunner) {
  try {
    parse_model(kModel, all_ops());
    FAIL() << "an unknown operator was accepted";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "OT1101");
    EXPECT_NE(e.hint().find("--fallback onnxruntime"), std::string::npos);
  }
}

}  // namespace
}  // namespace onnxtrain
