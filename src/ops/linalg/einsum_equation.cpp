// Reading the equation of Einsum.
#include "ops/linalg/einsum_equation.hpp"

#include <algorithm>
#include <map>

#include "core/error.hpp"

namespace onnxtrain::ops {

namespace {

[[noreturn]] void bad(const std::string& equation, const std::string& why) {
  model_error("OT1136", cat("equation '", equation, "' of Einsum: ", why));
}

// one term: letters and at most one "..."
void check_term(const std::string& equation, const std::string& term) {
  size_t dots = term.find("...");
  std::string letters = term;
  if (dots != std::string::npos) letters.erase(dots, 3);
  for (char c : letters)
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')))
      bad(equation, cat("'", c, "' in the term '", term, "' is not a letter"));
}

// numpy's rule: the dots first, then labels that occur once, in alphabetical order
std::string implicit_output(const std::vector<std::string>& inputs) {
  std::map<char, int> count;
  bool dots = false;
  for (const std::string& t : inputs)
    for (char c : t) {
      dots |= c == '.';
      if (c != '.') ++count[c];
    }
  std::string out = dots ? "..." : "";
  for (auto [c, n] : count)
    if (n == 1) out += c;
  return out;
}

}  // namespace

EinsumTerms::EinsumTerms(const std::string& equation, size_t operands) {
  std::string s;
  for (char c : equation)
    if (c != ' ') s += c;
  size_t arrow = s.find("->");
  std::string left = s.substr(0, arrow);
  size_t from = 0;
  while (true) {
    size_t comma = left.find(',', from);
    inputs.push_back(left.substr(from, comma == std::string::npos ? comma : comma - from));
    if (comma == std::string::npos) break;
    from = comma + 1;
  }
  if (inputs.size() != operands)
    bad(equation, cat("it names ", inputs.size(), " operands, the node has ", operands));
  for (const std::string& t : inputs) check_term(equation, t);
  output = arrow == std::string::npos ? implicit_output(inputs) : s.substr(arrow + 2);
  check_term(equation, output);
  for (size_t i = 0; i < output.size(); ++i) {
    if (output[i] == '.') continue;
    if (output.find(output[i], i + 1) != std::string::npos)
      bad(equation, cat("'", output[i], "' is twice in the output"));
    bool known = false;
    for (const std::string& t : inputs) known |= t.find(output[i]) != std::string::npos;
    if (!known) bad(equation, cat("'", output[i], "' is in the output and in no operand"));
  }
}

std::string EinsumTerms::equation() const {
  std::string s;
  for (size_t k = 0; k < inputs.size(); ++k) s += (k ? "," : "") + inputs[k];
  return s + "->" + output;
}

EinsumPlan::EinsumPlan(const EinsumTerms& t, const std::vector<Shape>& shapes) {
  // the dots stand for as many dimensions as the widest operand has behind them, from the right
  size_t wide = 0;
  std::vector<size_t> own(shapes.size(), 0);
  auto letters = [](const std::string& term) {
    return term.size() - (term.find("...") != std::string::npos ? 3 : 0);
  };
  for (size_t k = 0; k < shapes.size(); ++k) {
    size_t n = letters(t.inputs[k]);
    bool dots = n != t.inputs[k].size();
    if (dots ? shapes[k].size() < n : shapes[k].size() != n)
      bad(t.equation(), cat("the term '", t.inputs[k], "' does not fit an operand of shape ",
                            to_string(shapes[k])));
    own[k] = dots ? shapes[k].size() - n : 0;
    wide = std::max(wide, own[k]);
  }
  std::map<int, int> number;  // letter, or 256 + position of a dots dimension -> label
  auto expand = [&](const std::string& term, size_t dots) {
    std::vector<int> keys;
    for (size_t i = 0; i < term.size(); ++i) {
      if (term[i] != '.') {
        keys.push_back(term[i]);
        continue;
      }
      for (size_t d = wide - dots; d < wide; ++d) keys.push_back(int(256 + d));
      i += 2;
    }
    std::vector<int> labels;
    for (int key : keys) labels.push_back(number.emplace(key, int(number.size())).first->second);
    return labels;
  };
  output = expand(t.output, wide);
  kept = output.size();
  bool out_dots = t.output.find('.') != std::string::npos;
  if (wide > 0 && !out_dots) bad(t.equation(), "the operands have dots, the output has none");
  for (size_t k = 0; k < shapes.size(); ++k) inputs.push_back(expand(t.inputs[k], own[k]));
  dims.assign(number.size(), 1);
  for (size_t k = 0; k < shapes.size(); ++k)
    for (size_t d = 0; d < shapes[k].size(); ++d) {
      int64_t& dim = dims[size_t(inputs[k][d])];
      int64_t n = shapes[k][d];
      if (dim == 1)
        dim = n;
      else if (n != 1 && n != dim)
        bad(t.equation(), cat("a label has the sizes ", dim, " and ", n));
    }
  num_elements(dims);
  for (int label : output) out_shape.push_back(dims[size_t(label)]);
  for (size_t k = 0; k < shapes.size(); ++k) {
    Shape full = strides_of(shapes[k]), s(dims.size(), 0);
    for (size_t d = 0; d < shapes[k].size(); ++d)
      if (shapes[k][d] != 1) s[size_t(inputs[k][d])] += full[d];
    strides.push_back(s);
  }
}

}  // namespace onnxtrain::ops
