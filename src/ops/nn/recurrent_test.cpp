// LSTM, GRU, RNN: gradients of every input over directions, layouts, lengths and attributes.
#include <gtest/gtest.h>

#include "tests/support/op_case.hpp"

namespace onnxtrain::testing {

namespace {

struct Options {
  int64_t steps = 3, batch = 2, inputs = 2, hidden = 2;
  const char* direction = "forward";
  int64_t layout = 0;
  bool bias = true, lengths = false, states = true, peepholes = false;
};

OpCase recurrent(const std::string& op, const Options& o) {
  int64_t dirs = std::string(o.direction) == "bidirectional" ? 2 : 1;
  int64_t gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
  OpCase c(op, 14);
  c.attr("hidden_size", o.hidden)
      .attr("direction", std::string(o.direction))
      .attr("layout", o.layout);
  c.input(random_tensor(o.layout ? Shape{o.batch, o.steps, o.inputs}
                                 : Shape{o.steps, o.batch, o.inputs}));
  c.input(random_tensor({dirs, gates * o.hidden, o.inputs}, -1, 1, 2));
  c.input(random_tensor({dirs, gates * o.hidden, o.hidden}, -1, 1, 3));
  if (o.bias)
    c.input(random_tensor({dirs, 2 * gates * o.hidden}, -1, 1, 4));
  else
    c.skip_input();
  if (o.lengths)
    c.constant(Tensor::vector<int32_t>({int32_t(o.steps), 1}));
  else
    c.skip_input();
  Shape state = o.layout ? Shape{o.batch, dirs, o.hidden} : Shape{dirs, o.batch, o.hidden};
  if (o.states)
    c.input(random_tensor(state, -1, 1, 5));
  else
    c.skip_input();
  if (op == "LSTM") {
    if (o.states)
      c.input(random_tensor(state, -1, 1, 6));
    else
      c.skip_input();
    if (o.peepholes) c.input(random_tensor({dirs, 3 * o.hidden}, -1, 1, 7));
  }
  c.outputs(op == "LSTM" ? 3 : 2);
  return c;
}

}  // namespace

class Recurrent : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Cells, Recurrent, ::testing::Values("LSTM", "GRU", "RNN"));

TEST_P(Recurrent, Gradients) {
  recurrent(GetParam(), {}).check_grad();
  recurrent(GetParam(), {.direction = "reverse", .lengths = true}).check_grad();
  recurrent(GetParam(), {.direction = "bidirectional", .layout = 1, .bias = false, .lengths = true})
      .check_grad();
  recurrent(GetParam(), {.direction = "bidirectional", .states = false, .peepholes = true})
      .check_grad();
}

TEST(Recurrent, Attributes) {
  recurrent("LSTM", {.peepholes = true}).attr("input_forget", int64_t(1)).check_grad();
  recurrent("GRU", {.lengths = true}).attr("linear_before_reset", int64_t(1)).check_grad();
  recurrent("LSTM", {})
      .attr("activations", std::vector<std::string>{"HardSigmoid", "ScaledTanh", "Softsign"})
      .attr("activation_alpha", std::vector<float>{0.3f, 0.9f})
      .attr("activation_beta", std::vector<float>{0.4f, 0.7f})
      .check_grad();
  recurrent("GRU", {}).attr("activations", std::vector<std::string>{"Sigmoid", "Elu"}).check_grad();
  recurrent("RNN", {})
      .attr("activations", std::vector<std::string>{"Softplus"})
      .attr("clip", 0.9f)
      .check_grad();
  recurrent("RNN", {}).attr("activations", std::vector<std::string>{"LeakyRelu"}).check_grad();
  recurrent("RNN", {})
      .attr("activations", std::vector<std::string>{"Affine"})
      .attr("activation_alpha", std::vector<float>{0.7f})
      .check_grad();
}

TEST(Recurrent, OnlySomeOutputs) {
  recurrent("LSTM", {}).skip_output(0).check_grad();
  recurrent("GRU", {}).skip_output(1).check_grad();
}

TEST(Recurrent, WrongLengthsAreErrors) {
  OpCase c("RNN", 14);
  c.attr("hidden_size", int64_t(2))
      .input(random_tensor({3, 1, 2}))
      .input(random_tensor({1, 2, 2}))
      .input(random_tensor({1, 2, 2}));
  c.skip_input().input(Tensor::vector<int32_t>({4}));
  EXPECT_THROW(c.run(), Error);
  EXPECT_THROW(OpCase("LSTM", 14)
                   .attr("direction", std::string("sideways"))
                   .input(random_tensor({3, 1, 2}))
                   .input(random_tensor({1, 8, 2}))
                   .input(random_tensor({1, 8, 2}))
                   .run(),
               Error);
}

}  // namespace onnxtrain::testing
