// The C API's way from a user's array to what an input wants.
#include <algorithm>

#include <nlohmann/json.hpp>

#include "api/handles.hpp"
#include "model/batch.hpp"
#include "run/data/data_spec.hpp"
#include "run/data/feeds.hpp"
#include "run/data/usual_values.hpp"
#include "run/predict.hpp"

using namespace onnxtrain;
using namespace onnxtrain::api;

namespace {

ot_value* adapted(const Model& m, const ValueDef& d, const ot_value* array, bool as_trained) {
  if (!std::holds_alternative<Tensor>(array->v))
    data_error("OT2105", cat("'", d.name, "' is not an array"));
  return new ot_value{run::fitted(m, d, array->v, as_trained)};
}

// Nothing where it is no array with rows.
run::FeedColumns one_column(const char* input, const ot_value* array) {
  const Tensor* t = std::get_if<Tensor>(&array->v);
  if (!t || t->shape().empty()) return {};
  return {{input}, {memory_column(*t)}, ""};
}

const ValueDef& main_input(const Model& m, const std::string& name) {
  const std::vector<std::string> names = m.input_names();
  if (std::find(names.begin(), names.end(), name) == names.end())
    data_error("OT2105", cat("the model has no input '", name, "'; it has ", listed(names)),
               "name one of them");
  return m.main.value(m.main.find(name));
}

}  // namespace

ot_status ot_model_adapt(const ot_model* m, const char* input, const ot_value* array,
                         ot_value** out) {
  return guarded({{"m", m}, {"input", input}, {"array", array}, {"out", out}}, [&] {
    require_rows_first(m->m->main);
    *out = adapted(*m->m, main_input(*m->m, input), array, true);
  });
}

ot_status ot_model_output_meaning(const ot_model* m, const char* output, size_t rank,
                                  const int64_t* dims, size_t n_names, ot_text** json) {
  return guarded({{"m", m}, {"output", output}, {"dims", dims}, {"json", json}}, [&] {
    const run::OutputMeaning o =
        run::meaning_of_output(*m->m, output, Shape(dims, dims + rank), n_names);
    nlohmann::ordered_json j{{"classes", o.has_classes},
                             {"probabilities", o.to_probabilities},
                             {"threshold", nullptr},
                             {"names", o.classes}};
    if (o.threshold) j["threshold"] = *o.threshold;
    using Json = nlohmann::ordered_json;
    *json = new ot_text{j.dump(-1, ' ', false, Json::error_handler_t::replace)};
  });
}

ot_status ot_model_unlike(const ot_model* m, const char* input, const ot_value* adapted,
                          ot_text** said) {
  return guarded({{"m", m}, {"input", input}, {"adapted", adapted}, {"said", said}}, [&] {
    const run::Metadata& known = m->m->metadata;
    *said = new ot_text{
        run::unlike_training(one_column(input, adapted), known, run::data_spec(known).features)};
  });
}

ot_status ot_trainer_unlike(const ot_trainer* t, const char* input, const ot_value* adapted,
                            ot_text** said) {
  return guarded({{"t", t}, {"input", input}, {"adapted", adapted}, {"said", said}},
                 [&] { *said = new ot_text{t->run.unlike(one_column(input, adapted))}; });
}

ot_status ot_trainer_adapt(const ot_trainer* t, const char* input, const ot_value* array,
                           ot_value** out) {
  return guarded({{"t", t}, {"input", input}, {"array", array}, {"out", out}}, [&] {
    for (const ValueDef& d : t->t().slots())
      if (d.name == input) {
        *out = adapted(t->t().source(), d, array, false);
        return;
      }
    data_error("OT2105", cat("no training section has an input '", input, "'"));
  });
}
