// Everything in float32: what optimizers and schedules calculate in float64 (bias corrections,
// learning rates) is written so that float32 is enough.
#include <algorithm>
#include <cmath>

#include "convert/portable/stages.hpp"

namespace onnxtrain::portable {

namespace {

// 1 - b^t = -2h / (1 - h) with h = tanh(t ln(b) / 2): exact to 2e-7 where b^t is close to 1.
std::vector<ValueId> one_minus_power(Site& s) {
  const Node* power = s.maker(s.x(1), "Pow");
  if (!power || s.dtype(s.y()) != DType::kDouble || !s.is_all(s.x(0), 1)) return {};
  const Tensor* base = s.constant(power->inputs[0]);
  const ValueId t = power->inputs[1];
  if (!base || base->size() != 1) return {};
  const double b = base->to_doubles()[0];
  if (!(b > 0 && b < 1)) return {};
  const ValueId at = s.cast(t, DType::kDouble);
  const ValueId h = s.call("Tanh", {s.mul(at, s.scalar(std::log(b) / 2, DType::kDouble))});
  return {s.div(s.mul(s.scalar(-2, DType::kDouble), h), s.sub(s.scalar(1, DType::kDouble), h))};
}

// What was between float32 and float64.
std::vector<ValueId> same_type(Site& s) {
  const bool float32 = s.node().i("to", 0) == int64_t(DType::kFloat);
  if (!float32 || s.dtype(s.x(0)) != DType::kFloat) return {};
  return {s.x(0)};
}

Tensor single(const Tensor& t) {
  Tensor f(DType::kFloat, t.shape());
  const std::vector<double> v = t.to_doubles();
  std::transform(v.begin(), v.end(), f.as<float>(), [](double d) { return float(d); });
  return f;
}

[[noreturn]] void refuse(const Graph& g, ValueId v) {
  const ValueDef& d = g.value(v);
  model_error("OT1260",
              cat("the step cannot be portable: '", d.name, "' is ", dtype_name(d.type.elem),
                  ", portable steps are float32"),
              "a step with the types it has:  --form compact");
}

void narrow(Graph& g) {
  for (ValueDef& d : g.values) {
    if (d.constant.defined() && d.constant.dtype() == DType::kDouble)
      d.constant = single(d.constant);
    if (d.type.is_tensor() && d.type.elem == DType::kDouble) d.type.elem = DType::kFloat;
  }
  for (Node& n : g.nodes)
    for (auto& [key, a] : n.attrs) {
      if (key == "to" && n.is("Cast") && std::get<int64_t>(a) == int64_t(DType::kDouble))
        a = int64_t(DType::kFloat);
      if (Tensor* t = std::get_if<Tensor>(&a); t && t->dtype() == DType::kDouble) a = single(*t);
      if (GraphPtr* sub = std::get_if<GraphPtr>(&a)) {
        auto copy = std::make_shared<Graph>((*sub)->clone());
        narrow(*copy);
        *sub = copy;
      }
    }
}

}  // namespace

void only_float32(Graph& g, const Context& c) {
  const auto other = [](DType t) { return dtype_is_float(t) && t != DType::kFloat; };
  for (ValueId v : g.inputs)
    if (other(g.value(v).type.elem)) refuse(g, v);
  for (ValueId v : g.outputs)
    if (other(g.value(v).type.elem)) refuse(g, v);
  for (const Node& n : g.nodes)
    for (ValueId v : n.outputs)
      if (v != kNone && other(g.value(v).type.elem) && g.value(v).type.elem != DType::kDouble)
        refuse(g, v);
  apply(g, {{"Sub", "one_minus_power", one_minus_power}}, c);
  narrow(g);
  apply(g, {{"Cast", "float32_already", same_type}}, c);
}

}  // namespace onnxtrain::portable
