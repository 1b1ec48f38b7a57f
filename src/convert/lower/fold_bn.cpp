// Folding: y = s (W x + b - mean) / sqrt(var + eps) + t is one layer with W' = W f and
// b' = (b - mean) f + t, f = s / sqrt(var + eps); computed in double.
#include "convert/lower/fold_bn.hpp"

#include <cmath>
#include <set>

namespace onnxtrain {

namespace {

std::vector<double> numbers(const Graph& g, ValueId v) {
  return v != kNone && g.value(v).constant.defined() ? g.value(v).constant.to_doubles()
                                                     : std::vector<double>();
}

// Which axis of the weights counts the outputs; -1 when the layer cannot take the factor.
int output_axis(const Node& n) {
  if (n.is("Conv")) return 0;
  if (n.is("ConvTranspose")) return n.i("group", 1) == 1 ? 1 : -1;
  if (n.is("Gemm") && n.f("alpha", 1) == 1 && n.f("beta", 1) == 1 && n.i("transA", 0) == 0)
    return n.i("transB", 0) ? 0 : 1;
  return -1;
}

Tensor like(const Tensor& t, const Shape& shape, const std::vector<double>& v) {
  Tensor out(t.dtype(), shape);
  dispatch<float, double, Half, BFloat16>(t.dtype(), "weights", [&]<class T>() {
    for (size_t k = 0; k < v.size(); ++k) out.as<T>()[k] = T(compute_t<T>(v[k]));
  });
  return out;
}

class Folder {
 public:
  explicit Folder(Graph& g) : g_(g), uses_(g_.consumers()) {
    for (ValueId v : g_.outputs) output_.insert(v);
  }

  bool fold(Node& bn, size_t at) {
    NodeId p = bn.inputs.empty() ? -1 : g_.value(bn.inputs[0]).producer;
    if (p < 0 || bn.inputs.size() < 5 || bn.i("training_mode", 0)) return false;
    for (size_t k = 1; k < bn.outputs.size(); ++k)
      if (bn.outputs[k] != kNone) return false;
    Node& layer = g_.nodes[size_t(p)];
    int axis = output_axis(layer);
    if (axis < 0 || uses_[size_t(bn.inputs[0])].size() != 1 || output_.count(bn.inputs[0]))
      return false;
    ValueId w = layer.inputs[1], b = layer.inputs.size() > 2 ? layer.inputs[2] : kNone;
    if (uses_[size_t(w)].size() != 1 || !g_.value(w).constant.defined()) return false;
    if (b != kNone && !g_.value(b).constant.defined()) return false;
    std::vector<double> s = numbers(g_, bn.inputs[1]), t = numbers(g_, bn.inputs[2]),
                        mean = numbers(g_, bn.inputs[3]), var = numbers(g_, bn.inputs[4]);
    const Tensor weights = g_.value(w).constant;
    size_t n = size_t(weights.shape()[size_t(axis)]);
    std::vector<double> bias = b == kNone ? std::vector<double>(n, 0.0) : numbers(g_, b);
    if (s.size() != n || t.size() != n || mean.size() != n || var.size() != n || bias.size() != n)
      return false;
    std::vector<double> factor(n);
    for (size_t k = 0; k < n; ++k) {
      factor[k] = s[k] / std::sqrt(var[k] + double(bn.f("epsilon", 1e-5f)));
      bias[k] = (bias[k] - mean[k]) * factor[k] + t[k];
    }
    std::vector<double> v = weights.to_doubles();
    size_t inner = size_t(product(weights.shape(), size_t(axis) + 1, weights.shape().size()));
    for (size_t k = 0; k < v.size(); ++k) v[k] *= factor[k / inner % n];
    std::string base = g_.value_name(w);
    replaced_.insert(replaced_.end(), {w, b});
    replaced_.insert(replaced_.end(), bn.inputs.begin() + 1, bn.inputs.begin() + 5);
    layer.inputs.resize(3, kNone);
    layer.inputs[1] = add(like(weights, weights.shape(), v), base + "_folded");
    layer.inputs[2] = add(like(weights, {int64_t(n)}, bias), base + "_folded_bias");
    layer.outputs[0] = bn.outputs[0];
    dead_.push_back(at);
    return true;
  }

  void finish() {
    for (size_t k = dead_.size(); k-- > 0;) g_.nodes.erase(g_.nodes.begin() + long(dead_[k]));
    g_.renumber();
    g_.remove_dead();
    // what went into the new weights is in no file any more, unless something else reads it
    const std::vector<std::vector<NodeId>> uses = g_.consumers();
    for (ValueId v : replaced_) {
      if (v == kNone || !uses[size_t(v)].empty() || output_.count(v)) continue;
      g_.value(v).constant = Tensor();
      g_.value(v).initializer = false;
      std::erase(g_.inputs, v);
    }
  }

 private:
  ValueId add(Tensor t, const std::string& name) {
    ValueId v = g_.add_constant(std::move(t), g_.unique_name(name));
    g_.value(v).initializer = true;
    return v;
  }

  Graph& g_;
  std::vector<std::vector<NodeId>> uses_;
  std::set<ValueId> output_;
  std::vector<size_t> dead_;
  std::vector<ValueId> replaced_;
};

}  // namespace

int fold_batch_norms(Model& m) {
  m.unshare_main();
  m.training.clear();
  int count = 0;
  m.edit_main_if([&](Graph& g) {
    Folder folder(g);
    const size_t nodes = g.nodes.size();
    for (size_t k = 0; k < nodes; ++k)
      if (g.nodes[k].is("BatchNormalization")) count += folder.fold(g.nodes[k], k);
    if (count) folder.finish();
    return count > 0;
  });
  return count;
}

}  // namespace onnxtrain
