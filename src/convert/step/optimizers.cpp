// From a recipe's optimizer to nodes: one per weight, as the optimizer's record says.
#include "convert/step/optimizers.hpp"

#include <algorithm>
#include <cstring>

#include <nlohmann/json.hpp>

#include "convert/step/names.hpp"
#include "convert/step/user_optimizer.hpp"

namespace onnxtrain {

namespace {

double default_of(const OptimizerSetting& s, bool keras) {
  return keras && s.keras ? *s.keras : s.value;
}

// `attributes` of the recipe: only those that the standard's operator has.
void take_attributes(const Optimizer& record, const OptimizerSpec& o,
                     std::map<std::string, double, std::less<>>& values) {
  std::vector<std::string> known;
  for (const OptimizerSetting& s : record.attributes) {
    known.push_back(s.name);
    values[s.name] = s.value;
  }
  for (const auto& [key, value] : o.attributes) {
    if (std::find(known.begin(), known.end(), key) == known.end())
      usage_error("OT1230", cat(o.kind, " has no attribute '", key, "'"), suggestion(key, known));
    values[key] = value;
  }
}

// The states that an operator's update counts have the weight's shape; what a node has behind them
// is one number each.
bool is_scalar(const OptimizerNode& n, size_t state) {
  const Op* op = all_ops().find(n.domain, n.op, 1);
  return op && op->update && state >= size_t(op->update->states);
}

class Updates {
 public:
  Updates(StepBuilder& s, const OptimizerSpec& o, ValueId lr, const Counter& counter)
      : s_(s),
        b_(s.nodes()),
        o_(o),
        record_(*all_ops().optimizer(o.kind)),
        lr_(lr),
        counter_(counter) {}

  void add(const Trained& p) {
    std::optional<double> decay;
    double scale = 1;
    if (o_.no_decay_on_bias_and_norm && p.bias_or_norm) decay = 0;
    for (const ParameterOverride& x : o_.overrides)
      if (glob_match(x.glob, p.name)) {
        if (x.weight_decay) decay = *x.weight_decay;
        scale = x.lr_scale;
      }
    OptimizerNode node = record_.node(settings_of(o_, decay));
    if (scale != 1 && !reads_lr(node))
      usage_error("OT1234",
                  cat("'lr_scale' of ", p.name, " has no effect: ", o_.kind,
                      " does not read the learning rate after its first step"),
                  "remove lr_scale from 'overrides'");
    emit(p, std::move(node), scaled_lr(scale));
  }

 private:
  ValueId scaled_lr(double scale) {
    if (scale == 1) return lr_;
    auto it = rates_.find(scale);
    if (it != rates_.end()) return it->second;
    const TypeInfo type = s_.graph().value(lr_).type;
    ValueId v = b_.mul(lr_, b_.tensor(scalar_tensor(scale, type.elem)));
    s_.set_type(v, type);
    return rates_[scale] = v;
  }

  // The node, its weight and its state variables, all bound.
  void emit(const Trained& p, OptimizerNode node, ValueId lr) {
    const Tensor* w = s_.model().initializer(p.name);
    const TypeInfo weight_type = s_.graph().value(p.weights).type;
    // 16-bit weights are updated in float: a squared gradient is 0 in float16, an average in
    // bfloat16 does not move, and the standard's operators know float and double only
    DType type = w->dtype();
    if (type == DType::kFloat16 || type == DType::kBFloat16) type = DType::kFloat;
    std::vector<ValueId> in;
    for (const char* c = node.scalars; *c; ++c)
      in.push_back(*c == 'R' ? lr : *c == 'T' ? counter_.value : counter_.next);
    in.push_back(s_.cast(p.weights, type));
    in.push_back(s_.cast(p.gradient, type));
    std::vector<std::string> keys = {p.name};
    std::vector<ValueId> state;
    for (const auto& [ending, first] : node.state) {
      ValueId v =
          s_.add_state(p.name + "." + ending,
                       filled(type, is_scalar(node, state.size()) ? Shape{} : w->shape(), first));
      keys.push_back(s_.graph().value_name(v));
      state.push_back(v);
    }
    in.insert(in.end(), state.begin(), state.end());
    std::vector<ValueId> out = b_.call_n(cat(node.domain, "::", node.op), std::move(in),
                                         int(keys.size()), std::move(node.attrs));
    const size_t update = s_.graph().nodes.size() - 1;
    for (size_t k = 0; k < keys.size(); ++k) {
      TypeInfo t =
          k > 0 && is_scalar(node, k - 1) ? s_.graph().value(state[k - 1]).type : weight_type;
      t.elem = type;
      s_.set_type(out[k], t);
      ValueId next = k == 0 ? s_.cast(out[k], w->dtype()) : out[k];
      if (k == 0) s_.set_type(next, weight_type);
      s_.bind(keys[k], next);
    }
    s_.graph().nodes[update].name = p.name + "_update";
  }

  StepBuilder& s_;
  GradBuilder& b_;
  const OptimizerSpec& o_;
  const Optimizer& record_;
  ValueId lr_;
  Counter counter_;
  std::map<double, ValueId> rates_;
};

}  // namespace

bool reads_lr(const OptimizerNode& n) { return std::strchr(n.scalars, 'R') != nullptr; }

OptimizerSettings settings_of(const OptimizerSpec& o, std::optional<double> weight_decay) {
  const Optimizer& record = *all_ops().optimizer(o.kind);
  const bool keras = o.style == "keras";
  std::map<std::string, double, std::less<>> values;
  for (const OptimizerSetting& s : record.settings) {
    auto given = o.settings.find(s.name);
    values[s.name] = given != o.settings.end() ? given->second : default_of(s, keras);
  }
  if (o.lr) values["lr"] = *o.lr;
  if (o.weight_decay) values["weight_decay"] = *o.weight_decay;
  if (weight_decay) values["weight_decay"] = *weight_decay;
  if (!record.attributes.empty()) take_attributes(record, o, values);
  return {std::move(values), keras};
}

const std::string& function_texts() {
  static const std::string json = [] {
    nlohmann::json texts;
    for (const Op* op : all_ops().all())
      if (op->function && op->domain == kOwnDomain) texts[op->name] = op->function;
    return texts.dump();
  }();
  return json;
}

const std::string& optimizer_records() {
  static const std::string json = optimizers_json(all_ops());
  return json;
}

int64_t first_step(const OptimizerSpec& o) {
  const Optimizer* record = all_ops().optimizer(o.kind);
  return o.t0.value_or(record ? record->first_step : 0);
}

double default_lr(const OptimizerSpec& o) {
  if (o.lr) return *o.lr;
  const Optimizer* record = all_ops().optimizer(o.kind);
  return record ? default_of(*record->setting("lr"), o.style == "keras") : 1e-2;
}

void add_optimizer(StepBuilder& s, const OptimizerSpec& o, const std::vector<Trained>& parameters,
                   ValueId lr, const Counter& counter) {
  if (is_onnx_path(o.kind)) return add_user_optimizer(s, o, parameters, lr, counter);
  Updates make(s, o, lr, counter);
  for (const Trained& p : parameters) make.add(p);
}

}  // namespace onnxtrain
