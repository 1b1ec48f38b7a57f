// From a recipe's optimizer to nodes: ONNX's operators where they are exact, ours otherwise (G14).
#include "convert/optimizers.hpp"

#include <algorithm>

#include "convert/names.hpp"
#include "convert/user_optimizer.hpp"

namespace onnxtrain {

namespace {

using Attrs = GradBuilder::Attrs;

class Updates {
 public:
  Updates(StepBuilder& s, const OptimizerSpec& o, ValueId rate, const Counter& counter)
      : s_(s),
        b_(s.nodes()),
        o_(o),
        rate_(rate),
        counter_(counter),
        kind_(o.kind),
        keras_(o.style == "keras") {
    nesterov_ = o.nesterov || kind_ == "nesterov";
    momentum_ = o.momentum;
    if ((kind_ == "momentum" || kind_ == "nesterov") && momentum_ == 0) momentum_ = 0.9;
    if (kind_ == "momentum" || kind_ == "nesterov") kind_ = "sgd";
  }

  void add(const Trained& p) {
    p_ = &p;
    const TypeInfo& type = s_.graph().value(p.weights).type;
    type_ = type;
    decay_ = o_.weight_decay.value_or(kind_ != "adamw" ? 0.0 : keras_ ? 0.004 : 0.01);
    double scale = 1;
    if (o_.no_decay_on_bias_and_norm && p.bias_or_norm) decay_ = 0;
    for (const ParameterOverride& x : o_.overrides)
      if (glob_match(x.glob, p.name)) {
        if (x.weight_decay) decay_ = *x.weight_decay;
        scale = x.lr_scale;
      }
    r_ = scaled_rate(scale);
    if (kind_ == "sgd") return momentum_ > 0 ? momentum() : sgd();
    if (kind_ == "adam" || kind_ == "adamw") return adam();
    if (kind_ == "adagrad") return keras_ ? keras_adagrad() : adagrad();
    if (kind_ == "rmsprop") return rmsprop();
    if (kind_ == "lion") return lion();
    if (kind_ == "lamb") return lamb();
    if (kind_ == "onnx_adam") return onnx_adam(counter_.value);
    if (kind_ == "onnx_momentum") return onnx_momentum();
    OT_ASSERT(kind_ == "onnx_adagrad");
    onnx_adagrad();
  }

 private:
  ValueId scaled_rate(double scale) {
    if (scale == 1) return rate_;
    auto it = rates_.find(scale);
    if (it != rates_.end()) return it->second;
    const TypeInfo type = s_.graph().value(rate_).type;
    ValueId v = b_.mul(rate_, b_.tensor(scalar_tensor(scale, type.elem)));
    s_.set_type(v, type);
    return rates_[scale] = v;
  }

  // The node, its parameter and its state variables (suffix, first value), all bound.
  void emit(const std::string& op, std::vector<ValueId> scalars, Attrs attrs,
            const std::vector<std::pair<std::string, double>>& state) {
    const Tensor* w = s_.model().initializer(p_->name);
    // 16-bit weights are updated in float: a squared gradient is 0 in float16, an average in
    // bfloat16 does not move, and the standard's operators know float and double only
    DType type = w->dtype();
    if (type == DType::kFloat16 || type == DType::kBFloat16) type = DType::kFloat;
    std::vector<ValueId> in = std::move(scalars);
    in.push_back(s_.cast(p_->weights, type));
    in.push_back(s_.cast(p_->gradient, type));
    std::vector<std::string> keys = {p_->name};
    for (const auto& [suffix, first] : state) {
      ValueId v = s_.add_state(p_->name + "." + suffix, filled(type, w->shape(), first));
      keys.push_back(s_.graph().value_name(v));
      in.push_back(v);
    }
    std::vector<ValueId> out = b_.call_n(op, std::move(in), int(keys.size()), std::move(attrs));
    const size_t update = s_.graph().nodes.size() - 1;
    for (size_t k = 0; k < keys.size(); ++k) {
      TypeInfo t = type_;
      t.elem = type;
      s_.set_type(out[k], t);
      ValueId next = k == 0 ? s_.cast(out[k], w->dtype()) : out[k];
      if (k == 0) s_.set_type(next, type_);
      s_.bind(keys[k], next);
    }
    s_.graph().nodes[update].name = p_->name + "_update";
  }
  static std::string own(const char* op) { return cat(kOwnDomain, "::", op); }
  static std::string standard(const char* op) { return cat(kTrainingDomain, "::", op); }
  static Attr real(double v) { return StepBuilder::real(v); }

