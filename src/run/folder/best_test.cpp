#include "run/folder/best.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace onnxtrain::run {
namespace {

EpochResult epoch(int64_t number, double accuracy, double loss) {
  EpochResult e;
  e.epoch = number;
  e.has_valid = true;
  e.valid_loss = loss;
  e.metrics = {{"accuracy", accuracy}};
  return e;
}

TEST(Best, EqualMetricsAreDecidedByTheLoss) {
  Position at;
  EpochResult first = epoch(1, 0.9, 0.5), same = epoch(2, 0.9, 0.4), worse = epoch(3, 0.9, 0.45),
              lower = epoch(4, 0.8, 0.1), higher = epoch(5, 0.95, 2);
  for (EpochResult* e : {&first, &same, &worse, &lower, &higher}) judge(*e, at);
  EXPECT_EQ(first.best_because, "first");
  EXPECT_EQ(same.best_because, "same accuracy, lower loss");
  EXPECT_FALSE(worse.best);
  EXPECT_FALSE(lower.best);
  EXPECT_EQ(higher.best_because, "higher accuracy");
  EXPECT_EQ(at.best_epoch, 5);
  EXPECT_EQ(at.best_loss, 2);
}

TEST(Best, AnEpochWithoutAFiniteLossIsNotTheBest) {
  Position at;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EpochResult broken = epoch(1, 0.9, nan), sound = epoch(2, 0.5, 2), again = epoch(3, 0.95, nan),
              higher = epoch(4, 0.6, 3);
  for (EpochResult* e : {&broken, &sound, &again, &higher}) judge(*e, at);
  EXPECT_EQ(broken.best_because, "first");
  EXPECT_EQ(sound.best_because, "the first with a finite loss");
  EXPECT_FALSE(again.best);
  EXPECT_EQ(higher.best_because, "higher accuracy");
}

TEST(Best, TheLossDecidesWhereItIsWatched) {
  Position at;
  EpochResult first = epoch(1, 0.9, 0.5), higher = epoch(2, 0.95, 0.6), lower = epoch(3, 0.8, 0.4),
              same = epoch(4, 0.99, 0.4);
  for (EpochResult* e : {&first, &higher, &lower, &same}) {
    e->watches_loss = true;
    judge(*e, at);
  }
  EXPECT_EQ(first.best_because, "first");
  EXPECT_FALSE(higher.best);
  EXPECT_EQ(lower.best_because, "lower valid loss");
  EXPECT_FALSE(same.best);
  EXPECT_EQ(at.watched, "valid_loss");
  EXPECT_EQ(at.best, 0.4);
}

TEST(Best, APositionOfAnOlderVersionKeepsItsEpochOnATie) {
  Position at;
  at.best = 0.9;
  at.best_epoch = 3;
  at.watched = "valid_accuracy";
  EpochResult tie = epoch(4, 0.9, 0.01);
  judge(tie, at);
  EXPECT_FALSE(tie.best);
}

}  // namespace
}  // namespace onnxtrain::run
