// Puts an inference BatchNormalization into the convolution before it: scaled weights and a bias.
// Only where all of it is constant, so never while these weights are trained.
#include <algorithm>
#include <cmath>

#include "passes/passes.hpp"

namespace onnxtrain {

namespace {

class NormFolder {
 public:
  NormFolder(Graph& g, const PassContext& c) : g_(g), readers_(g.consumers()) {
    g.renumber();
    fixed_.assign(g.values.size(), 0);
    for (ValueId v : g.outputs) fixed_[size_t(v)] = 1;
    for (ValueId v : c.keep) fixed_[size_t(v)] = 1;
  }

  void run() {
    std::vector<char> removed(g_.nodes.size(), 0);
    for (size_t k = 0; k < g_.nodes.size(); ++k) {
      NodeId conv = before(g_.nodes[k]);
      if (conv < 0) continue;
      fold(g_.nodes[size_t(conv)], g_.nodes[k]);
      removed[k] = 1;
    }
    std::vector<Node> kept;
    for (size_t k = 0; k < g_.nodes.size(); ++k)
      if (!removed[k]) kept.push_back(std::move(g_.nodes[k]));
    g_.nodes = std::move(kept);
  }

 private:
  bool constant(ValueId v) const {
    const ValueDef& d = g_.value(v);
    bool fed = std::find(g_.inputs.begin(), g_.inputs.end(), v) != g_.inputs.end();
    return d.is_constant() && !fed && d.constant.dtype() == DType::kFloat;
  }

  // The convolution that normalisation n can go into, or -1.
  NodeId before(const Node& n) const {
    if (!n.is("BatchNormalization") || n.version < 9 || n.inputs.size() != 5) return -1;
    if (n.i("training_mode", 0) != 0) return -1;
    for (size_t k = 1; k < n.outputs.size(); ++k)
      if (n.outputs[k] != kNone) return -1;
    for (size_t k = 1; k < 5; ++k)
      if (n.inputs[k] == kNone || !constant(n.inputs[k])) return -1;
    ValueId y = n.inputs[0];
    NodeId p = g_.value(y).producer;
    if (p < 0 || fixed_[size_t(y)] || readers_[size_t(y)].size() != 1) return -1;
    const Node& conv = g_.nodes[size_t(p)];
    if (!conv.is("Conv") || conv.inputs.size() < 2 || !constant(conv.inputs[1])) return -1;
    if (conv.inputs.size() > 2 && conv.inputs[2] != kNone && !constant(conv.inputs[2])) return -1;
    return p;
  }

  void fold(Node& conv, const Node& norm) {
    auto values = [&](size_t k) { return g_.value(norm.inputs[k]).constant.as<float>(); };
    const float *scale = values(1), *shift = values(2), *mean = values(3), *var = values(4);
    double epsilon = double(norm.f("epsilon", 1e-5f));
    Tensor w = g_.value(conv.inputs[1]).constant.clone();
    int64_t channels = w.shape()[0], each = channels ? w.size() / channels : 0;
    bool biased = conv.inputs.size() > 2 && conv.inputs[2] != kNone;
    const float* old = biased ? g_.value(conv.inputs[2]).constant.as<float>() : nullptr;
    Tensor b(DType::kFloat, {channels});
    for (int64_t c = 0; c < channels; ++c) {
      double a = double(scale[c]) / std::sqrt(double(var[c]) + epsilon);
      float* row = w.as<float>() + c * each;
      for (int64_t i = 0; i < each; ++i) row[i] = float(double(row[i]) * a);
      b.as<float>()[c] =
          float(((biased ? double(old[c]) : 0.0) - double(mean[c])) * a + double(shift[c]));
    }
    conv.inputs.resize(3, kNone);
    conv.inputs[1] = g_.add_constant(std::move(w));
    conv.inputs[2] = g_.add_constant(std::move(b));
    conv.outputs[0] = norm.outputs[0];
  }

  Graph& g_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<char> fixed_;
};

}  // namespace

void pass_fold_norm(Graph& g, const PassContext& c) { NormFolder(g, c).run(); }

}  // namespace onnxtrain
