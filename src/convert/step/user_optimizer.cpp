// A user's update rule, copied once per parameter.
#include "convert/step/user_optimizer.hpp"

#include "convert/step/losses.hpp"
#include "onnx/onnx.hpp"
#include "onnx/raise.hpp"

namespace onnxtrain {

namespace {

[[noreturn]] void wrong(const std::string& path, const std::string& what) {
  model_error("OT1245", cat("the optimizer '", path, "' ", what),
              "its inputs are R, T, X, G and state; its outputs the new X, then the new state in "
              "the same order");
}

// The rule at the opset of the model that it becomes part of.
Model load_rule(StepBuilder& s, const std::string& path) {
  std::optional<Model> rule = at_opset(load_model(path, s.ops()), s.opset(), s.ops());
  if (!rule) wrong(path, cat("cannot be brought to opset ", s.opset(), ", which the model has"));
  return std::move(*rule);
}

}  // namespace

void add_user_optimizer(StepBuilder& s, const OptimizerSpec& o,
                        const std::vector<Trained>& parameters, ValueId lr,
                        const Counter& counter) {
  Model file = load_rule(s, o.kind);
  const Graph& f = file.main;
  for (const Trained& p : parameters) {
    const Tensor* w = s.model().initializer(p.name);
    const TypeInfo type = s.graph().value(p.weights).type;
    std::map<ValueId, ValueId> given;
    std::vector<std::string> keys = {p.name};
    std::vector<TypeInfo> types = {type};
    // weights and gradient in the type that the rule is written for
    auto in_type = [&](ValueId v, DType t) { return t == DType::kUndefined ? v : s.cast(v, t); };
    bool has_x = false, has_g = false, x_is_scalar = false;
    for (ValueId v : f.inputs)
      if (f.value_name(v) == "X")
        x_is_scalar = f.value(v).type.shape && f.value(v).type.shape->empty();
    for (ValueId v : f.inputs) {
      const ValueDef& d = f.value(v);
      if (d.constant.defined()) continue;
      if (d.name == "R") {
        given[v] = in_type(lr, d.type.elem);
      } else if (d.name == "T") {
        given[v] = in_type(counter.next, d.type.elem);
      } else if (d.name == "X") {
        given[v] = in_type(p.weights, d.type.elem);
        has_x = true;
      } else if (d.name == "G") {
        given[v] = in_type(p.gradient, d.type.elem);
        has_g = true;
      } else {
        // state of the parameter's shape, unless the graph says that it is a number beside a tensor
        // X
        bool scalar = d.type.shape && d.type.shape->empty() && !x_is_scalar;
        DType elem = d.type.elem == DType::kUndefined ? w->dtype() : d.type.elem;
        ValueId state =
            s.add_state(p.name + "." + d.name, filled(elem, scalar ? Shape{} : w->shape(), 0));
        given[v] = state;
        keys.push_back(s.graph().value_name(state));
        types.push_back(s.graph().value(state).type);
      }
    }
    if (!has_x || !has_g) wrong(o.kind, cat("has no input named ", has_x ? "G" : "X"));
    if (f.outputs.size() != keys.size())
      wrong(o.kind, cat("has ", f.outputs.size(), " outputs, ", keys.size(), " are expected"));
    auto to = inline_graph(s, f, given, p.name + "_update/");
    for (size_t k = 0; k < keys.size(); ++k) {
      ValueId v = to.at(f.outputs[k]);
      TypeInfo made = types[k];
      if (f.value(f.outputs[k]).type.is_tensor()) made.elem = f.value(f.outputs[k]).type.elem;
      s.set_type(v, made);
      if (made.elem != types[k].elem) {
        v = s.cast(v, types[k].elem);
        s.set_type(v, types[k]);
      }
      s.bind(keys[k], v);
    }
  }
}

}  // namespace onnxtrain
