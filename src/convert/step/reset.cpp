// Initial values as PyTorch's layers choose them, found by the operator that reads the parameter.
// They go into the file's initializers and, as random nodes, into the initialization graph.
#include "convert/step/reset.hpp"

#include <algorithm>
#include <cmath>

#include "convert/step/initial_values.hpp"
#include "convert/step/step_builder.hpp"
#include "core/random.hpp"

namespace onnxtrain {

namespace {

InitialValue constant(double v) { return InitialValue::constant(v); }
InitialValue uniform(double bound) { return InitialValue::uniform(bound); }
InitialValue normal(double deviation) { return InitialValue::normal(deviation); }

// Who reads a parameter, and as which input.
struct WeightUse {
  const Graph* g = nullptr;
  const Node* n = nullptr;
  size_t input = 0;
};

bool passes_on(const Node& n) {
  for (const char* op : {"Identity", "Cast", "Reshape", "Unsqueeze", "Squeeze"})
    if (n.is(op)) return true;
  return false;
}

// The first reader decides. Bodies of loops and branches are looked into, what passes a value on is
// looked through.
WeightUse use_of(const Graph& g, ValueId v, int hops = 0) {
  if (hops > 8) return {};
  for (const Node& n : g.nodes) {
    for (size_t i = 0; i < n.inputs.size(); ++i) {
      if (n.inputs[i] != v) continue;
      if (i == 0 && passes_on(n)) return use_of(g, n.outputs[0], hops + 1);
      const Attr* a = n.find("body");
      const GraphPtr* body = a ? std::get_if<GraphPtr>(a) : nullptr;
      if (!body) return {&g, &n, i};
      if (i < (*body)->inputs.size()) return use_of(**body, (*body)->inputs[i], hops + 1);
    }
    for (const auto& [key, a] : n.attrs)
      if (const GraphPtr* sub = std::get_if<GraphPtr>(&a))
        for (const auto& c : (*sub)->captures)
          if (c.outer == v)
            if (WeightUse r = use_of(**sub, c.inner, hops + 1); r.n) return r;
  }
  return {};
}

double product(const Shape& s, size_t from) {
  double p = 1;
  for (size_t k = from; k < s.size(); ++k) p *= double(s[k]);
  return p;
}

// Sizes other than 1: [1,C,1,1] is a vector.
Shape squeezed(const Shape& s) {
  Shape out;
  for (int64_t d : s)
    if (d != 1) out.push_back(d);
  return out;
}

// How many inputs feed one output of an Einsum: the letters of the weights that the result lacks.
double einsum_fan(const Node& n, size_t input, const Shape& w) {
  std::string text = n.s("equation", "");
  std::erase(text, ' ');
  const size_t arrow = text.find("->");
  if (arrow == std::string::npos || text.find('.') != std::string::npos) return 0;
  std::string term = text.substr(0, arrow);
  for (size_t k = 0; k < input; ++k) {
    size_t comma = term.find(',');
    if (comma == std::string::npos) return 0;
    term = term.substr(comma + 1);
  }
  term = term.substr(0, term.find(','));
  if (term.size() != w.size()) return 0;
  double fan = 1;
  for (size_t k = 0; k < term.size(); ++k)
    if (text.find(term[k], arrow) == std::string::npos) fan *= double(w[k]);
  return fan;
}

// How many inputs feed one output of this layer: the weights' shape decides. 0: not known.
double fan_in(const Node& n, size_t input, const Shape& w) {
  if (w.size() < 2) return 0;
  if (n.is("Conv") || n.is("DeformConv") || n.is("ConvTranspose"))  // as PyTorch counts it
    return product(w, 1);
  if (n.is("Gemm")) return double(w[n.i(input == 0 ? "transA" : "transB", 0) != (input == 0)]);
  if (n.is("Einsum")) return einsum_fan(n, input, w);
  return double(input == 0 ? w.back() : w[w.size() - 2]);  // MatMul: [..., in, out]
}

double torch_bound(double fan) { return fan > 0 ? 1 / std::sqrt(fan) : 0; }

// The weights beside the bias of this layer.
double fan_beside(const Graph& g, const Node& n) {
  if (n.inputs.size() < 2 || n.inputs[1] == kNone) return 0;
  const Tensor& w = g.value(n.inputs[1]).constant;
  return w.defined() ? fan_in(n, 1, w.shape()) : 0;
}

// The bias of a linear layer that was exported as MatMul + Add.
const Node* matmul_before(const Graph& g, const Node& add, size_t bias) {
  if (add.inputs.size() != 2) return nullptr;
  NodeId p = g.value(add.inputs[1 - bias]).producer;
  return p >= 0 && g.nodes[size_t(p)].is("MatMul") ? &g.nodes[size_t(p)] : nullptr;
}

InitialValue start_of_vector(const WeightUse& r) {
  const Node& n = *r.n;
  if (n.is("Conv") || n.is("ConvTranspose") || n.is("Gemm") || n.is("DeformConv"))
    return uniform(torch_bound(fan_beside(*r.g, n)));
  if (n.is("Add")) {
    const Node* m = matmul_before(*r.g, n, r.input);
    return uniform(m ? torch_bound(fan_beside(*r.g, *m)) : 0);
  }
  if (n.is("Mul") || n.is("Div")) return constant(1);
  for (const char* op : {"Concat", "Expand", "Tile"})  // a token that is learned
    if (n.is(op)) return normal(0.02);
  return constant(0);
}

InitialValue start_by_use(const WeightUse& r, const Tensor& t) {
  const Node& n = *r.n;
  const std::string& op = n.op;
  const Shape flat = squeezed(t.shape());
  if (op == "LSTM" || op == "GRU" || op == "RNN")
    return uniform(torch_bound(double(n.i("hidden_size", 1))));
  if (op == "Gather" || op == "Embedding") return normal(1);
  if (op == "PRelu") return constant(0.25);
  if (op.find("Normalization") != std::string::npos)
    return constant(r.input == 1 || r.input == 4 ? 1 : 0);
  if (op == "Transpose" && t.rank() == 2) return uniform(torch_bound(double(t.shape()[1])));
  bool layer = op == "Conv" || op == "ConvTranspose" || op == "DeformConv" || op == "Gemm" ||
               op == "MatMul" || op == "Einsum";
  if (layer && r.input < 2)
    if (double fan = fan_in(n, r.input, t.shape()); fan > 0) return uniform(torch_bound(fan));
  if (flat.size() < 2) return start_of_vector(r);
  if (op == "Add" || op == "Concat" || op == "Expand") return normal(0.02);  // positions, queries
  return uniform(std::sqrt(6 / double(flat[0] + flat[1])));                  // Xavier
}

InitialValue start_of(const Graph& g, ValueId v) {
  WeightUse r = use_of(g, v);
  InitialValue s = r.n ? start_by_use(r, g.value(v).constant) : constant(0);
  // a bound of 0 is a constant
  return s.kind == InitialValue::Kind::kUniform && s.value == 0 ? constant(0) : s;
}

class Initialization {
 public:
  Initialization(Graph& g, const OpTable& ops, int opset) : b_(g, ops, Node{}, {}, opset), g_(g) {}

