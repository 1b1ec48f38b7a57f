// Bodies of com.microsoft operators, written as text for the inputs and attributes of a node.
#include "onnx/functions/contrib.hpp"

#include <onnx/defs/parser.h>

#include <cstdio>
#include <map>

#include "core/error.hpp"
#include "onnx/functions/contrib_attention.hpp"
#include "onnx/functions/contrib_quantized.hpp"

namespace onnxtrain {

const onnx::AttributeProto* ContribNode::attr(std::string_view name) const {
  for (const auto& [key, a] : attrs)
    if (key == name) return a;
  return nullptr;
}

double ContribNode::number(std::string_view name, double otherwise) const {
  const onnx::AttributeProto* a = attr(name);
  if (!a) return otherwise;
  return a->type() == onnx::AttributeProto::INT ? double(a->i()) : double(a->f());
}

namespace contrib {

std::string text_of(double v) {
  char s[40];
  std::snprintf(s, sizeof(s), "%.9g", v);
  std::string t = s;
  return t.find_first_of(".en") == std::string::npos ? t + ".0" : t;
}

std::string constant(const std::string& name, double v, const std::string& like) {
  return cat("  ", name, "_ = Constant <value_float = ", text_of(v), "> ()\n  ", name,
             " = CastLike (", name, "_, ", like, ")\n");
}

std::string ints(const std::string& name, const std::string& list) {
  return cat("  ", name, " = Constant <value_ints = [", list, "]> ()\n");
}

// "<name: type = @name, ...>" of those attributes that the node has.
std::string passed(const ContribNode& n, const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names)
    if (const onnx::AttributeProto* a = n.attr(name)) {
      const auto t = a->type();
      using P = onnx::AttributeProto;
      const char* type = t == P::INT      ? "int"
                         : t == P::INTS   ? "ints"
                         : t == P::FLOAT  ? "float"
                         : t == P::STRING ? "string"
                                          : "floats";
      list += cat(list.empty() ? "" : ", ", name, ": ", type, " = @", name);
    }
  return list.empty() ? "" : cat("<", list, "> ");
}

}  // namespace contrib

