// Momentum, Adagrad and Adam of ai.onnx.preview.training in standard operators.
#include "ops/optim/onnx_optimizers_lower.hpp"

namespace onnxtrain::ops {

namespace {

struct Update {
  GradBuilder& b;
  ValueId lr, step;  // float64 scalars
  ValueId x, g;
  std::vector<ValueId> state;

  ValueId real(double v) { return b.tensor(Tensor::scalar<double>(v)); }
  ValueId here(ValueId scalar) { return b.cast_like(scalar, x); }  // in the type of X
  ValueId here(double v) { return here(real(v)); }
  ValueId positive_step() { return b.call("Greater", {step, real(0)}); }
  ValueId decayed() {
    double c = double(b.node().f("norm_coefficient", 0));
    return c == 0 ? g : b.add(g, b.mul(here(c), x));
  }
  double attr(const char* key, float def) { return double(b.node().f(key, def)); }
};

std::vector<ValueId> momentum(Update& u) {
  GradBuilder& b = u.b;
  ValueId g = u.decayed(), alpha = u.here(u.attr("alpha", 0));
  ValueId beta = u.here(b.call("Where", {u.positive_step(), u.real(u.attr("beta", 1)), u.real(1)}));
  ValueId v = b.add(b.mul(alpha, u.state[0]), b.mul(beta, g));
  ValueId way = b.node().s("mode", "standard") == "nesterov" ? b.add(g, b.mul(alpha, v)) : v;
  return {b.sub(u.x, b.mul(u.here(u.lr), way)), v};
}

std::vector<ValueId> adagrad(Update& u) {
  GradBuilder& b = u.b;
  ValueId g = u.decayed();
  ValueId slower = b.add(u.real(1), b.mul(u.step, u.real(u.attr("decay_factor", 0))));
  ValueId h = b.add(u.state[0], b.mul(g, g));
  ValueId by = b.add(b.call("Sqrt", {h}), u.here(u.attr("epsilon", 1e-6f)));
  return {b.sub(u.x, b.div(b.mul(u.here(b.div(u.lr, slower)), g), by)), h};
}

std::vector<ValueId> adam(Update& u) {
  GradBuilder& b = u.b;
  double alpha = u.attr("alpha", 0.9f), beta = u.attr("beta", 0.999f);
  ValueId g = u.decayed();
  ValueId v = b.add(b.mul(u.here(alpha), u.state[0]), b.mul(u.here(1 - alpha), g));
  ValueId h = b.add(b.mul(u.here(beta), u.state[1]), b.mul(u.here(1 - beta), b.mul(g, g)));
  // where the correction is not used it must not divide by zero: its gradient would not be a number
  ValueId step = b.call("Where", {u.positive_step(), u.step, u.real(1)});
  auto fix = [&](double d) { return b.sub(u.real(1), b.call("Pow", {u.real(d), step})); };
  ValueId corrected = b.div(b.mul(u.lr, b.call("Sqrt", {fix(beta)})), fix(alpha));
  ValueId lr = u.here(b.call("Where", {u.positive_step(), corrected, u.lr}));
  ValueId by = b.add(b.call("Sqrt", {h}), u.here(u.attr("epsilon", 1e-6f)));
  ValueId x = b.sub(u.x, b.div(b.mul(lr, v), by));
  double post = u.attr("norm_coefficient_post", 0);
  if (post != 0) x = b.mul(u.here(1 - post), x);
  return {x, v, h};
}

}  // namespace

std::vector<ValueId> lower_optimizer(GradBuilder& b) {
  const Node& n = b.node();
  size_t groups = n.op == "Adam" ? 4 : 3, count = (n.inputs.size() - 2) / groups;
  std::vector<ValueId> out((groups - 1) * count, kNone);
  auto real = [&](ValueId v) { return b.call("Cast", {v}, {{"to", int64_t(DType::kDouble)}}); };
  ValueId lr = real(n.inputs[0]), step = real(n.inputs[1]);
  for (size_t k = 0; k < count; ++k) {
    auto in = [&](size_t group) { return n.inputs[2 + group * count + k]; };
    Update u{b, lr, step, in(0), in(1), {in(2)}};
    if (groups == 4) u.state.push_back(in(3));
    std::vector<ValueId> made = n.op == "Momentum"  ? momentum(u)
                                : n.op == "Adagrad" ? adagrad(u)
                                                    : adam(u);
    for (size_t o = 0; o < made.size(); ++o) out[o * count + k] = made[o];
  }
  return out;
}

}  // namespace onnxtrain::ops