  ValueId random(const Tensor& like, const InitialValue& s, float seed) {
    // before opset 22 the generators do not know bfloat16
    const bool wide = like.dtype() == DType::kBFloat16;
    GradBuilder::Attrs a = {{"dtype", int64_t(wide ? DType::kFloat : like.dtype())},
                            {"shape", like.shape()},
                            {"seed", seed}};
    const bool bell = s.kind == InitialValue::Kind::kNormal;
    a[bell ? "mean" : "low"] = bell ? 0.0f : float(-s.value);
    a[bell ? "scale" : "high"] = float(s.value);
    ValueId v = b_.call(bell ? "RandomNormal" : "RandomUniform", {}, a);
    return wide ? b_.call("Cast", {v}, {{"to", int64_t(like.dtype())}}) : v;
  }
  ValueId fill(const Tensor& like, double v) {
    return b_.call("ConstantOfShape", {b_.constant_ints(like.shape())},
                   {{"value", filled(like.dtype(), {1}, v)}});
  }
  void output(TrainingStep& t, const std::string& key, ValueId v, const Tensor& like) {
    g_.value(v).name = key + "_start";
    g_.value(v).type = TypeInfo::tensor(like.dtype(), like.shape());
    g_.outputs.push_back(v);
    t.initialization_binding.emplace_back(key, key + "_start");
  }

 private:
  GradBuilder b_;
  Graph& g_;
};

// Small enough to be exact in float32, different for every parameter.
float seed_of(uint64_t seed, const std::string& name) {
  return float(hash64(name.data(), name.size(), seed) & 0xffffff);
}

}  // namespace

void add_reset(Model& m, const std::vector<std::string>& parameters, uint64_t seed,
               const OpTable& ops) {
  TrainingStep& step = m.training.back();
  Graph& g = step.edit_initialization();
  g.name = "initialization";
  auto it = m.opsets.find("");
  Initialization init(g, ops, it == m.opsets.end() ? 13 : it->second);
  std::vector<std::pair<std::string, std::string>> keys = step.update_binding;
  for (const auto& [key, value] : keys) {
    const Tensor like = *m.initializer(key);
    ValueId v = m.main.find(key);
    bool trained = std::find(parameters.begin(), parameters.end(), key) != parameters.end();
    if (v != kNone) {  // weights and running statistics
      InitialValue s = start_of(m.main, v);
      if (!trained && s.kind != InitialValue::Kind::kConstant) continue;
      m.set_initializer(key, draw(like.dtype(), like.shape(), s, seed, key));
      init.output(step, key,
                  s.kind == InitialValue::Kind::kConstant
                      ? init.fill(like, s.value)
                      : init.random(like, s, seed_of(seed, key)),
                  like);
    } else {  // counters and optimizer state are constants: their first element tells
      init.output(step, key, init.fill(like, like.size() ? like.to_doubles()[0] : 0), like);
    }
  }
  g.renumber();
}

}  // namespace onnxtrain
