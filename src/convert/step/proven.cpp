// The graph is read again as a file without declared shapes: one set of inference rules.
#include "convert/step/proven.hpp"

#include <algorithm>

#include "convert/lower.hpp"
#include "onnx/onnx.hpp"
#include "op/model_refusal.hpp"

namespace onnxtrain {

namespace {

constexpr int64_t kLooked = 4096;  // elements of a constant that shapes may follow from

void forget_shapes(Graph& g) {
  for (Node& n : g.nodes) {
    for (ValueId v : n.outputs)
      if (v != kNone && g.value(v).type.is_tensor()) g.value(v).type.shape = std::nullopt;
    for (auto& [name, a] : n.attrs)
      if (GraphPtr* body = std::get_if<GraphPtr>(&a)) {
        *body = std::make_shared<Graph>((*body)->clone());
        for (ValueId v : (*body)->inputs)
          if ((*body)->value(v).type.is_tensor()) (*body)->value(v).type.shape = std::nullopt;
        forget_shapes(**body);
      }
  }
}

// Weights become inputs: nothing of them is copied.
void open_weights(Graph& g) {
  for (size_t k = 0; k < g.values.size(); ++k) {
    ValueDef& d = g.values[k];
    if (!d.constant.defined() || d.constant.size() <= kLooked) continue;
    d.type = TypeInfo::tensor(d.constant.dtype(), d.constant.shape());
    d.constant = {};
    d.initializer = false;
    if (std::find(g.inputs.begin(), g.inputs.end(), ValueId(k)) == g.inputs.end())
      g.inputs.push_back(ValueId(k));
  }
}

// The size of this dimension is a number there; of all that `wanted` has.
bool knows(const TypeInfo& found, const TypeInfo& wanted, size_t d) {
  return found.is_tensor() && found.shape && found.shape->size() == wanted.shape->size() &&
         (*found.shape)[d].known();
}
bool knows(const TypeInfo& found, const TypeInfo& wanted) {
  for (size_t d = 0; d < wanted.shape->size(); ++d)
    if ((*wanted.shape)[d].value > 1 && !knows(found, wanted, d)) return false;
  return true;
}

}  // namespace

TypeInfo proven_type(const Model& m, ValueId v, const OpTable& ops) {
  TypeInfo t = m.main.value(v).type;
  if (!t.is_tensor() || !t.shape ||
      std::none_of(t.shape->begin(), t.shape->end(), [](const Dim& d) { return d.value > 1; }))
    return t;
  TypeInfo found, settled;
  const bool read = !model_refusal([&] {
    Model bare;
    bare.opsets = m.opsets;
    bare.ir_version = m.ir_version;
    Graph& g = bare.edit_main();
    g = m.main.clone();
    forget_shapes(g);
    open_weights(g);
    g.outputs = {v};
    g.remove_dead();
    g.renumber();
    const Model again = load_model_bytes(serialize_model(bare, ops), "", ops);
    if (const ValueId here = again.main.find(m.main.value_name(v)); here != kNone)
      found = again.main.value(here).type;
    if (knows(found, t)) return;
    settle_types(g, g.nodes.size(), {}, ops);  // follows sizes through more operators
    settled = g.value(g.outputs[0]).type;
  });
  if (!read || !found.is_tensor()) return t;
  for (size_t d = 0; d < t.shape->size(); ++d) {
    Dim& dim = (*t.shape)[d];
    if (dim.value > 1 && !knows(found, t, d) && !knows(settled, t, d)) dim = Dim{};
  }
  return t;
}

}  // namespace onnxtrain
