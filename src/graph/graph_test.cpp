// Graphs: editing, order, the text form, and what the verifier finds.
#include "graph/graph.hpp"

#include <gtest/gtest.h>

#include "core/error.hpp"

namespace onnxtrain::testing {

namespace {

Node call_of(const char* op, std::vector<ValueId> in) {
  Node n;
  n.op = op;
  n.name = std::string(op) + "_node";
  n.version = 21;
  n.inputs = std::move(in);
  return n;
}

// y = Neg(Exp(x)), and a constant.
struct Small {
  Graph g;
  ValueId x, c, e, y;
  Small() {
    g.name = "small";
    x = g.add_value("x", TypeInfo::tensor(DType::kFloat, {2}));
    g.inputs = {x};
    c = g.add_constant(Tensor::scalar<float>(1), "c");
    e = g.add_node(call_of("Exp", {x}), 1, "e")[0];
    y = g.add_node(call_of("Neg", {e}), 1, "y")[0];
    g.outputs = {y};
  }
};

// The verifier's words after this change.
template <class F>
std::string damaged(F change) {
  Small s;
  EXPECT_EQ(s.g.damage(), "");
  change(s);
  return s.g.damage();
}

}  // namespace

TEST(GraphVerifier, FindsEveryKindOfDamage) {
  EXPECT_EQ(damaged([](Small& s) { s.g.nodes[1].inputs[0] = 99; }),
            "node 'Neg_node' (Neg) reads a value out of range");
  EXPECT_EQ(damaged([](Small& s) { s.g.nodes[1].inputs[0] = -7; }),
            "node 'Neg_node' (Neg) reads a value out of range");
  EXPECT_EQ(damaged([](Small& s) {
              std::swap(s.g.nodes[0], s.g.nodes[1]);
              s.g.renumber();
            }),
            "node 'Neg_node' (Neg) reads 'e_1' too early");
  EXPECT_EQ(damaged([](Small& s) { s.g.value(s.e).producer = 1; }),
            "node 'Exp_node' (Exp) has an output with another producer");
  EXPECT_EQ(damaged([](Small& s) { s.g.nodes[1].outputs[0] = 99; }),
            "node 'Neg_node' (Neg) has an output with another producer");
  EXPECT_EQ(damaged([](Small& s) {
              s.g.nodes[1].outputs = {s.y, s.y};
            }),
            "'y_1' is assigned twice");
  EXPECT_EQ(damaged([](Small& s) { s.g.outputs = {99}; }), "an output is undefined");
  EXPECT_EQ(damaged([](Small& s) { s.g.outputs = {kNone}; }), "an output is undefined");
  EXPECT_EQ(damaged([](Small& s) { s.g.inputs.push_back(99); }), "an input is out of range");
  EXPECT_EQ(damaged([](Small& s) {
              s.g.captures.push_back({0, 99});
            }),
            "a capture stands for a value out of range");
  EXPECT_EQ(damaged([](Small& s) { s.g.value(s.c).producer = 0; }),
            "'c' is a constant or state, and is made");
  EXPECT_EQ(damaged([](Small& s) { s.g.value(s.x).producer = 9; }),
            "the producer of 'x' is out of range");
  EXPECT_EQ(damaged([](Small& s) { s.g.value(s.g.add_value("left")).producer = 0; }),
            "'left' has a producer that does not make it");
}

TEST(GraphVerifier, LooksIntoBodies) {
  auto with_body = [](auto change) {
    return damaged([&](Small& s) {
      auto body = std::make_shared<Graph>();
      ValueId in = body->add_value("in");
      body->captures = {{s.x, in}};
      body->outputs = body->add_node(call_of("Sin", {in}), 1, "out");
      change(s, *body);
      s.g.nodes[1].attrs["body"] = body;
    });
  };
  EXPECT_EQ(with_body([](Small&, Graph&) {}), "");
  EXPECT_EQ(with_body([](Small&, Graph& b) { b.nodes[0].inputs[0] = 5; }),
            "in 'body' of node 'Neg_node' (Neg): node 'Sin_node' (Sin) reads a value out of range");
  EXPECT_EQ(with_body([](Small& s, Graph& b) { b.captures[0].outer = s.y; }),
            "node 'Neg_node' (Neg) reads 'y_1' too early");
}

TEST(GraphVerifier, AbortsWithTheReason) {
  Small s;
  s.g.verify("nothing");
  s.g.outputs = {99};
  EXPECT_DEATH(s.g.verify("a pass"),
               "graph 'small' is broken after a pass: an output is undefined");
}

TEST(Graph, TextForm) {
  Small s;
  EXPECT_EQ(to_text(s.g), "small (float[2] x) => (y_1) {\n  e_1 = Exp(x)\n  y_1 = Neg(e_1)\n}\n");
}

TEST(Graph, ReplaceUsesReachesNodesOutputsAndCaptures) {
  Small s;
  auto body = std::make_shared<Graph>();
  body->captures = {{s.e, body->add_value("in")}};
  s.g.nodes[1].attrs["body"] = body;
  s.g.outputs.push_back(s.e);
  s.g.replace_uses(s.e, s.x);
  EXPECT_EQ(s.g.nodes[1].inputs[0], s.x);
  EXPECT_EQ(s.g.outputs, (std::vector<ValueId>{s.y, s.x}));
  EXPECT_EQ(body->captures[0].outer, s.x);
}

TEST(Graph, SortIsStableAndNamesACycle) {
  Small s;
  ValueId z = s.g.add_node(call_of("Sin", {s.x}), 1, "z")[0];
  s.g.outputs.push_back(z);
  std::swap(s.g.nodes[0], s.g.nodes[1]);
  s.g.sort();
  std::string order;
  for (const Node& n : s.g.nodes) order += n.op + " ";
  EXPECT_EQ(order, "Exp Neg Sin ");
  EXPECT_EQ(s.g.damage(), "");
  s.g.nodes[0].inputs[0] = s.y;
  try {
    s.g.sort();
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "OT1110");
    EXPECT_NE(std::string(e.what()).find("Exp_node"), std::string::npos);
  }
}

TEST(Graph, CloneCopiesBodiesAndSharesTensors) {
  Small s;
  auto body = std::make_shared<Graph>();
  body->name = "before";
  s.g.nodes[0].attrs["body"] = body;
  Graph copy = s.g.clone();
  body->name = "after";
  EXPECT_EQ(copy.nodes[0].graph("body")->name, "before");
  EXPECT_EQ(copy.value(s.c).constant.data(), s.g.value(s.c).constant.data());
}

TEST(Graph, AppendMapsInputsAndMakesNamesUnique) {
  Small s, t;
  std::vector<ValueId> out = s.g.append(t.g, {s.y}, {});
  s.g.outputs = out;
  EXPECT_EQ(s.g.damage(), "");
  EXPECT_EQ(s.g.nodes.size(), 4u);
  EXPECT_EQ(s.g.nodes[2].inputs[0], s.y);
  EXPECT_NE(s.g.value_name(out[0]), "y_1");
}

TEST(Graph, AttributesOfAnotherKindAreErrors) {
  Node n = call_of("Exp", {});
  n.attrs["axis"] = std::string("one");
  EXPECT_EQ(n.s("axis", ""), "one");
  EXPECT_EQ(n.i("other", 7), 7);
  EXPECT_THROW(n.i("axis", 0), Error);
  EXPECT_THROW(n.ints("axis"), Error);
}

}  // namespace onnxtrain::testing
