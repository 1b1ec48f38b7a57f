// Specialising a graph to concrete shapes: text in, text out.
#include "infer/specialise.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"
#include "tests/support/op_case.hpp"
#include "tests/support/text_case.hpp"

namespace onnxtrain::testing {

namespace {

// The graph after its inputs got these types.
Graph specialised(std::string_view text, const std::map<std::string, TypeInfo>& types) {
  Graph g = text_model(text)->main.clone();
  for (ValueId v : g.inputs)
    if (auto it = types.find(g.value_name(v)); it != types.end()) g.value(v).type = it->second;
  ThreadPool pool(1);
  specialise(g, all_ops(), pool);
  EXPECT_EQ(g.damage(), "");
  return g;
}

TypeInfo float_of(const Shape& s) { return TypeInfo::tensor(DType::kFloat, s); }

}  // namespace

TEST(Specialise, ShapesBecomeNumbers) {
  Graph g = specialised(R"(
    g (float[N,4] x) => (float[A,B] y) <int64[1] minus = {-1}, int64[1] two = {2}, int64[1] at = {0}> {
      s = Shape(x)
      n = Gather(s, at)
      d = Mul(n, two)
      t = Concat<axis = 0>(d, minus)
      y = Reshape(x, t)
    })",
                        {{"x", float_of({3, 4})}});
  EXPECT_EQ(nodes_text(g), "y = Reshape(x, t)\n");
  EXPECT_EQ(g.value(g.find("t")).constant.to_ints(), (std::vector<int64_t>{6, -1}));
  EXPECT_EQ(g.value(g.outputs[0]).type.concrete_shape(), (Shape{6, 2}));
}

TEST(Specialise, ConstantsAreComputedNow) {
  Graph g = specialised(R"(
    g (float[2] x) => (float[2] y) <float[2] a = {1, 2}, float[2] b = {10, 20}> {
      c = Add(a, b)
      d = Neg(c)
      y = Mul(x, d)
    })",
                        {});
  EXPECT_EQ(nodes_text(g), "y = Mul(x, d)\n");
  EXPECT_EQ(g.value(g.find("d")).constant.to_doubles(), (std::vector<double>{-11, -22}));
}

TEST(Specialise, RandomNumbersAndFedDefaultsStay) {
  Graph g = specialised(R"(
    g (float[2] a) => (float[2] y) <float[2] a = {1, 2}> {
      r = RandomUniform<shape = [2]>()
      n = Neg(a)
      y = Add(r, n)
    })",
                        {});
  EXPECT_EQ(g.nodes.size(), 3u) << nodes_text(g);
}

TEST(Specialise, WhatDependsOnDataIsDynamic) {
  Graph g = specialised(R"(
    g (float[N] x) => (int64[1,M] y, float[N] z) {
      y = NonZero(x)
      z = Neg(x)
    })",
                        {{"x", float_of({5})}});
  EXPECT_FALSE(g.value(g.outputs[0]).type.concrete());
  EXPECT_EQ(g.value(g.outputs[1]).type.concrete_shape(), (Shape{5}));
}

TEST(Specialise, AShapeThatDoesNotFitNamesTheNode) {
  try {
    specialised("g (float[N,4] x, float[5,2] w) => (float[N,2] y) { y = MatMul(x, w) }",
                {{"x", float_of({3, 4})}});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("MatMul"), std::string::npos) << e.what();
  }
}

}  // namespace onnxtrain::testing
