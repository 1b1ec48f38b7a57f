// Parses, runs and prints graphs in ONNX's text syntax.
#include "tests/support/text_case.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "engine/gradients.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain::testing {

std::shared_ptr<Model> text_model(std::string_view graph) {
  LoadOptions o;
  o.check = false;  // ONNX's checker does not know our own domain
  return std::make_shared<Model>(
      parse_model(cat("<ir_version: 10, opset_import: [\"\" : 21, \"ai.onnxtrain\" : 1, "
                      "\"ai.onnx.ml\" : 5, \"ai.onnx.preview.training\" : 1]>\n",
                      graph),
                  all_ops(), o));
}

Graph text_graph(std::string_view graph) {
  Graph g = text_model(graph)->main.clone();
  for (const Node& n : g.nodes) infer_node(g, n, all_ops());
  g.verify("parsing");
  return g;
}

std::string nodes_text(const Graph& g) {
  std::istringstream lines(to_text(g));
  std::string out, line;
  std::getline(lines, line);  // the signature
  while (std::getline(lines, line)) {
    if (line == "}") break;
    out += line.substr(std::min(line.find_first_not_of(' '), line.size())) + "\n";
  }
  return out;
}

std::string after_pass(PassFn pass, std::string_view graph, const std::vector<std::string>& keep) {
  Graph g = text_graph(graph);
  std::vector<ValueId> kept;
  for (const std::string& name : keep) {
    kept.push_back(g.find(name));
    EXPECT_NE(kept.back(), kNone) << name;
  }
  pass(g, PassContext{kept, all_ops()});
  g.renumber();
  EXPECT_EQ(g.damage(), "");
  return nodes_text(g);
}

StateProgram::StateProgram(std::string_view graph) {
  Graph g = text_graph(graph);
  const ValueId next = g.find("next");
  g.value(g.find("w")).state = "w";
  state->set("w", Tensor::vector<float>({1, 2}));
  program = std::make_unique<Program>(std::move(g), StateUpdates{{next, "w"}}, state,
                                      std::make_shared<ThreadPool>(1), ProgramOptions{});
}

std::vector<double> text_output(std::string_view graph, const Feeds& feeds, size_t k) {
  return std::get<Tensor>(Session(text_model(graph)).run(feeds)[k].second).to_doubles();
}

void check_text_grad(std::string_view graph, Feeds feeds, const std::vector<std::string>& wrt) {
  std::shared_ptr<Model> m = text_model(graph);
  GradientRequest r;
  r.wrt = wrt;
  std::vector<NamedValue> grads = gradients(*m, feeds, r);
  auto total = [&] {
    double sum = 0;
    for (const auto& [name, v] : Session(m).run(feeds))
      if (const Tensor* t = std::get_if<Tensor>(&v); t && t->dtype() == DType::kDouble)
        for (double d : t->to_doubles()) sum += d;
    return sum;
  };
  for (size_t k = 0; k < wrt.size(); ++k) {
    const Tensor& g = std::get<Tensor>(grads[k].second);
    Tensor x = std::get<Tensor>(feeds[wrt[k]]).clone();
    feeds[wrt[k]] = x;
    ASSERT_EQ(g.shape(), x.shape()) << wrt[k];
    for (int64_t i = 0; i < x.size(); ++i) {
      double keep = x.as<double>()[i], eps = 1e-5;
      x.as<double>()[i] = keep + eps;
      double up = total();
      x.as<double>()[i] = keep - eps;
      double down = total();
      x.as<double>()[i] = keep;
      EXPECT_NEAR(g.as<double>()[i], (up - down) / (2 * eps), 1e-6)
          << "d/d " << wrt[k] << "[" << i << "]";
    }
  }
}

}  // namespace onnxtrain::testing
