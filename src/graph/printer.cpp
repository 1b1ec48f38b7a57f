// Text form of a graph for people and tests.
#include "graph/graph.hpp"

namespace onnxtrain {

namespace {

void print_attr(std::ostringstream& s, const Attr& a) {
  auto list = [&](const auto& v) {
    s << "[";
    for (size_t k = 0; k < v.size(); ++k) s << (k ? "," : "") << v[k];
    s << "]";
  };
  if (auto* i = std::get_if<int64_t>(&a))
    s << *i;
  else if (auto* f = std::get_if<float>(&a))
    s << *f;
  else if (auto* t = std::get_if<std::string>(&a))
    s << '"' << *t << '"';
  else if (auto* is = std::get_if<std::vector<int64_t>>(&a))
    list(*is);
  else if (auto* fs = std::get_if<std::vector<float>>(&a))
    list(*fs);
  else if (auto* ss = std::get_if<std::vector<std::string>>(&a))
    list(*ss);
  else if (auto* x = std::get_if<Tensor>(&a))
    s << dtype_name(x->dtype()) << to_string(x->shape());
  else if (std::get_if<GraphPtr>(&a))
    s << "graph";
  else
    s << "...";
}

}  // namespace

std::string to_text(const Graph& g) {
  std::ostringstream s;
  auto name = [&](ValueId v) { return v == kNone ? std::string("_") : g.value_name(v); };
  s << g.name << " (";
  for (size_t k = 0; k < g.inputs.size(); ++k)
    s << (k ? ", " : "") << to_string(g.value(g.inputs[k]).type) << " " << name(g.inputs[k]);
  s << ") => (";
  for (size_t k = 0; k < g.outputs.size(); ++k) s << (k ? ", " : "") << name(g.outputs[k]);
  s << ") {\n";
  for (const Node& n : g.nodes) {
    s << "  ";
    for (size_t k = 0; k < n.outputs.size(); ++k) s << (k ? ", " : "") << name(n.outputs[k]);
    s << " = " << (n.domain.empty() ? "" : n.domain + ".") << n.op;
    if (!n.attrs.empty()) {
      s << "<";
      bool first = true;
      for (const auto& [key, a] : n.attrs) {
        s << (first ? "" : ", ") << key << "=";
        print_attr(s, a);
        first = false;
      }
      s << ">";
    }
    s << "(";
    for (size_t k = 0; k < n.inputs.size(); ++k) s << (k ? ", " : "") << name(n.inputs[k]);
    s << ")\n";
    for (const auto& [key, a] : n.attrs)
      if (auto* sub = std::get_if<GraphPtr>(&a)) {
        std::istringstream lines(to_text(**sub));
        for (std::string line; std::getline(lines, line);) s << "    " << line << "\n";
      }
  }
  s << "}\n";
  return s.str();
}

}  // namespace onnxtrain
