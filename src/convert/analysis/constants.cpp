// Constants by use: settings of operators, arithmetic of the program, scaling of the model's input,
// numbers of a fitted preprocessing.
#include "convert/analysis/constants.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string_view>

#include "convert/analysis.hpp"
#include "op/op.hpp"

namespace onnxtrain {

namespace {

constexpr size_t kInside = size_t(-1);
constexpr int kMaxViews = 8;

template <class... Names>
bool is_one_of(const Node& n, Names... names) {
  return (n.is(names) || ...);
}

bool is_copy(const Node& n) {
  return is_one_of(n, "Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Expand");
}

bool is_comparison(const Node& n) {
  return is_one_of(n, "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal");
}

bool is_layer(const Node& n) {
  return is_one_of(n, "MatMul", "Gemm", "Conv", "ConvTranspose", "LSTM", "GRU", "RNN", "Attention");
}

// "w", "b2", or a name with a word that frameworks give to parameters.
bool is_named_parameter(const std::string& name) {
  std::string s;
  for (char c : name) s += char(std::tolower(static_cast<unsigned char>(c)));
  for (const char* word : {"weight", "bias", "kernel", "gamma", "beta", "alpha", "scale", "slope",
                           "temperature", "embed", "param", "coef", "intercept"})
    if (s.find(word) != std::string::npos) return true;
  return !s.empty() && (s[0] == 'w' || s[0] == 'b') &&
         std::all_of(s.begin() + 1, s.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// Whole and half numbers, powers of ten, and the constants that formulas have.
bool is_formula_number(double x) {
  static const std::array<double, 14> known = {1.4142135623730951,
                                               0.7071067811865476,
                                               0.7978845608028654,
                                               0.044715,
                                               1.702,
                                               1.0 / 6,
                                               1.0 / 3,
                                               3.141592653589793,
                                               2.718281828459045,
                                               0.6931471805599453,
                                               1.0 / 255,
                                               1.0 / 127.5,
                                               0.2,
                                               1.4426950408889634};
  const double a = std::fabs(x);
  if (a <= 65536 && std::nearbyint(2 * a) == 2 * a) return true;
  if (a > 0 && std::fabs(std::log10(a) - std::nearbyint(std::log10(a))) < 1e-6) return true;
  return std::any_of(known.begin(), known.end(),
                     [&](double k) { return std::fabs(a - k) <= 2e-4 * k; });
}

bool starts_with_any(const std::string& s, std::initializer_list<std::string_view> list) {
  return std::any_of(list.begin(), list.end(), [&](auto p) { return s.starts_with(p); });
}

template <class F>
bool all(const std::vector<Use>& list, F&& fits) {
  return !list.empty() && std::all_of(list.begin(), list.end(), fits);
}

const Node* maker(const Graph& g, ValueId v) {
  const NodeId k = v == kNone ? -1 : g.value(v).producer;
  return k < 0 ? nullptr : &g.nodes[size_t(k)];
}

// The operand of a binary node that is not the one of the use.
ValueId other(const Use& u) {
  return u.node->inputs.size() == 2 ? u.node->inputs[1 - u.input] : kNone;
}

std::string by_setting(const std::vector<Use>& list) {
  auto fits = [](const Use& u) { return u.input != kInside && is_setting(*u.node, u.input); };
  if (!all(list, fits)) return {};
  const Node& n = *list[0].node;
  if (is_comparison(n)) return cat("a threshold of ", n.op);
  return cat("a setting of ", n.op);
}

// A number of one element that is an exponent, or that keeps a denominator from 0.
std::string by_exponent(const Tensor& t, const std::vector<Use>& list,
                        const std::function<const std::vector<NodeId>&(const Use&)>& readers) {
  if (t.size() != 1) return {};
  if (all(list, [](const Use& u) { return u.node->is("Pow") && u.input == 1; }))
    return "an exponent";
  const double x = t.to_doubles()[0];
  auto guards = [&](const Use& u) {
    if (!is_one_of(*u.node, "Add", "Max")) return false;
    const auto& next = readers(u);
    return std::any_of(next.begin(), next.end(), [&](NodeId k) {
      return is_one_of(u.graph->nodes[size_t(k)], "Sqrt", "Pow", "Div", "Reciprocal");
    });
  };
  return x > 0 && x <= 1e-2 && all(list, guards) ? "keeps a denominator from 0" : "";
}

}  // namespace

bool is_setting(const Node& n, size_t input) {
  const Op* op = all_ops().find(n);
  return op && op->settings_from >= 0 && input >= size_t(op->settings_from);
}

ConstantRules::ConstantRules(const Model& m) : m_(m), g_(m.main) {
  const std::string& by = m.producer_name;
  pytorch_ = by == "pytorch";
  fitted_ = starts_with_any(by, {"skl2onnx", "OnnxMLTools", "onnxmltools", "sklearn"});
  find_raw();
}

const ConstantRules::Consumers& ConstantRules::consumers(const Graph& g) const {
  auto it = consumers_.find(&g);
  if (it == consumers_.end()) it = consumers_.emplace(&g, g.consumers()).first;
  return it->second;
}

void ConstantRules::add_uses(const Graph& g, ValueId v, bool main_graph, int depth,
                             std::vector<Use>& out) const {
  NodeId last = -1;
  for (NodeId k : consumers(g)[size_t(v)]) {
    if (k == last) continue;  // a node that reads it twice is listed twice
    last = k;
    const Node& n = g.nodes[size_t(k)];
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      if (n.inputs[i] != v) continue;
      if (i == 0 && depth < kMaxViews && is_copy(n) && !n.outputs.empty())
        add_uses(g, n.outputs[0], main_graph, depth + 1, out);
      else
        out.push_back({&g, &n, i, main_graph});
    }
    for (const auto& [key, a] : n.attrs)
      if (const GraphPtr* sub = std::get_if<GraphPtr>(&a))
        for (const auto& c : (*sub)->captures) {
          if (c.outer != v) continue;
          if (depth < kMaxViews)
            add_uses(**sub, c.inner, false, depth + 1, out);
          else
            out.push_back({&g, &n, kInside, main_graph});
        }
  }
}

std::vector<Use> ConstantRules::uses(ValueId v) const {
  std::vector<Use> out;
  add_uses(g_, v, true, 0, out);
  return out;
}

// An input of the model stays raw through what rescales or rearranges it by constants.
bool ConstantRules::is_raw_node(const Node& n) const {
  if (n.domain == kMlDomain)
    return n.op == "Scaler" || n.op == "Imputer" || n.op == "Normalizer" ||
           n.op == "ArrayFeatureExtractor" || n.op == "FeatureVectorizer";
  const bool one = is_copy(n) ||
                   is_one_of(n, "Transpose", "Slice", "Gather", "Split", "Clip", "Pad", "Resize",
                             "Upsample", "Neg", "Abs", "Log") ||
                   is_one_of(n, "Exp", "Sqrt", "Not", "IsNaN", "Tile");
  if (one) {
    for (size_t i = 1; i < n.inputs.size(); ++i)
      if (is_data(n.inputs[i])) return false;
    return !n.inputs.empty() && is_raw(n.inputs[0]);
  }
  if (!is_one_of(n, "Sub", "Div", "Mul", "Add", "Min", "Max", "Where", "Concat") &&
      !is_comparison(n))
    return false;
  int computed = 0;
  for (size_t i = 0; i < n.inputs.size(); ++i) {
    if (!is_data(n.inputs[i])) continue;
    if (!is_raw(n.inputs[i])) return false;
    computed += n.is("Where") && i == 0 ? 0 : 1;
  }
  return n.is("Concat") || computed == 1;
}

void ConstantRules::find_raw() {
  data_.assign(g_.values.size(), 0);
  raw_.assign(g_.values.size(), 0);
  for (ValueId v : g_.inputs)
    if (!g_.value(v).constant.defined()) data_[size_t(v)] = raw_[size_t(v)] = 1;
  for (const Node& n : g_.nodes) {
    bool any = false;
    for (ValueId v : g_.reads(n)) any |= is_data(v);
    if (!any) continue;
    has_layers_ |= is_layer(n);
    const bool raw = is_raw_node(n);
    for (ValueId v : n.outputs)
      if (v != kNone) data_[size_t(v)] = 1, raw_[size_t(v)] = raw;
  }
}

// torch.onnx names parameters and buffers after the module's; numbers of the program get others.
bool ConstantRules::is_trusted(const std::string& name) const {
  return pytorch_ && !has_generated_name(name) && !name.starts_with('/') &&
         name.find("_output_") == std::string::npos;
}

// The result is larger than the data: x - centers[K,D] is a layer, x - mean[D] a rescaling.
bool ConstantRules::widens(const Use& u, const Tensor& t) const {
  const ValueId x = other(u);
  const TypeInfo& type = u.graph->value(x).type;
  if (!type.is_tensor() || !type.shape) return t.rank() > 1 && t.size() > 1;
  const auto& dims = *type.shape;
  for (size_t k = 0; k < size_t(t.rank()); ++k) {  // from the last dimension
    const int64_t size = t.shape()[size_t(t.rank()) - 1 - k];
    if (size == 1) continue;
    if (k >= dims.size() || dims[dims.size() - 1 - k].value == 1) return true;
  }
  return false;
}

// x[int32] as float * scale, or the scale of an activation * the scale of a weight.
bool ConstantRules::scales_integers(const Use& u) const {
  if (u.input == kInside || !is_one_of(*u.node, "Mul", "Div") || other(u) == kNone) return false;
  const Node* made = maker(*u.graph, other(u));
  if (!made) return false;
  if (made->is("DynamicQuantizeLinear")) return true;
  if (!made->is("Cast")) return false;
  const Node* before = maker(*u.graph, made->inputs[0]);
  const Op* op = before ? all_ops().find(*before) : nullptr;
  return op && !op->quantised_inputs.empty() &&
         u.graph->value(made->inputs[0]).type.elem == DType::kInt32;
}

// The matrix of x W + b: of a MatMul whose result gets a bias, or of a Gemm with one.
bool ConstantRules::is_layer_matrix(const Use& u) const {
  if (u.input == kInside || u.input > 1) return false;
  auto initializer = [&](ValueId v) { return v != kNone && u.graph->value(v).initializer; };
  if (u.node->is("Gemm"))
    return u.node->f("alpha", 1) == 1 && u.node->inputs.size() > 2 &&
           initializer(u.node->inputs[2]);
  if (!u.node->is("MatMul")) return false;
  ValueId out = u.node->outputs[0];
  for (int hops = 0; hops < kMaxViews; ++hops) {
    const auto& next = consumers(*u.graph)[size_t(out)];
    if (next.size() != 1) return false;
    const Node& n = u.graph->nodes[size_t(next[0])];
    if (n.is("Add")) return initializer(n.inputs[n.inputs[0] == out ? 1 : 0]);
    if (!is_copy(n)) return false;
    out = n.outputs[0];
  }
  return false;
}

bool ConstantRules::is_layer_bias(const Use& u) const {
  if (u.input == kInside) return false;
  if (u.node->is("Gemm")) return u.input == 2 && u.node->f("alpha", 1) == 1;
  if (!u.node->is("Add")) return false;
  ValueId x = other(u);
  for (int hops = 0; hops < kMaxViews && x != kNone; ++hops) {
    const Node* n = maker(*u.graph, x);
    if (!n) return false;
    if (is_one_of(*n, "MatMul", "Conv", "ConvTranspose")) return true;
    if (n->is("Gemm")) return n->f("alpha", 1) == 1;
    if (!is_copy(*n)) return false;
    x = n->inputs[0];
  }
  return false;
}

// One number in the arithmetic of the program: 1 - p, x / 2, 0.5 * (1 + erf(..)).
bool ConstantRules::is_formula_use(const Use& u, const ValueDef& d) const {
  if (u.input == kInside) return false;
  const double x = d.constant.to_doubles()[0];
  if (is_one_of(*u.node, "Where", "Concat", "Min", "Max", "ScatterND", "ScatterElements"))
    return true;
  if (is_one_of(*u.node, "Sub", "Div", "Pow")) return true;
  if (u.node->is("Mul")) return is_formula_number(x) && x != 1 && x != 0;
  if (u.node->is("Add") || u.node->is("Sum"))
    return is_formula_number(x) && x != 0 && !is_layer_bias(u);
  return is_setting(*u.node, u.input);
}

std::string ConstantRules::by_input(ValueId v, const std::vector<Use>& list) const {
  const ValueDef& d = g_.value(v);
  auto on_input = [&](const Use& u, bool scaling) {
    if (u.input == kInside || !u.main_graph) return false;
    const Node& n = *u.node;
    if (n.is("Where")) return u.input > 0 && is_raw(n.inputs[u.input == 1 ? 2 : 1]);
    const bool fits =
        is_one_of(n, "Sub", "Div") || (scaling && is_one_of(n, "Mul", "Add", "Min", "Max", "Pow"));
    return fits && is_raw(other(u)) && !widens(u, d.constant);
  };
  if (!has_layers_) return {};  // a model that is nothing but such arithmetic
  const bool scaling = !is_trusted(d.name) && !is_named_parameter(d.name);
  if (all(list, [&](const Use& u) { return on_input(u, scaling); }))
    return "shifts or scales an input of the model";
  return {};
}

std::string ConstantRules::by_arithmetic(ValueId v, const std::vector<Use>& list) const {
  const ValueDef& d = g_.value(v);
  if (is_trusted(d.name) || is_named_parameter(d.name)) return {};
  if (d.constant.size() == 1 && all(list, [&](const Use& u) { return is_formula_use(u, d); }))
    return "a number of the model's formula";
  int wide = 0;
  for (int64_t size : d.constant.shape()) wide += size > 1;
  auto behind_data = [&](const Use& u) {
    return u.input == 1 && u.main_graph && is_one_of(*u.node, "Sub", "Div") &&
           is_data(u.node->inputs[0]) && !widens(u, d.constant);
  };
  if (wide == 1 && all(list, behind_data)) return "is subtracted or divided by, like a statistic";
  return {};
}

std::string ConstantRules::reason(ValueId v) const {
  const ValueDef& d = g_.value(v);
  const std::vector<Use> list = uses(v);
  if (std::string s = by_setting(list); !s.empty()) return s;
  auto readers = [&](const Use& u) -> const std::vector<NodeId>& {
    return consumers(*u.graph)[size_t(u.node->outputs[0])];
  };
  if (std::string s = by_exponent(d.constant, list, readers); !s.empty()) return s;
  // a layer's bias may start as zeros under a name that the exporter made up
  const bool bias =
      d.constant.rank() == 1 &&
      std::any_of(list.begin(), list.end(), [&](const Use& u) { return is_layer_bias(u); });
  const auto& users = consumers(g_)[size_t(v)];
  if (std::string looks = look_of_a_constant(g_, v, users, bias); !looks.empty()) return looks;
  if (all(list, [&](const Use& u) { return scales_integers(u); }))
    return "a scale of quantised numbers";
  if (std::string s = by_input(v, list); !s.empty()) return s;
  if (fitted_ && std::none_of(list.begin(), list.end(),
                              [&](const Use& u) { return is_layer_matrix(u) || is_layer_bias(u); }))
    return "a number of a fitted preprocessing";
  return by_arithmetic(v, list);
}

}  // namespace onnxtrain
