// Vector updates for optimizer nodes.
#include "ops/optim/update_kernel.hpp"

#include <cmath>
#include <cstring>

#include "ops/optim/optimizer_shape.hpp"

namespace onnxtrain::ops {

namespace {

std::string rule_name(const Node& n) {
  return n.is("MultiUpdate", kOwnDomain) ? n.s("rule", "") : n.op;
}

}  // namespace

std::optional<UpdateRule> UpdateRule::of(std::string_view op, const Node& n) {
  UpdateRule u;
  u.decay = setting(n, "decay");
  u.scaled = n.i("scaled", 0) == 1;
  if (op == "Sgd") return u;
  u.beta1 = setting(n, "beta1", 0.9);
  if (op == "Lion") {
    u.kind = Kind::kLion;
    u.states = 1;
    u.beta2 = setting(n, "beta2", 0.99);
    return u;
  }
  if (!op.starts_with("Adam")) return std::nullopt;
  std::string_view form = op.substr(4);
  u.kind = Kind::kAdam;
  u.scalars = 2;
  u.ams = form.ends_with("Ams");
  if (u.ams) form.remove_suffix(3);
  u.states = u.ams ? 3 : 2;
  u.decoupled = form == "W" || form == "Keras";
  u.keras = form == "Keras";
  if (!form.empty() && !u.decoupled) return std::nullopt;
  u.beta2 = setting(n, "beta2", 0.999);
  u.epsilon = setting(n, "epsilon", 1e-8);
  return u;
}

void UpdateRule::run(ThreadPool& pool, const simd::OptimList& list, double rate, double step,
                     float factor) const {
  if (kind == Kind::kSgd)
    return simd::update(
        pool, list, simd::SgdStep{.lr = float(rate), .decay = float(decay), .grad_scale = factor});
  if (kind == Kind::kLion)
    return simd::update(
        pool, list,
        simd::LionStep{
            .lr = rate, .beta1 = beta1, .beta2 = beta2, .decay = decay, .grad_scale = factor});
  simd::AdamStep s;
  s.grad_scale = factor;
  double fix1 = 1 - std::pow(beta1, step), fix2 = std::sqrt(1 - std::pow(beta2, step));
  s.beta1 = beta1;
  s.beta2 = beta2;
  s.epsilon = float(epsilon);
  s.amsgrad = ams;
  s.step = float(keras ? rate * fix2 / fix1 : rate / fix1);
  s.root = keras ? 1.0f : float(1 / fix2);
  if (decoupled)
    s.pre = float(1 - rate * decay);
  else
    s.decay = float(decay);
  simd::update(pool, list, s);
}

std::string refuses_simd_update(const Prepare& p) {
  std::optional<UpdateRule> rule = UpdateRule::of(rule_name(p.node()), p.node());
  if (!rule) return "there is no vector form";
  for (int k = rule->scalars; k < p.inputs(); ++k)
    if (p.in(k).dtype != DType::kFloat) return "only for float";
  for (int o = 0; o < p.outputs(); ++o)
    if (!p.wants(o)) return "a result is not wanted";
  return "";
}

Kernel make_simd_update(Prepare& p) {
  UpdateRule rule = *UpdateRule::of(rule_name(p.node()), p.node());
  const int width = rule.width(), outs = 1 + rule.states;
  const int count = (p.inputs() - rule.scalars - rule.scaled) / width;
  std::vector<int64_t> size;
  for (int k = 0; k < count; ++k) size.push_back(p.in(rule.scalars + k * width).size());
  DType rate_type = p.in(0).dtype, step_type = rule.scalars > 1 ? p.in(1).dtype : DType::kFloat;
  // which input an output begins as: X, then the states behind G
  auto source = [=](int k, int o) { return rule.scalars + k * width + (o == 0 ? 0 : o + 1); };
  // the list is made once and again only when memory has moved
  return [=, list = simd::OptimList()](const Run& r) mutable {
    bool same = int(list.tensors().size()) == count;
    for (int k = 0; k < count && same; ++k) {
      const simd::OptimTensor& t = list.tensors()[size_t(k)];
      same = t.x == r.outputs[k * outs] && t.g == r.inputs[rule.scalars + k * width + 1];
      for (int s = 0; s < rule.states && same; ++s)
        same = t.state[s] == r.outputs[k * outs + 1 + s];
    }
    if (!same) {
      std::vector<simd::OptimTensor> tensors;
      for (int k = 0; k < count; ++k) {
        simd::OptimTensor t{.x = r.out<float>(k * outs),
                            .g = r.in<float>(rule.scalars + k * width + 1),
                            .n = size[size_t(k)]};
        for (int s = 0; s < rule.states; ++s) t.state[s] = r.out<float>(k * outs + 1 + s);
        tensors.push_back(t);
      }
      list = simd::OptimList(std::move(tensors));
    }
    for (int k = 0; k < count; ++k)
      for (int o = 0; o < outs; ++o) {
        const void* from = r.inputs[source(k, o)];
        void* to = r.outputs[k * outs + o];
        if (from != to && size[size_t(k)])
          std::memcpy(to, from, size_t(size[size_t(k)]) * sizeof(float));
      }
    double step = rule.scalars > 1 ? read_scalar(r.inputs[1], step_type) : 0;
    const float factor = rule.scaled ? *r.in<float>(rule.scalars + count * width) : 1.0f;
    rule.run(*r.pool, list, read_scalar(r.inputs[0], rate_type), step, factor);
  };
}

}  // namespace onnxtrain::ops
