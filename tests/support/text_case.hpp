// Tests on graphs in ONNX's text syntax: passes text in, text out; values and gradients of whole
// graphs.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "engine/session.hpp"
#include "passes/passes.hpp"

namespace onnxtrain::testing {

// A model with this main graph, opset 21; operators of our own domain may be used.
std::shared_ptr<Model> text_model(std::string_view graph);
// The main graph of that with the types of all values that can be known.
Graph text_graph(std::string_view graph);

// One line per node, "y = Add(x, x)", subgraphs included.
std::string nodes_text(const Graph& g);

using PassFn = void (*)(Graph&, const PassContext&);
// What the pass makes of the graph; `keep` are names of values that must survive (state updates).
std::string after_pass(PassFn pass, std::string_view graph,
                       const std::vector<std::string>& keep = {});

// A program whose initializer `w` is a state variable that begins as 1, 2 and gets the value named
// `next` after every run.
struct StateProgram {
  explicit StateProgram(std::string_view graph);
  std::shared_ptr<State> state = std::make_shared<State>();
  std::unique_ptr<Program> program;
};

// Output k of the graph as numbers.
std::vector<double> text_output(std::string_view graph, const Feeds& feeds, size_t k = 0);
// d sum(all float64 outputs) / d wrt against central differences.
void check_text_grad(std::string_view graph, Feeds feeds, const std::vector<std::string>& wrt);

}  // namespace onnxtrain::testing
