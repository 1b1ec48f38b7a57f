// Metrics on small numbers that can be counted by hand.
#include "run/metrics/metrics.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace onnxtrain::run {
namespace {

template <class T>
Tensor tensor(DType dtype, Shape shape, const std::vector<T>& values) {
  Tensor t(dtype, std::move(shape));
  std::copy(values.begin(), values.end(), t.as<T>());
  return t;
}

double value_of(const Metrics& m, const std::string& name) {
  for (const auto& [key, value] : m.values())
    if (key == name) return value;
  ADD_FAILURE() << "no metric " << name;
  return -1;
}

TEST(Metrics, ClassesAlongTheLastAxis) {
  // [1 row, 3 positions, 2 classes]: best are 1, 0, 1
  Tensor scores = tensor<float>(DType::kFloat, {1, 3, 2}, {0, 1, 2, 1, 0, 5});
  Tensor labels = tensor<int64_t>(DType::kInt64, {1, 3}, {1, 0, 0});
  Scores s;
  s.class_axis = 2;
  s.log_loss = true;
  Metrics m(TaskKind::kClasses, s);
  m.add(scores, labels, std::log(4.0), 1);
  EXPECT_DOUBLE_EQ(value_of(m, "accuracy"), 2.0 / 3);
  EXPECT_DOUBLE_EQ(value_of(m, "perplexity"), 4.0);
  EXPECT_EQ(m.confusion()[0][1], 1);
}

TEST(Metrics, ClassesAlongAxisOne) {
  // [1 row, 2 classes, 3 places]: best are 1, 0, 1
  Tensor scores = tensor<float>(DType::kFloat, {1, 2, 3}, {0, 2, 0, 1, 1, 5});
  Tensor labels = tensor<int64_t>(DType::kInt64, {1, 3}, {1, 0, 0});
  Metrics m(TaskKind::kClasses);
  m.add(scores, labels, 0.5, 1);
  EXPECT_DOUBLE_EQ(value_of(m, "accuracy"), 2.0 / 3);
  EXPECT_EQ(m.values().size(), 1u);
}

TEST(Metrics, IgnoredLabelsCountNothing) {
  Tensor scores = tensor<float>(DType::kFloat, {3, 2}, {0, 1, 1, 0, 1, 0});
  Tensor labels = tensor<int64_t>(DType::kInt64, {3}, {1, 1, -100});
  Scores s;
  s.ignore_index = 1;
  Metrics some(TaskKind::kClasses, s), all(TaskKind::kClasses);
  some.add(scores, labels, 0, 3);
  EXPECT_TRUE(some.values().empty());
  all.add(scores, labels, 0, 3);
  EXPECT_DOUBLE_EQ(value_of(all, "accuracy"), 0.5);
}

TEST(Metrics, ProbabilitiesAreCutAtOneHalf) {
  Tensor p = tensor<float>(DType::kFloat, {4, 1}, {0.9f, 0.4f, 0.2f, 0.6f});
  Tensor target = tensor<float>(DType::kFloat, {4, 1}, {1, 0, 1, 1});
  Scores s;
  s.probability = true;
  Metrics probabilities(TaskKind::kBinary, s), scores(TaskKind::kBinary);
  probabilities.add(p, target, 0, 4);
  scores.add(p, target, 0, 4);  // all above zero: all are taken for ones
  EXPECT_DOUBLE_EQ(value_of(probabilities, "accuracy"), 0.75);
  EXPECT_DOUBLE_EQ(value_of(scores, "accuracy"), 0.75);
  Tensor negative = tensor<float>(DType::kFloat, {1, 1}, {0.4f});
  Tensor zero = tensor<float>(DType::kFloat, {1, 1}, {0});
  probabilities.add(negative, zero, 0, 1);
  scores.add(negative, zero, 0, 1);
  EXPECT_DOUBLE_EQ(value_of(probabilities, "accuracy"), 0.8);
  EXPECT_DOUBLE_EQ(value_of(scores, "accuracy"), 0.6);
}

TEST(Metrics, LossWithoutTarget) {
  Metrics m(TaskKind::kRegression);
  m.add_loss(2.0, 3);
  m.add_loss(6.0, 1);
  EXPECT_DOUBLE_EQ(m.loss(), 3.0);
  EXPECT_TRUE(m.values().empty());
}

TEST(Metrics, PrecisionRecallF1AndAuc) {
  Metrics m(TaskKind::kClasses);
  // predicted 1, 1, 0, 0; true 1, 0, 0, 1; scores of class 1: 3, 1, -1, -2
  m.add(Tensor::vector(std::vector<float>{0, 3, 0, 1, 1, 0, 2, 0}).reshaped({4, 2}),
        Tensor::vector(std::vector<int64_t>{1, 0, 0, 1}), 0.5, 4);
  const auto classes = m.per_class();
  ASSERT_EQ(classes.size(), 2u);
  EXPECT_DOUBLE_EQ(classes[1].precision, 0.5);
  EXPECT_DOUBLE_EQ(classes[1].recall, 0.5);
  const auto more = m.more();
  ASSERT_EQ(more.size(), 4u);
  EXPECT_EQ(more[2].first, "f1");
  EXPECT_DOUBLE_EQ(more[2].second, 0.5);
  EXPECT_EQ(more[3].first, "auc");
  EXPECT_DOUBLE_EQ(more[3].second, 0.5);  // of four pairs two are in order
}

TEST(Metrics, R2IsOneMinusTheShareThatIsLeft) {
  Metrics m(TaskKind::kRegression);
  m.add(Tensor::vector(std::vector<float>{1, 2, 5}), Tensor::vector(std::vector<float>{1, 2, 3}), 0,
        3);
  ASSERT_EQ(m.more().size(), 1u);
  EXPECT_DOUBLE_EQ(m.more()[0].second, 1 - 4.0 / 2);
}

}  // namespace
}  // namespace onnxtrain::run
