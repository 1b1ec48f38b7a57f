// Values of an output by the operators that make it.
#include "convert/analysis/output_range.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace onnxtrain {

namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr int kDeep = 16;  // nodes that are looked at on a path

template <size_t N>
bool one_of(const Node& n, const std::array<std::string_view, N>& ops) {
  return std::any_of(ops.begin(), ops.end(), [&](std::string_view op) { return n.is(op); });
}

constexpr std::array<std::string_view, 12> kViews = {"Identity",  "Reshape",   "Flatten", "Squeeze",
                                                     "Unsqueeze", "Transpose", "Cast",    "Dropout",
                                                     "Gather",    "Slice",     "Expand",  "Tile"};
constexpr std::array<std::string_view, 7> kSums = {"Gemm",
                                                   "MatMul",
                                                   "Conv",
                                                   "ConvTranspose",
                                                   "BatchNormalization",
                                                   "LayerNormalization",
                                                   "InstanceNormalization"};
constexpr std::array<std::string_view, 4> kProbabilities = {"Sigmoid", "HardSigmoid", "Softmax",
                                                            "Hardmax"};
constexpr std::array<std::string_view, 5> kSigned = {"Tanh", "Softsign", "Sin", "Cos", "Sign"};
constexpr std::array<std::string_view, 10> kPositive = {"Relu",
                                                        "Softplus",
                                                        "Exp",
                                                        "Abs",
                                                        "Sqrt",
                                                        "ReduceL1",
                                                        "ReduceL2",
                                                        "ReduceSumSquare",
                                                        "ThresholdedRelu",
                                                        "Size"};

// The first element of a constant input, or `otherwise`.
double limit(const Graph& g, const Node& n, size_t input, const char* attribute, double otherwise) {
  if (n.has(attribute)) return n.f(attribute, float(otherwise));
  if (input >= n.inputs.size() || n.inputs[input] == kNone) return otherwise;
  const Tensor& t = g.value(n.inputs[input]).constant;
  return t.defined() && t.size() == 1 ? t.to_doubles()[0] : otherwise;
}

bool is_weight(const Graph& g, ValueId v) { return v != kNone && g.value(v).constant.defined(); }

OutputRange value_range(const Graph& g, ValueId v, int depth);

OutputRange of_node(const Graph& g, const Node& n, int depth) {
  OutputRange r;
  if (one_of(n, kViews)) {
    r.raw = is_weight(g, n.inputs[0]);  // rows of a table of weights
    return r.raw ? r : value_range(g, n.inputs[0], depth + 1);
  }
  if (one_of(n, kSums)) {
    r.raw = true;
  } else if (one_of(n, kProbabilities)) {
    r.low = 0, r.high = 1;
  } else if (n.is("LogSoftmax")) {
    r.high = 0;
  } else if (one_of(n, kSigned)) {
    r.low = -1, r.high = 1;
  } else if (one_of(n, kPositive)) {
    r.low = 0;
  } else if (n.is("Clip")) {
    r.low = limit(g, n, 1, "min", -kInf);
    r.high = limit(g, n, 2, "max", kInf);
  } else if (n.is("Concat")) {
    r.low = kInf, r.high = -kInf;
    bool raw = true;
    for (ValueId in : n.inputs) {
      const OutputRange part = value_range(g, in, depth + 1);
      r.low = std::min(r.low, part.low);
      r.high = std::max(r.high, part.high);
      raw &= part.raw;
    }
    r.raw = raw;
  } else if ((n.is("Add") || n.is("Sub") || n.is("Mul") || n.is("Div")) && n.inputs.size() == 2) {
    // a bias or factor of the file on top of a weighted sum
    for (size_t k : {0, 1})
      if (is_weight(g, n.inputs[1 - k])) r.raw |= value_range(g, n.inputs[k], depth + 1).raw;
  }
  return r;
}

OutputRange value_range(const Graph& g, ValueId v, int depth) {
  if (v == kNone || depth > kDeep || g.value(v).producer < 0) return {};
  return of_node(g, g.nodes[size_t(g.value(v).producer)], depth);
}

}  // namespace

OutputRange output_range(const Graph& g, ValueId v) { return value_range(g, v, 0); }

ValueId scores_before(const Graph& g, ValueId v) {
  for (int depth = 0; depth < kDeep && v != kNone && g.value(v).producer >= 0; ++depth) {
    if (value_range(g, v, 0).raw) return v;
    const Node& n = g.nodes[size_t(g.value(v).producer)];
    ValueId next = kNone;
    for (ValueId in : n.inputs)
      if (in != kNone && !is_weight(g, in) && g.value(in).producer >= 0 && next == kNone) next = in;
    v = next;
  }
  return kNone;
}

}  // namespace onnxtrain
