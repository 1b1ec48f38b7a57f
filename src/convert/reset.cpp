// Initial values as PyTorch's layers choose them, found by the operator that reads the parameter.
// They go into the file's initializers and, as random nodes, into the initialization graph.
#include "convert/reset.hpp"

#include <algorithm>
#include <cmath>

#include "convert/step_builder.hpp"
#include "core/random.hpp"

namespace onnxtrain {

namespace {

struct Start {
  enum class Kind { kConstant, kUniform, kNormal } kind = Kind::kConstant;
  double value = 0;  // the constant; the bound of a uniform in [-value, value); the deviation
};
Start constant(double v) { return {Start::Kind::kConstant, v}; }
Start uniform(double bound) { return {Start::Kind::kUniform, bound}; }

// How many inputs feed one output of this layer: the weights' shape decides.
double fan_in(const Node& n, const Shape& w) {
  double receptive = 1;
  for (size_t k = 2; k < w.size(); ++k) receptive *= double(w[k]);
  if (n.is("Conv")) return double(w[1]) * receptive;
  if (n.is("ConvTranspose")) return double(w[1]) * receptive;  // as PyTorch counts it
  if (n.is("Gemm")) return double(n.i("transB", 0) ? w[1] : w[0]);
  return double(w[w.size() >= 2 ? w.size() - 2 : 0]);  // MatMul: [..., in, out]
}

const Tensor* weights_of(const Graph& g, const Node& n, size_t input) {
  if (input >= n.inputs.size() || n.inputs[input] == kNone) return nullptr;
  const Tensor& t = g.value(n.inputs[input]).constant;
  return t.defined() && t.rank() >= 2 ? &t : nullptr;
}

double torch_bound(double fan) { return fan > 0 ? 1 / std::sqrt(fan) : 0; }

// The bias of a linear layer that was exported as MatMul + Add.
const Node* matmul_before(const Graph& g, const Node& add, size_t bias) {
  ValueId other = add.inputs[1 - bias];
  NodeId p = g.value(other).producer;
  return p >= 0 && g.nodes[size_t(p)].is("MatMul") ? &g.nodes[size_t(p)] : nullptr;
}

Start start_by_use(const Graph& g, const Node& n, size_t input, const Tensor& t) {
  const std::string& op = n.op;
  if (op == "Conv" || op == "ConvTranspose" || op == "Gemm") {
    const Tensor* w = weights_of(g, n, input == 0 && op == "Gemm" ? 0 : 1);
    if (w) return uniform(torch_bound(fan_in(n, w->shape())));
  }
  if (op == "MatMul" && t.rank() >= 2)
    return uniform(
        torch_bound(double(input == 1 ? t.shape()[size_t(t.rank() - 2)] : t.shape().back())));
  if (op == "LSTM" || op == "GRU" || op == "RNN")
    return uniform(torch_bound(double(n.i("hidden_size", 1))));
  if (op == "Gather" || op == "Embedding") return {Start::Kind::kNormal, 1.0};
  if (op == "PRelu") return constant(0.25);
  if (op.find("Normalization") != std::string::npos)
    return constant(input == 1 ? 1 : input == 4 ? 1 : 0);
  if (op == "Add" && t.rank() <= 1) {
    const Node* m = matmul_before(g, n, input);
    const Tensor* w = m ? weights_of(g, *m, 1) : nullptr;
    return w ? uniform(torch_bound(fan_in(*m, w->shape()))) : constant(0);
  }
  if ((op == "Mul" || op == "Div") && t.rank() <= 1) return constant(1);
  if (t.rank() >= 2) {  // Xavier
    double in = double(t.shape()[1]), out = double(t.shape()[0]);
    return uniform(std::sqrt(6 / std::max(1.0, in + out)));
  }
  return constant(0);
}

// The first reader decides; Transpose and Identity are looked through.
Start start_of(const Graph& g, const std::vector<std::vector<NodeId>>& users, ValueId v) {
  const Tensor& t = g.value(v).constant;
  ValueId at = v;
  for (int hops = 0; hops < 4 && !users[size_t(at)].empty(); ++hops) {
    const Node& n = g.nodes[size_t(users[size_t(at)][0])];
    if (n.is("Transpose") && t.rank() == 2) return uniform(torch_bound(double(t.shape()[1])));
    if (n.is("Identity") || n.is("Cast") || n.is("Reshape")) {
      at = n.outputs[0];
      continue;
    }
    for (size_t i = 0; i < n.inputs.size(); ++i)
      if (n.inputs[i] == at) return start_by_use(g, n, i, t);
    break;
  }
  return constant(0);
}

Tensor draw(const Tensor& like, const Start& s, uint64_t seed, uint64_t stream) {
  if (s.kind == Start::Kind::kConstant) return filled(like.dtype(), like.shape(), s.value);
  Tensor t(like.dtype(), like.shape());
  std::vector<float> u(size_t(t.size()));
  bool normal = s.kind == Start::Kind::kNormal;
  (normal ? philox_normal : philox_uniform)(seed, stream, 0, 0, t.size(), u.data());
  dispatch<float, double, Half, BFloat16>(t.dtype(), "an initial value", [&]<class T>() {
    for (size_t k = 0; k < u.size(); ++k)
      t.as<T>()[k] =
          T(compute_t<T>(normal ? double(u[k]) * s.value : (2 * double(u[k]) - 1) * s.value));
  });
  return t;
}

class Initialization {
 public:
  Initialization(Graph& g, const OpTable& ops, int opset) : b_(g, ops, Node{}, {}, opset), g_(g) {}

  ValueId random(const Tensor& like, const Start& s, float seed) {
    GradBuilder::Attrs a = {
        {"dtype", int64_t(like.dtype())}, {"shape", like.shape()}, {"seed", seed}};
    if (s.kind == Start::Kind::kNormal) {
      a["mean"] = 0.0f;
      a["scale"] = float(s.value);
      return b_.call("RandomNormal", {}, a);
    }
    a["low"] = float(-s.value);
    a["high"] = float(s.value);
    return b_.call("RandomUniform", {}, a);
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
  step.initialization.name = "initialization";
  auto it = m.opsets.find("");
  Initialization init(step.initialization, ops, it == m.opsets.end() ? 13 : it->second);
  auto users = m.main.consumers();
  std::vector<std::pair<std::string, std::string>> keys = step.update_binding;
  for (const auto& [key, value] : keys) {
    const Tensor like = *m.initializer(key);
    ValueId v = m.main.find(key);
    bool trained = std::find(parameters.begin(), parameters.end(), key) != parameters.end();
    if (v != kNone) {  // weights and running statistics
      Start s = start_of(m.main, users, v);
      if (!trained && s.kind != Start::Kind::kConstant) continue;
      m.set_initializer(key, draw(like, s, seed, hash64(key.data(), key.size(), 1)));
      init.output(step, key,
                  s.kind == Start::Kind::kConstant ? init.fill(like, s.value)
                                                   : init.random(like, s, seed_of(seed, key)),
                  like);
    } else {  // counters and optimizer state are constants: their first element tells
      init.output(step, key, init.fill(like, like.size() ? like.to_doubles()[0] : 0), like);
    }
  }
  step.initialization.renumber();
}

}  // namespace onnxtrain
