// Attention of com.microsoft. Internal to onnx/.
#pragma once
#include "onnx/functions/contrib.hpp"

namespace onnxtrain::contrib {

// A function under construction.
struct Body {
  std::string inputs, outputs, text;
  std::string why;  // not empty: it cannot be written
  int opset = 17;   // of its operators
};

std::string text_of(double v);
// name = the number v in the element type of `like`
std::string constant(const std::string& name, double v, const std::string& like);
std::string ints(const std::string& name, const std::string& list);
// "<name: type = @name, ...>" of those attributes that the node has
std::string passed(const ContribNode& n, const std::vector<std::string>& names);

void attention(const ContribNode& n, Body& b);
void multi_head_attention(const ContribNode& n, Body& b);

}  // namespace onnxtrain::contrib
