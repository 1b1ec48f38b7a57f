// Whole trainings: every kind of loop gives the weights that the trainer gives step by step.
#include "convert/whole/whole.hpp"

#include <gtest/gtest.h>

#include "convert/prepare.hpp"
#include "convert/testing.hpp"
#include "engine/session.hpp"
#include "engine/training.hpp"

namespace onnxtrain {
namespace {

using testing::random_ints;
using testing::random_tensor;
using testing::weights;

constexpr int64_t kRows = 7, kBatch = 3, kEpochs = 2;

Model model() {
  Recipe r;
  r.optimizer.kind = "adam";
  return prepare(parse_model(cat(R"(<ir_version: 8, opset_import: ["" : 17]>
m (float[N,4] x) => (float[N,3] y) <)",
                                 weights("w", {4, 3}, 1), R"(> { y = MatMul (x, w) })"),
                             all_ops()),
                 r, all_ops());
}

Feeds data() {
  Tensor order(DType::kInt64, {kEpochs, kRows});
  for (int64_t k = 0; k < kEpochs * kRows; ++k) order.as<int64_t>()[k] = (5 * k) % kRows;
  return {{"x", random_tensor({kRows, 4}, -1, 1, 3)},
          {"label", random_ints({kRows}, 0, 3, 4)},
          {"order", order}};
}

// The same by the trainer.
std::vector<double> trained(const Model& m) {
  Training t(std::make_shared<Model>(m), 0);
  const Feeds all = data();
  const auto& x = std::get<Tensor>(all.at("x"));
  const auto& label = std::get<Tensor>(all.at("label"));
  const auto& order = std::get<Tensor>(all.at("order"));
  for (int64_t e = 0; e < kEpochs; ++e)
    for (int64_t from = 0; from < kRows; from += kBatch) {
      const int64_t n = std::min(kBatch, kRows - from);
      Tensor bx(DType::kFloat, {n, 4}), by(DType::kInt64, {n});
      for (int64_t i = 0; i < n; ++i) {
        const int64_t row = order.as<int64_t>()[e * kRows + from + i];
        std::copy_n(x.as<float>() + row * 4, 4, bx.as<float>() + i * 4);
        by.as<int64_t>()[i] = label.as<int64_t>()[row];
      }
      t.step(Feeds{{"x", bx}, {"label", by}});
    }
  return t.state().get("w").to_doubles();
}

TEST(Whole, EveryKindOfLoopTrainsLikeTheTrainer) {
  const Model m = model();
  const std::vector<double> want = trained(m);
  for (const char* kind : {"loop", "scan", "unrolled"})
    for (bool fixed : {true, false}) {
      if (!fixed && std::string(kind) != "loop") continue;
      SCOPED_TRACE(cat(kind, fixed ? " fixed" : " open"));
      WholeOptions o;
      o.loop = kind;
      o.epochs = kEpochs;
      o.batch = kBatch;
      o.rows = fixed ? kRows : 0;
      const WholeModel w = make_whole(m, o, all_ops());
      const Model back = load_model_bytes(serialize_model(w.model, all_ops()), "", all_ops());
      Session s(std::make_shared<Model>(back));
      std::map<std::string, Value> got;
      for (auto& [name, v] : s.run(data())) got[name] = v;
      const std::vector<double> have = std::get<Tensor>(got.at("w")).to_doubles();
      for (size_t k = 0; k < want.size(); ++k) EXPECT_NEAR(have[k], want[k], 1e-6);
      EXPECT_EQ(std::get<Tensor>(got.at("losses")).shape(), (Shape{kEpochs, 3}));
    }
}

TEST(Whole, OptionsFromJson) {
  const WholeOptions o = whole_options_from_json(R"({"epochs": 3, "best": true, "opset": 18})");
  EXPECT_EQ(o.epochs, 3);
  EXPECT_TRUE(o.best);
  EXPECT_EQ(o.step.opset, 18);
  EXPECT_THROW(whole_options_from_json(R"({"epoch": 3})"), Error);
  EXPECT_THROW(whole_options_from_json(R"({"epochs": "many"})"), Error);
}

}  // namespace
}  // namespace onnxtrain
