// Which operators a portable step may hold, and what the named runtimes are known to lack of them.
#include <algorithm>
#include <set>

#include "convert/portable/stages.hpp"

namespace onnxtrain {

namespace {

using Names = std::set<std::string, std::less<>>;

// What every runtime of the table runs, with the same meaning.
const Names& plain_operators() {
  static const Names all = {
      "Abs",        "Add",       "And",       "ArgMax",    "AveragePool",   "BatchNormalization",
      "Cast",       "Ceil",      "Concat",    "Conv",      "ConvTranspose", "Cos",
      "Div",        "Equal",     "Erf",       "Exp",       "Expand",        "Floor",
      "Gather",     "Gemm",      "Identity",  "LeakyRelu", "Less",          "Log",
      "LogSoftmax", "MatMul",    "Max",       "MaxPool",   "Min",           "Mul",
      "Neg",        "Not",       "Or",        "Pad",       "Pow",           "ReduceMax",
      "ReduceMean", "ReduceMin", "ReduceSum", "Relu",      "Reshape",       "Shape",
      "Sigmoid",    "Sign",      "Sin",       "Slice",     "Softmax",       "Sqrt",
      "Squeeze",    "Sub",       "Tanh",      "Tile",      "Transpose",     "Unsqueeze",
      "Where"};
  return all;
}

// Standard operators that most runtimes have; a step that holds one is written with a warning.
const Names& common_operators() {
  static const Names all = {"Acos",
                            "Acosh",
                            "ArgMin",
                            "Asin",
                            "Asinh",
                            "Atan",
                            "Atanh",
                            "BitShift",
                            "Compress",
                            "Cosh",
                            "CumSum",
                            "DepthToSpace",
                            "Det",
                            "Einsum",
                            "GatherElements",
                            "GatherND",
                            "GridSample",
                            "IsInf",
                            "IsNaN",
                            "LRN",
                            "Mod",
                            "NonZero",
                            "Range",
                            "ReduceProd",
                            "Resize",
                            "ReverseSequence",
                            "Round",
                            "ScatterElements",
                            "ScatterND",
                            "Sinh",
                            "Size",
                            "SpaceToDepth",
                            "Tan",
                            "TopK",
                            "Xor",
                            "InstanceNormalization",
                            "LpNormalization",
                            "Hardmax",
                            "MaxUnpool",
                            "ConstantOfShape",
                            "Trilu"};
  return all;
}

const std::vector<std::pair<std::string, Names>>& lacking() {
  // what tests/engines/operators.py found of common_operators(); empty: nothing found, or not tried
  static const std::vector<std::pair<std::string, Names>> table = {
      {"onnxruntime", {}},
      {"openvino", {"Det", "MaxUnpool", "Scan"}},
      {"iree", {"Scan"}},
      {"tinygrad", {}},
      {"tract",
       {"Compress", "ConstantOfShape", "Det", "MaxUnpool", "ReduceProd", "Resize",
        "ReverseSequence", "Size"}},
      {"emx", {}},
      {"opencv", {"Scan"}},
      {"mnn", {"Scan"}},
      {"tvm", {"Scan"}}};
  return table;
}

// Runtimes without one of the two loops of the standard.
const std::vector<std::pair<std::string, Names>>& without_loops() {
  static const std::vector<std::pair<std::string, Names>> table = {
      {"openvino", {"scan"}},       {"iree", {"loop", "scan"}}, {"tinygrad", {"loop", "scan"}},
      {"tract", {"loop"}},          {"emx", {"loop"}},          {"mnn", {"scan"}},
      {"opencv", {"loop", "scan"}}, {"tvm", {"loop", "scan"}}};
  return table;
}

}  // namespace

std::vector<std::string> known_runtimes() {
  std::vector<std::string> names;
  for (const auto& [name, ops] : lacking()) names.push_back(name);
  return names;
}

bool has_loop(const std::string& runtime, const std::string& loop) {
  for (const auto& [name, missing] : without_loops())
    if (name == runtime) return !missing.contains(loop);
  return true;
}

namespace portable {

namespace {

bool is_control(const Node& n) { return n.is("Loop") || n.is("Scan") || n.is("If"); }

void check_node(const Node& n, const StepOptions& o, Names& uncommon) {
  // ONNX Runtime runs all that the standard has
  const bool any = o.runtime == "onnxruntime" && n.domain.empty();
  const bool plain = n.domain.empty() && plain_operators().contains(n.op);
  if (plain) return;
  if (n.is("Scan") && o.recurrent == "scan") {
    for (const Node& inner : n.graph("body")->nodes) check_node(inner, o, uncommon);
    uncommon.insert(n.op);
    return;
  }
  if (n.domain.empty() && (any || common_operators().contains(n.op))) {
    uncommon.insert(n.op);
    return;
  }
  model_error(
      "OT1260",
      cat("the step cannot be portable: ", n.label(), " has no form in plain operators",
          is_control(n) ? " (a branch or a loop)" : ""),
      cat("a step with the operators it has:  --step --form compact",
          n.domain.empty() ? "   ONNX Runtime takes all of the standard's:  --for onnxruntime"
                           : ""));
}

}  // namespace

void check_plain(const StepModel& s, const StepOptions& o, std::vector<std::string>& warnings) {
  Names uncommon;
  for (const Node& n : s.model.main.nodes) check_node(n, o, uncommon);
  if (o.runtime == "onnxruntime") return;
  auto joined = [](const Names& names) {
    std::string all;
    for (const std::string& n : names) all += (all.empty() ? "" : ", ") + n;
    return all;
  };
  if (!uncommon.empty())
    warnings.push_back(
        cat("the step has operators that not every runtime has: ", joined(uncommon)));
  for (const auto& [name, ops] : lacking()) {
    if (name != o.runtime) continue;
    Names missing;
    for (const Node& n : s.model.main.nodes)
      if (ops.contains(n.op)) missing.insert(n.op);
    if (!missing.empty())
      warnings.push_back(cat(name, " lacks operators of the step: ", joined(missing)));
  }
}

}  // namespace portable
}  // namespace onnxtrain
