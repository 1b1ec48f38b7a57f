// The C API's way from a user's array to what an input wants.
#include "data/adapt.hpp"

#include <algorithm>

#include "api/handles.hpp"
#include "model/batch.hpp"
#include "run/feeds.hpp"

using namespace onnxtrain;
using namespace onnxtrain::api;

namespace {

Tensor adapted(const ValueDef& d, bool target, const ot_value* array) {
  const Tensor* t = std::get_if<Tensor>(&array->v);
  if (!t) data_error("OT2105", cat("'", d.name, "' is not an array"));
  Dataset data = Dataset::from_tensors({{d.name, *t}});
  AdaptOptions o;
  if (target) o.scale = "none";
  const bool label = target && dtype_is_integer(d.type.elem);
  data.set(d.name, (label ? adapt_label_column(data, d.name, input_spec(d), o)
                          : adapt_input(data, d.name, input_spec(d), o))
                       .column);
  return data.gather_all(d.name);
}

const ValueDef& main_input(const Model& m, const std::string& name) {
  const std::vector<std::string> names = m.input_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    data_error("OT2105", cat("the model has no input '", name, "'; it has ", listed(names)));
  return m.main.value(m.main.find(name));
}

}  // namespace

ot_status ot_model_adapt(const ot_model* m, const char* input, const ot_value* array,
                         ot_value** out) {
  return guarded({{"m", m}, {"input", input}, {"array", array}, {"out", out}}, [&] {
    require_rows_first(m->m->main);
    *out = new ot_value{adapted(main_input(*m->m, input), false, array)};
  });
}

ot_status ot_trainer_adapt(const ot_trainer* t, const char* input, const ot_value* array,
                           ot_value** out) {
  return guarded({{"t", t}, {"input", input}, {"array", array}, {"out", out}}, [&] {
    const std::vector<std::string> data = t->t->source().input_names();
    const bool target = std::find(data.begin(), data.end(), input) == data.end();
    for (int i = 0; i < t->t->algorithms(); ++i) {
      const std::vector<std::string> names = t->t->input_names(i);
      if (std::find(names.begin(), names.end(), input) == names.end()) continue;
      *out = new ot_value{adapted(t->t->input(i, input), target, array)};
      return;
    }
    data_error("OT2105", cat("no training section has an input '", input, "'"));
  });
}
