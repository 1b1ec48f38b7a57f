// Sessions: runs by names, optional inputs, errors that name what was fed.
#include "engine/session.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

namespace {

constexpr const char* kTwoOutputs = R"(
  g (float[N,2] x, float[2] b) => (float[N,2] sum, float[N,2] product) <float[2] b = {10, 20}> {
    sum = Add(x, b)
    product = Mul(x, b)
  })";

Tensor one_row() { return Tensor::vector<float>({1, 2}).reshaped({1, 2}); }

std::string code_of(Session& s, const Feeds& feeds, const std::vector<std::string>& outputs = {}) {
  try {
    s.run(feeds, outputs);
  } catch (const Error& e) {
    return e.code();
  }
  return "";
}

std::vector<double> first_of(const std::vector<NamedValue>& r) {
  return std::get<Tensor>(r[0].second).to_doubles();
}

}  // namespace

TEST(Session, OutputsInTheOrderAskedFor) {
  Session s(text_model(kTwoOutputs));
  std::vector<NamedValue> all = s.run({{"x", one_row()}});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].first, "sum");
  EXPECT_EQ(first_of(all), (std::vector<double>{11, 22}));
  std::vector<NamedValue> one = s.run({{"x", one_row()}}, {"product"});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0].first, "product");
  EXPECT_EQ(first_of(one), (std::vector<double>{10, 40}));
}

TEST(Session, AnInitializerMayBeFed) {
  Session s(text_model(kTwoOutputs));
  Tensor b = Tensor::vector<float>({100, 200});
  EXPECT_EQ(first_of(s.run({{"x", one_row()}, {"b", b}})), (std::vector<double>{101, 202}));
  EXPECT_EQ(first_of(s.run({{"x", one_row()}})), (std::vector<double>{11, 22}));
}

TEST(Session, WrongFeedsAreErrors) {
  Session s(text_model(kTwoOutputs));
  EXPECT_NE(code_of(s, {}), "");
  EXPECT_NE(code_of(s, {{"x", one_row()}, {"y", one_row()}}), "");
  EXPECT_NE(code_of(s, {{"x", random_tensor({1, 3})}}), "");
  EXPECT_NE(code_of(s, {{"x", random_ints({1, 2}, 0, 5)}}), "");
  EXPECT_EQ(code_of(s, {{"x", one_row()}}, {"none"}), "OT1123");
  EXPECT_EQ(code_of(s, {{"x", one_row()}}), "");
}

TEST(Session, ResultsStayWhatTheyWere) {
  Session s(text_model(kTwoOutputs));
  std::vector<NamedValue> a = s.run({{"x", one_row()}});
  s.run({{"x", random_tensor({1, 2})}});
  EXPECT_EQ(first_of(a), (std::vector<double>{11, 22}));
}

TEST(Session, SeedAndStepDecideRandomNumbers) {
  Session s(text_model("g (float[4] x) => (float[4] y) { y = RandomUniformLike(x) }"));
  Feeds f = {{"x", random_tensor({4})}};
  EXPECT_EQ(first_of(s.run(f, {}, 1, 1)), first_of(s.run(f, {}, 1, 1)));
  EXPECT_NE(first_of(s.run(f, {}, 1, 1)), first_of(s.run(f, {}, 1, 2)));
  EXPECT_NE(first_of(s.run(f, {}, 1, 1)), first_of(s.run(f, {}, 2, 1)));
}

}  // namespace onnxtrain::testing
