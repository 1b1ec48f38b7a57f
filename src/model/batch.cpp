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

std::string rows_symbol(const Graph& main) {
  for (ValueId out : main.outputs) {
    const TypeInfo& t = main.value(out).type;
    if (!t.is_tensor() || !t.shape || t.shape->empty() || (*t.shape)[0].symbol.empty()) continue;
    for (ValueId v : main.inputs)
      if (const TypeInfo& in = main.value(v).type; in.is_tensor() && in.shape)
        for (const Dim& d : *in.shape)
          if (d.symbol == (*t.shape)[0].symbol) return d.symbol;
  }
  return {};
}

void require_rows_first(const Graph& main) {
  const std::string rows = rows_symbol(main);
  if (rows.empty()) return;
  for (ValueId v : main.inputs) {
    const TypeInfo& t = main.value(v).type;
    if (!has_rows(main, v) || !t.is_tensor() || !t.shape || (*t.shape)[0].symbol == rows) continue;
    for (size_t d = 1; d < t.shape->size(); ++d)
      if ((*t.shape)[d].symbol == rows)
        data_error("OT2117",
                   cat("input '", main.value_name(v), "' is ", to_string(t),
                       ": its rows lie along dimension ", d, ", data has them first"),
                   "export the model with the batch first (PyTorch: batch_first=True), or give "
                   "batches as the model takes them from Python:  ot.Trainer(MODEL).step(feeds)");
  }
}

}  // namespace onnxtrain
