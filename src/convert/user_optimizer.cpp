// A user's update rule, copied once per parameter.
#include "convert/user_optimizer.hpp"

#include "convert/losses.hpp"
#include "onnx/onnx.hpp"

namespace onnxtrain {

namespace {

[[noreturn]] void wrong(const std::string& path, const std::string& what) {
  model_error("OT1245", cat("the optimizer '", path, "' ", what),
              "its inputs are R, T, X, G and state; its outputs the new X, then the new state in "
              "the same order");
}

}  // namespace

void add_user_optimizer(StepBuilder& s, const OptimizerSpec& o,
                        const std::vector<Trained>& parameters, ValueId rate,
                        const Counter& counter) {
  Model file = load_model(o.kind, s.ops());
  const Graph& f = file.main;
  for (const Trained& p : parameters) {
    const Tensor* w = s.model().initializer(p.name);
    const TypeInfo type = s.graph().value(p.weights).type;
    std::map<ValueId, ValueId> given;
    std::vector<std::string> keys = {p.name};
    std::vector<TypeInfo> types = {type};
    bool has_x = false, has_g = false, x_is_scalar = false;
    for (ValueId v : f.inputs)
      if (f.value_name(v) == "X")
        x_is_scalar = f.value(v).type.shape && f.value(v).type.shape->empty();
    for (ValueId v : f.inputs) {
      const ValueDef& d = f.value(v);
      if (d.constant.defined()) continue;
      if (d.name == "R") {
        given[v] = d.type.elem == DType::kUndefined ? rate : s.cast(rate, d.type.elem);
      } else if (d.name == "T") {
        given[v] =
            d.type.elem == DType::kUndefined ? counter.next : s.cast(counter.next, d.type.elem);
      } else if (d.name == "X") {
        given[v] = p.weights;
        has_x = true;
      } else if (d.name == "G") {
        given[v] = p.gradient;
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
      s.set_type(v, types[k]);
      s.bind(keys[k], v);
    }
  }
}

}  // namespace onnxtrain
