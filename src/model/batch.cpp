// The first dimension of the inputs.
#include "model/batch.hpp"

namespace onnxtrain {

bool has_rows(const Graph& g, ValueId input) {
  const ValueDef& d = g.value(input);
  return !d.constant.defined() && !(d.type.is_tensor() && d.type.shape && d.type.shape->empty());
}

int64_t fixed_batch(const Graph& main) {
  int64_t batch = 0;
  for (ValueId v : main.inputs) {
    if (!has_rows(main, v)) continue;
    const TypeInfo& t = main.value(v).type;
    if (!t.is_tensor() || !t.shape || !(*t.shape)[0].known()) return 0;
    if (batch != 0 && batch != (*t.shape)[0].value) return 0;
    batch = (*t.shape)[0].value;
  }
  return batch;
}

}  // namespace onnxtrain