namespace {

using contrib::Body;
using contrib::constant;
using contrib::ints;
using contrib::passed;
using contrib::text_of;

// y = activation(x); false: not one of these.
bool activation(const ContribNode& n, const std::vector<double>& p, Body& b) {
  const onnx::AttributeProto* a = n.attr("activation");
  const std::string name = a ? a->s() : "";
  auto at = [&](size_t k, double otherwise) { return k < p.size() ? p[k] : otherwise; };
  if (name.empty())
    b.text += "  Y = Identity (z)\n";
  else if (name == "Relu" || name == "Tanh" || name == "Sigmoid")
    b.text += cat("  Y = ", name, " (z)\n");
  else if (name == "LeakyRelu")
    b.text += cat("  Y = LeakyRelu <alpha = ", text_of(at(0, 0.01)), "> (z)\n");
  else if (name == "HardSigmoid")
    b.text += cat("  Y = HardSigmoid <alpha = ", text_of(at(0, 0.2)),
                  ", beta = ", text_of(at(1, 0.5)), "> (z)\n");
  else if (name == "Clip" && p.size() == 2)
    b.text +=
        constant("low", p[0], "z") + constant("high", p[1], "z") + "  Y = Clip (z, low, high)\n";
  else
    b.why = cat("its activation '", name, "' is not known");
  return b.why.empty();
}

std::vector<double> params(const ContribNode& n) {
  std::vector<double> p;
  if (const onnx::AttributeProto* a = n.attr("activation_params"))
    p.assign(a->floats().begin(), a->floats().end());
  return p;
}

void fused_conv(const ContribNode& n, Body& b) {
  b.inputs = "X, W, B, Z", b.outputs = "Y";
  b.text = cat("  c = Conv ",
               passed(n, {"auto_pad", "dilations", "group", "kernel_shape", "pads", "strides"}),
               n.has(2) ? "(X, W, B)\n" : "(X, W)\n");
  b.text += n.has(3) ? "  z = Add (c, Z)\n" : "  z = Identity (c)\n";
  activation(n, params(n), b);
}

void fused_gemm(const ContribNode& n, Body& b) {
  b.inputs = "A, B, C", b.outputs = "Y";
  b.text = cat("  z = Gemm ", passed(n, {"alpha", "beta", "transA", "transB"}),
               n.has(2) ? "(A, B, C)\n" : "(A, B)\n");
  std::vector<double> p;
  for (const char* name : {"activation_alpha", "activation_beta"})
    if (n.attr(name)) p.push_back(n.number(name, 0));
  activation(n, p, b);
}

// Exchanges the last two dimensions.
std::string turned(const ContribNode& n, size_t input, const char* from, const char* to, Body& b) {
  const int rank = n.rank(input);
  if (rank == 1) return cat("  ", to, " = Identity (", from, ")\n");
  if (rank < 0) b.why = "it transposes an operand whose rank the file does not say";
  std::string perm;
  for (int k = 0; k < rank; ++k)
    perm += cat(k ? ", " : "", k < rank - 2 ? k : k == rank - 2 ? rank - 1 : rank - 2);
  return cat("  ", to, " = Transpose <perm = [", perm, "]> (", from, ")\n");
}

void fused_matmul(const ContribNode& n, Body& b) {
  b.inputs = "A, B", b.outputs = "Y";
  if (n.number("transBatchA", 0) != 0 || n.number("transBatchB", 0) != 0) {
    b.why = "transBatchA and transBatchB are not known";
    return;
  }
  const bool ta = n.number("transA", 0) != 0, tb = n.number("transB", 0) != 0;
  b.text = ta ? turned(n, 0, "A", "a", b) : "  a = Identity (A)\n";
  b.text += tb ? turned(n, 1, "B", "b", b) : "  b = Identity (B)\n";
  b.text += cat("  m = MatMul (a, b)\n", constant("alpha", n.number("alpha", 1), "A"),
                "  Y = Mul (m, alpha)\n");
}

std::string gelu(const std::string& x) {
  return constant("half", 0.5, x) + constant("one", 1, x) +
         constant("root", 0.70710678118654752440, x) +
         cat("  s = Mul (", x, ", root)\n  e = Erf (s)\n  e1 = Add (e, one)\n  h = Mul (", x,
             ", half)\n  Y = Mul (h, e1)\n");
}

void gelu_body(const ContribNode&, Body& b) { b.inputs = "X", b.outputs = "Y", b.text = gelu("X"); }

void bias_gelu(const ContribNode&, Body& b) {
  b.inputs = "A, B", b.outputs = "Y", b.text = "  x = Add (A, B)\n" + gelu("x");
}

void fast_gelu(const ContribNode& n, Body& b) {
  b.inputs = "X, B", b.outputs = "Y";
  b.text = n.has(1) ? "  x = Add (X, B)\n" : "  x = Identity (X)\n";
  b.text += constant("half", 0.5, "x") + constant("one", 1, "x") + constant("c", 0.044715, "x") +
            constant("k", 0.7978845608028654, "x") +
            "  x2 = Mul (x, x)\n  x3 = Mul (x2, x)\n  cx = Mul (c, x3)\n  sum = Add (x, cx)\n"
            "  arg = Mul (k, sum)\n  t = Tanh (arg)\n  t1 = Add (t, one)\n  h = Mul (x, half)\n"
            "  Y = Mul (h, t1)\n";
}

void quick_gelu(const ContribNode& n, Body& b) {
  b.inputs = "X", b.outputs = "Y";
  b.text = constant("alpha", n.number("alpha", 1.702f), "X") +
           "  a = Mul (X, alpha)\n  s = Sigmoid (a)\n  Y = Mul (X, s)\n";
}

std::string layer_norm(const ContribNode& n, const std::string& x, const std::string& beta) {
  return cat("  Y, mean, inverse = LayerNormalization <axis = -1, epsilon = ",
             text_of(n.number("epsilon", 1e-12)), "> (", x, ", gamma", beta, ")\n");
}

// Divides by the root of the mean square; no mean is subtracted.
std::string rms_norm(double epsilon, const std::string& x, const std::string& scale) {
  return ints("last", "-1") + constant("eps", epsilon, x) +
         cat("  square = Mul (", x, ", ", x, ")\n",
             "  ms = ReduceMean <axes = [-1], keepdims = 1> (square)\n",
             "  mse = Add (ms, eps)\n  root = Sqrt (mse)\n  inverse = Reciprocal (root)\n",
             "  normal = Mul (", x, ", inverse)\n  Y = Mul (normal, ", scale, ")\n");
}

std::string skip_sum(const ContribNode& n, size_t bias) {
  std::string t = "  plain = Add (input, skip)\n";
  return t + (n.has(bias) ? "  sum = Add (plain, bias)\n" : "  sum = Identity (plain)\n");
}

void skip_layer_norm(const ContribNode& n, Body& b) {
  b.inputs = "input, skip, gamma, beta, bias", b.outputs = "Y, mean, inverse, sum";
  b.text = skip_sum(n, 4) + layer_norm(n, "sum", n.has(3) ? ", beta" : "");
}

void skip_rms_norm(const ContribNode& n, Body& b) {
  b.inputs = "input, skip, gamma, bias", b.outputs = "Y, mean, inverse, sum";
  if (n.wants(1)) b.why = "its output mean has no meaning";
  b.text = skip_sum(n, 3) + "  mean = Identity (sum)\n" +
           rms_norm(n.number("epsilon", 1e-12), "sum", "gamma");
}

void rms_norm_body(const ContribNode& n, Body& b) {
  b.inputs = "X, scale", b.outputs = "Y, inverse";
  const double axis = n.number("axis", -1);
  if (axis != -1 && axis + 1 != double(n.rank(0))) b.why = "it normalises over several axes";
  b.text = rms_norm(n.number("epsilon", 1e-5f), "X", "scale");
}

void embed_layer_norm(const ContribNode& n, Body& b) {
  b.inputs = "ids, segments, words, positions, segment_table, gamma, beta, mask, position_ids";
  b.outputs = "Y, mask_index, sum";
  b.text = "  word = Gather (words, ids)\n" + ints("zero", "0") + ints("one", "1");
  if (n.has(8))
    b.text += "  position = Gather (positions, position_ids)\n";
  else
    b.text +=
        "  length = Shape <start = 1, end = 2> (ids)\n"
        "  position = Slice (positions, zero, length, zero)\n";
  b.text += "  first = Add (word, position)\n";
  if (n.has(1) && n.has(4))
    b.text += "  kind = Gather (segment_table, segments)\n  sum = Add (first, kind)\n";
  else
    b.text += "  sum = Identity (first)\n";
  b.text += layer_norm(n, "sum", ", beta");
  if (n.has(7))
    b.text +=
        "  one32 = CastLike (one, mask)\n  there = Equal (mask, one32)\n"
        "  counts = Cast <to = 6> (there)\n"
        "  mask_index = ReduceSum <keepdims = 0> (counts, one)\n";
  else
    b.text +=
        "  batch = Shape <start = 0, end = 1> (ids)\n  none = Cast <to = 6> (zero)\n"
        "  mask_index = Expand (none, batch)\n";
}

void dynamic_quantize_matmul(const ContribNode& n, Body& b) {
  b.inputs = "A, B, scale, zero, bias", b.outputs = "Y";
  b.text = cat("  q, s, z = DynamicQuantizeLinear (A)\n  i = MatMulInteger (q, B, z",
               n.has(3) ? ", zero" : "",
               ")\n  f = Cast <to = 1> (i)\n  by = Mul (s, scale)\n  y = Mul (f, by)\n",
               n.has(4) ? "  Y = Add (y, bias)\n" : "  Y = Identity (y)\n");
}

void matmul_integer_to_float(const ContribNode& n, Body& b) {
  b.inputs = "A, B, sa, sb, za, zb, bias", b.outputs = "Y";
  if (n.has(5) && !n.has(4)) b.why = "it has a zero point of B and none of A";
  b.text = cat("  i = MatMulInteger (A, B", n.has(4) ? ", za" : "", n.has(5) ? ", zb" : "",
               ")\n  f = Cast <to = 1> (i)\n  by = Mul (sa, sb)\n  y = Mul (f, by)\n",
               n.has(6) ? "  Y = Add (y, bias)\n" : "  Y = Identity (y)\n");
}

using Makers = std::map<std::string, contrib::Maker>;
const Makers& makers() {
  static const Makers plain = {
      {"FusedConv", fused_conv},
      {"FusedGemm", fused_gemm},
      {"FusedMatMul", fused_matmul},
      {"Gelu", gelu_body},
      {"BiasGelu", bias_gelu},
      {"FastGelu", fast_gelu},
      {"QuickGelu", quick_gelu},
      {"SkipLayerNormalization", skip_layer_norm},
      {"SkipSimplifiedLayerNormalization", skip_rms_norm},
      {"SimplifiedLayerNormalization", rms_norm_body},
      {"EmbedLayerNormalization", embed_layer_norm},
      {"Attention", contrib::attention},
      {"MultiHeadAttention", contrib::multi_head_attention},
      {"DynamicQuantizeMatMul", dynamic_quantize_matmul},
      {"MatMulIntegerToFloat", matmul_integer_to_float},
  };
  static const Makers all = [] {
    Makers m = contrib::quantized_makers();
    m.insert(plain.begin(), plain.end());
    return m;
  }();
  return all;
}

}  // namespace

bool is_contrib(const std::string& domain, const std::string& op) {
  // ONNX Runtime has this one in the standard's domain
  if (domain.empty()) return op == "SimplifiedLayerNormalization";
  return domain == "com.microsoft" && makers().contains(op);
}

std::unique_ptr<onnx::FunctionProto> contrib_body(const ContribNode& n, std::string& why) {
  Body b;
  makers().at(n.op)(n, b);
  why = b.why;
  if (!why.empty()) return nullptr;
  auto f = std::make_unique<onnx::FunctionProto>();
  const std::string text =
      cat("<domain: \"com.microsoft\", opset_import: [\"\" : ", b.opset, "]>\n", n.op, " (",
          b.inputs, ") => (", b.outputs, ") {\n", b.text, "}");
  const auto status = onnx::OnnxParser::Parse(*f, text.c_str());
  if (!status.IsOK()) why = cat("no body: ", status.ErrorMessage());
  OT_ASSERT(status.IsOK());
  return f;
}

}  // namespace onnxtrain