  void sgd() { emit(own("Sgd"), {r_}, {{"decay", real(decay_)}}, {}); }
  void momentum() {  // ONNX's operator is PyTorch's SGD
    emit(standard("Momentum"), {r_, counter_.value},
         {{"alpha", float(momentum_)},
          {"beta", float(1 - o_.dampening)},
          {"norm_coefficient", float(decay_)},
          {"mode", std::string(nesterov_ ? "nesterov" : "standard")}},
         {{"momentum", 0}});
  }
  void adam() {
    std::string op = keras_ ? "AdamKeras" : kind_ == "adamw" ? "AdamW" : "Adam";
    std::vector<std::pair<std::string, double>> state = {{"exp_avg", 0}, {"exp_avg_sq", 0}};
    if (o_.amsgrad) {
      op += "Ams";
      state.emplace_back("max_exp_avg_sq", 0);
    }
    double eps = o_.eps.value_or(keras_ ? 1e-7 : 1e-8);
    if (op == "AdamKeras" && decay_ == 0)  // exactly ONNX's Adam
      return emit(standard("Adam"), {r_, counter_.next},
                  {{"alpha", float(o_.beta1.value_or(0.9))},
                   {"beta", float(o_.beta2.value_or(0.999))},
                   {"epsilon", float(eps)},
                   {"norm_coefficient", 0.0f},
                   {"norm_coefficient_post", 0.0f}},
                  state);
    emit(own(op.c_str()), {r_, counter_.next},
         {{"beta1", real(o_.beta1.value_or(0.9))},
          {"beta2", real(o_.beta2.value_or(0.999))},
          {"epsilon", real(eps)},
          {"decay", real(decay_)}},
         state);
  }
  void adagrad() {  // ONNX's operator is PyTorch's, with T = 0 at the first step
    emit(standard("Adagrad"), {r_, counter_.value},
         {{"decay_factor", float(o_.lr_decay)},
          {"epsilon", float(o_.eps.value_or(1e-10))},
          {"norm_coefficient", float(decay_)}},
         {{"sum", o_.initial_accumulator_value.value_or(0)}});
  }
  void keras_adagrad() {
    emit(own("AdagradKeras"), {r_},
         {{"epsilon", real(o_.eps.value_or(1e-7))}, {"decay", real(decay_)}},
         {{"accumulator", o_.initial_accumulator_value.value_or(0.1)}});
  }
  void rmsprop() {
    std::string op = keras_ ? "RMSpropKeras" : "RMSprop";
    std::vector<std::pair<std::string, double>> state = {{"square_avg", 0}};
    if (o_.centered) {
      op += "Centered";
      state.emplace_back("grad_avg", 0);
    }
    if (o_.momentum > 0) {
      op += "Momentum";
      state.emplace_back("momentum_buffer", 0);
    }
    emit(own(op.c_str()), {r_},
         {{"alpha", real(o_.alpha.value_or(keras_ ? 0.9 : 0.99))},
          {"epsilon", real(o_.eps.value_or(keras_ ? 1e-7 : 1e-8))},
          {"momentum", real(o_.momentum)},
          {"decay", real(decay_)}},
         state);
  }
  void lion() {
    emit(own("Lion"), {r_},
         {{"beta1", real(o_.beta1.value_or(0.9))},
          {"beta2", real(o_.beta2.value_or(0.99))},
          {"decay", real(decay_)}},
         {{"exp_avg", 0}});
  }
  void lamb() {
    emit(own("Lamb"), {r_, counter_.next},
         {{"beta1", real(o_.beta1.value_or(0.9))},
          {"beta2", real(o_.beta2.value_or(0.999))},
          {"epsilon", real(o_.eps.value_or(1e-6))},
          {"decay", real(decay_)}},
         {{"exp_avg", 0}, {"exp_avg_sq", 0}});
  }

  // Attributes of the standard's operators by their own names.
  Attrs standard_attrs(const std::map<std::string, double>& defaults) {
    std::vector<std::string> known;
    Attrs a;
    for (const auto& [key, value] : defaults) {
      known.push_back(key);
      a[key] = float(value);
    }
    for (const auto& [key, value] : o_.attributes) {
      if (!defaults.count(key))
        usage_error("OT1230", cat(o_.kind, " has no attribute '", key, "'"),
                    suggestion(key, known));
      a[key] = float(value);
    }
    return a;
  }
  void onnx_adam(ValueId t) {
    emit(standard("Adam"), {r_, t},
         standard_attrs({{"alpha", 0.9},
                         {"beta", 0.999},
                         {"epsilon", 1e-6},
                         {"norm_coefficient", decay_},
                         {"norm_coefficient_post", 0}}),
         {{"V", 0}, {"H", 0}});
  }
  void onnx_momentum() {
    Attrs a = standard_attrs({{"alpha", 0.9}, {"beta", 1}, {"norm_coefficient", decay_}});
    a["mode"] = std::string(nesterov_ ? "nesterov" : "standard");
    emit(standard("Momentum"), {r_, counter_.value}, a, {{"V", 0}});
  }
  void onnx_adagrad() {
    emit(standard("Adagrad"), {r_, counter_.value},
         standard_attrs({{"decay_factor", 0}, {"epsilon", 1e-6}, {"norm_coefficient", decay_}}),
         {{"H", o_.initial_accumulator_value.value_or(0)}});
  }

  StepBuilder& s_;
  GradBuilder& b_;
  const OptimizerSpec& o_;
  ValueId rate_, r_ = kNone;
  Counter counter_;
  std::string kind_;
  bool keras_, nesterov_ = false;
  double momentum_ = 0, decay_ = 0;
  const Trained* p_ = nullptr;
  TypeInfo type_;
  std::map<double, ValueId> rates_;
};

}  // namespace

int64_t first_step(const OptimizerSpec& o) { return o.t0.value_or(o.kind == "onnx_adam" ? 1 : 0); }

double default_rate(const OptimizerSpec& o) {
  if (o.lr) return *o.lr;
  if (o.kind == "lion") return 1e-4;
  if (o.kind == "rmsprop") return o.style == "keras" ? 1e-3 : 1e-2;
  if (o.kind == "adagrad") return o.style == "keras" ? 1e-3 : 1e-2;
  if (o.kind == "adam" || o.kind == "adamw" || o.kind == "lamb" || o.kind == "onnx_adam")
    return 1e-3;
  return 1e-2;
}

void add_optimizer(StepBuilder& s, const OptimizerSpec& o, const std::vector<Trained>& parameters,
                   ValueId rate, const Counter& counter) {
  if (is_onnx_path(o.kind)) return add_user_optimizer(s, o, parameters, rate, counter);
  Updates make(s, o, rate, counter);
  for (const Trained& p : parameters) make.add(p);
}

}  // namespace onnxtrain
