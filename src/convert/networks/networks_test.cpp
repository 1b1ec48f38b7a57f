// Every kind of network, on every kind of row that it takes: the output has the right shape, what
// should train trains, a short training lowers the loss; rows that do not suit are refused.
#include "convert/networks/networks.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "convert/prepare.hpp"
#include "engine/training.hpp"
#include "tests/support/op_case.hpp"

namespace onnxtrain {
namespace {

using testing::random_ints;
using testing::random_tensor;

NetworkSpec spec_of(const std::string& kind, Shape row, int64_t outputs, bool classes,
                    int64_t vocabulary = 0) {
  NetworkSpec s;
  s.kind = kind;
  s.row = std::move(row);
  s.outputs = outputs;
  s.classes = classes;
  s.vocabulary = vocabulary;
  return s;
}

Tensor rows_of(const NetworkSpec& s, int64_t n, uint64_t seed) {
  Shape shape{n};
  shape.insert(shape.end(), s.row.begin(), s.row.end());
  return s.vocabulary > 0 ? random_ints(shape, 0, s.vocabulary, seed)
                          : random_tensor(shape, -1, 1, seed);
}

// The loss of the first and of the last of 20 steps on one batch.
std::pair<double, double> trained(const NetworkSpec& s) {
  const Model m = new_network(s, all_ops());
  Recipe r;
  r.optimizer.lr = 1e-2;
  r.losses.emplace_back();
  r.losses[0].kind = s.classes ? "cross_entropy" : "mse";
  auto ready = std::make_shared<const Model>(prepare(m, r, all_ops()));
  Training t(ready, 1);
  Feeds feeds;
  for (const ValueDef& d : t.slots())
    feeds[d.name] = d.name == "x" ? Value(rows_of(s, 16, 3))
                    : s.classes   ? Value(random_ints({16}, 0, s.outputs, 4))
                                  : Value(random_tensor({16, s.outputs}, -1, 1, 4));
  const double first = t.step(feeds).loss;
  double last = first;
  for (int k = 0; k < 20; ++k) last = t.step(feeds).loss;
  return {first, last};
}

struct Case {
  const char* kind;
  Shape row;
  int64_t vocabulary;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.kind << " " << to_string(c.row); }

class NewNetwork : public ::testing::TestWithParam<Case> {};

TEST_P(NewNetwork, RunsAndLearns) {
  const Case& c = GetParam();
  for (const bool classes : {true, false}) {
    const NetworkSpec s = spec_of(c.kind, c.row, classes ? 3 : 2, classes, c.vocabulary);
    auto m = std::make_shared<const Model>(new_network(s, all_ops()));
    const auto out = Session(m).run({{"x", Value(rows_of(s, 5, 1))}});
    ASSERT_EQ(out.size(), 1u);
    EXPECT_EQ(out[0].first, classes ? "logits" : "prediction");
    EXPECT_EQ(std::get<Tensor>(out[0].second).shape(), (Shape{5, s.outputs}));
    const auto [first, last] = trained(s);
    EXPECT_LT(last, 0.9 * first) << c.kind;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, NewNetwork,
    ::testing::Values(Case{"linear", {6}, 0}, Case{"linear", {2, 4}, 0}, Case{"mlp", {6}, 0},
                      Case{"mlp", {1, 5, 5}, 0}, Case{"mlp", {4}, 11}, Case{"cnn", {1, 8, 8}, 0},
                      Case{"cnn", {3, 2, 9}, 0}, Case{"cnn", {2, 16}, 0},
                      Case{"resnet", {3, 8, 8}, 0}, Case{"resnet", {1, 1, 1}, 0},
                      Case{"transformer", {6}, 11}, Case{"transformer", {6, 3}, 0},
                      Case{"transformer", {6}, 0}, Case{"lstm", {6}, 11}, Case{"lstm", {6, 3}, 0},
                      Case{"gru", {6}, 0}, Case{"gru", {6, 3}, 0}));

TEST(NewNetwork, ScaleOfTheTargetIsNoWeight) {
  NetworkSpec s = spec_of("mlp", {3}, 1, false);
  s.target_mean = {200000};
  s.target_deviation = {50000};
  const Model m = new_network(s, all_ops());
  const std::vector<std::string> names = trainable_parameters(m, Recipe());
  EXPECT_EQ(names.size(), 6u);
  auto shared = std::make_shared<const Model>(m);
  const auto out = Session(shared).run({{"x", Value(random_tensor({40, 3}, -1, 1, 5))}});
  const std::vector<double> y = std::get<Tensor>(out[0].second).to_doubles();
  for (const double v : y) EXPECT_NEAR(v, 200000, 500000);
  EXPECT_GT(*std::max_element(y.begin(), y.end()) - *std::min_element(y.begin(), y.end()), 1000);
}

TEST(NewNetwork, SameSeedSameWeights) {
  NetworkSpec s = spec_of("mlp", {3}, 2, true);
  const auto weights = [&] {
    return new_network(s, all_ops()).initializer("layer1.weight")->to_doubles();
  };
  const std::vector<double> a = weights();
  EXPECT_EQ(a, weights());
  s.seed = 1;
  EXPECT_NE(a, weights());
}

std::string refusal(const NetworkSpec& s) {
  try {
    (void)new_network(s, all_ops());
  } catch (const Error& e) {
    return e.code() + " " + e.message();
  }
  return "";
}

TEST(NewNetwork, RefusesWhatDoesNotSuit) {
  EXPECT_NE(refusal(spec_of("cnn", {6}, 2, true)).find("OT2170 a network of kind 'cnn' needs"),
            std::string::npos);
  EXPECT_NE(refusal(spec_of("lstm", {3, 8, 8}, 2, true)).find("OT2170"), std::string::npos);
  EXPECT_NE(refusal(spec_of("mpl", {3}, 2, true)).find("OT0030"), std::string::npos);
  EXPECT_NE(refusal(spec_of("mlp", {3}, 1, true)).find("OT2171"), std::string::npos);
  NetworkSpec s = spec_of("mlp", {3}, 2, true);
  s.hidden = {0};
  EXPECT_NE(refusal(s).find("OT0031"), std::string::npos);
}

}  // namespace
}  // namespace onnxtrain
