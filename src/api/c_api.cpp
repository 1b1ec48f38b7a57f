// The C API: errors, text, models, sessions.
#include <utility>

#include <nlohmann/json.hpp>

#include "api/handles.hpp"
#include "convert/analysis/attribute_weights.hpp"
#include "convert/prepare.hpp"
#include "convert/step/optimizers.hpp"
#include "core/environment.hpp"
#include "core/memory.hpp"
#include "core/version.hpp"
#include "engine/check_types.hpp"
#include "engine/gradients.hpp"
#include "model/describe.hpp"
#include "onnx/odd_updates.hpp"
#include "run/data/raw_columns.hpp"

namespace onnxtrain::api {

namespace {
thread_local std::string last_code, last_message, last_hint;
}

ot_status remember(const Error& e) {
  last_code = e.code();
  last_message = e.message();
  last_hint = e.hint();
  return ot_status(int(e.kind()));
}

ot_status remember_other(const char* what) {
  last_code = "OT9001";
  last_message = what;
  last_hint.clear();
  return OT_FAILED;
}

void check_needed(std::initializer_list<Needed> arguments) {
  for (const Needed& a : arguments)
    if (!a.given) usage_error("OT1129", cat("the argument '", a.name, "' is NULL"));
}

void check_lists(size_t n, const char* const* names, ot_value* const* values) {
  if (n > 0) check_needed({{"names", names}, {"values", values}});
  for (size_t k = 0; k < n; ++k) {
    if (!names[k]) usage_error("OT1129", cat("name ", k, " is NULL"));
    if (!values[k]) usage_error("OT1129", cat("the value of '", names[k], "' is NULL"));
  }
}

Feeds feeds_of(size_t n, const char* const* names, ot_value* const* values) {
  check_lists(n, names, values);
  Feeds f;
  for (size_t k = 0; k < n; ++k) f[names[k]] = values[k]->v;
  return f;
}

ProgramOptions options_of(const ot_options* o) {
  ProgramOptions p;
  if (o) p.threads = o->threads;
  // older callers do not have these fields
  constexpr size_t kWithMemory = offsetof(ot_options, memory) + sizeof(uint64_t);
  constexpr size_t kWithLimits = offsetof(ot_options, seconds) + sizeof(double);
  if (o && o->size >= kWithMemory) p.limits.memory = size_t(o->memory);
  if (o && o->size >= kWithLimits) {
    p.limits.loop_trips = int64_t(o->loop_trips);
    p.limits.seconds = o->seconds;
  }
  p.limits = with_environment(p.limits);
  return p;
}

uint64_t seed_of(const ot_options* o) { return o ? o->seed : 0; }

namespace {

ot_text* text(std::string s) { return new ot_text{std::move(s)}; }
ot_model* model(Model m) {
  check_environment();  // every use of the library comes by here
  return new ot_model{std::make_shared<const Model>(std::move(m))};
}

std::string findings_json(const std::vector<Finding>& list) {
  nlohmann::json j = nlohmann::json::array();
  for (const Finding& f : list)
    j.push_back({{"level", f.level == Finding::Level::kError ? "error" : "warning"},
                 {"code", f.code},
                 {"rule", f.rule},
                 {"message", f.message},
                 {"hint", f.hint}});
  return j.dump();
}

// What the checker found, what operators object to, and updates that can hardly be meant.
template <class Load>
ot_text* checked(std::vector<Finding> found, Load&& load) {
  Model m;
  found = with_types_checked(std::move(found), [&]() -> const Model& { return m = load(); });
  add_odd_updates(m, found);
  return text(findings_json(found));
}

}  // namespace
}  // namespace onnxtrain::api

using namespace onnxtrain;
using namespace onnxtrain::api;

ot_error_info ot_last_error(void) {
  return {last_code.c_str(), last_message.c_str(), last_hint.c_str()};
}
const char* ot_version(void) { return onnxtrain::version(); }
const char* ot_optimizers(void) { return onnxtrain::optimizer_records().c_str(); }
const char* ot_functions(void) { return onnxtrain::function_texts().c_str(); }

const char* ot_text_data(const ot_text* t) { return t ? t->data.data() : nullptr; }
size_t ot_text_size(const ot_text* t) { return t ? t->data.size() : 0; }
void ot_text_free(ot_text* t) { delete t; }

ot_status ot_model_load(const char* path, ot_model** out) {
  return guarded({{"path", path}, {"out", out}},
                 [&] { *out = model(load_model(path, all_ops())); });
}
ot_status ot_model_load_mapped(const char* path, ot_model** out) {
  return guarded({{"path", path}, {"out", out}}, [&] {
    LoadOptions o;
    o.limits.mapped_bytes = 1 << 12;
    *out = model(load_model(path, all_ops(), o));
  });
}
ot_status ot_model_load_bytes(const void* data, size_t size, const char* base_dir, ot_model** out) {
  return guarded({{"out", out}, {"data", size ? data : ""}}, [&] {
    *out = model(load_model_bytes({static_cast<const char*>(data), size}, base_dir ? base_dir : "",
                                  all_ops()));
  });
}
ot_status ot_model_parse(const char* onnx_text, ot_model** out) {
  return guarded({{"onnx_text", onnx_text}, {"out", out}},
                 [&] { *out = model(parse_model(onnx_text, all_ops())); });
}
void ot_model_free(ot_model* m) { delete m; }
ot_status ot_model_save(const ot_model* m, const char* path) {
  return guarded({{"m", m}, {"path", path}}, [&] { save_model(*m->m, path, all_ops()); });
}
ot_status ot_model_export(const ot_model* m, const char* path) {
  return guarded({{"m", m}, {"path", path}}, [&] {
    SaveOptions o;
    o.inference_only = true;
    save_model(with_attribute_weights(*m->m, all_ops()), path, all_ops(), o);
  });
}
ot_status ot_model_bytes(const ot_model* m, int inference_only, ot_text** out) {
  return guarded({{"m", m}, {"out", out}}, [&] {
    SaveOptions o;
    o.inference_only = inference_only != 0;
    *out = text(inference_only
                    ? serialize_model(with_attribute_weights(*m->m, all_ops()), all_ops(), o)
                    : serialize_model(*m->m, all_ops(), o));
  });
}
ot_status ot_model_info(const ot_model* m, ot_text** json) {
  return guarded({{"m", m}, {"json", json}}, [&] {
    std::string described = describe_json(*m->m);
    nlohmann::ordered_json known;  // texts that inputs of text tell apart
    const Graph& g = m->m->main;
    for (ValueId v : g.inputs)
      if (g.value(v).type.is_tensor() && g.value(v).type.elem == DType::kString)
        if (auto texts = run::categories_of(g, v); !texts.empty())
          known[g.value_name(v)] = std::move(texts);
    if (!known.empty()) {
      auto all = nlohmann::ordered_json::parse(described);
      all["categories"] = std::move(known);
      described = all.dump();
    }
    *json = text(std::move(described));
  });
}
ot_status ot_model_initializer(const ot_model* m, const char* name, ot_value** out) {
  return guarded({{"m", m}, {"name", name}, {"out", out}}, [&] {
    const Tensor* t = m->m->initializer(name);
    if (!t)
      model_error("OT1121", cat("the model has no initializer named '", name, "'"),
                  "the names are in  onnxtrain info MODEL --weights");
    // the caller may write to what it gets
    *out = new ot_value{are_zero_pages(t->owner()) ? t->clone() : *t};
  });
}
ot_status ot_model_set_initializer(ot_model* m, const char* name, const ot_value* value) {
  return guarded({{"m", m}, {"name", name}, {"value", value}}, [&] {
    const Tensor* t = std::get_if<Tensor>(&value->v);
    if (!t) usage_error("OT1120", cat("the new value of '", name, "' is not a tensor"));
    Model copy = *m->m;
    copy.set_initializer(name, t->clone());
    m->m = std::make_shared<const Model>(std::move(copy));
  });
}
ot_status ot_check_file(const char* path, ot_text** json) {
  return guarded({{"path", path}, {"json", json}}, [&] {
    *json = checked(check_model_file(path, all_ops()), [&] { return load_model(path, all_ops()); });
  });
}
ot_status ot_check_bytes(const void* data, size_t size, const char* base_dir, ot_text** json) {
  return guarded({{"json", json}, {"data", size ? data : ""}}, [&] {
    std::string_view bytes(static_cast<const char*>(data), size);
    std::string base = base_dir ? base_dir : "";
    *json = checked(check_model_bytes(bytes, base, all_ops()),
                    [&] { return load_model_bytes(bytes, base, all_ops()); });
  });
}
ot_status ot_model_weights(const ot_model* m, const char* recipe, ot_text** json) {
  return guarded({{"m", m}, {"json", json}}, [&] {
    *json = text(weights_json(*m->m, recipe_from_json(recipe ? recipe : "{}")));
  });
}

ot_status ot_prepare(const ot_model* m, const char* recipe, ot_model** out) {
  return guarded({{"m", m}, {"out", out}}, [&] {
    *out = model(prepare(*m->m, recipe_from_json(recipe ? recipe : "{}"), all_ops()));
  });
}

ot_status ot_prepare_for(const ot_model* m, const char* recipe, const ot_value* target,
                         ot_model** out) {
  return guarded({{"m", m}, {"target", target}, {"out", out}}, [&] {
    const Tensor* t = std::get_if<Tensor>(&target->v);
    if (!t) usage_error("OT1120", "the target is not a tensor");
    *out = model(run::prepare_for(*m->m, recipe_from_json(recipe ? recipe : "{}"), *t));
  });
}

ot_status ot_session_create(const ot_model* m, const ot_options* o, ot_session** out) {
  return guarded({{"m", m}, {"out", out}},
                 [&] { *out = new ot_session{std::make_unique<Session>(m->m, options_of(o))}; });
}
void ot_session_free(ot_session* s) { delete s; }
ot_status ot_session_run(ot_session* s, size_t n_inputs, const char* const* input_names,
                         ot_value* const* inputs, size_t n_outputs, const char* const* output_names,
                         ot_value** values) {
  return guarded({{"s", s}, {"values", values}}, [&] {
    std::vector<std::string> names;
    if (output_names) names.assign(output_names, output_names + n_outputs);
    auto result = s->s->run(feeds_of(n_inputs, input_names, inputs), names);
    for (size_t k = 0; k < result.size(); ++k)
      values[k] = new ot_value{std::move(result[k].second)};
  });
}
size_t ot_session_output_count(const ot_session* s) {
  return s ? s->s->model().main.outputs.size() : 0;
}
const char* ot_session_output_name(const ot_session* s, size_t index) {
  if (index >= ot_session_output_count(s)) return nullptr;
  const Graph& g = s->s->model().main;
  return g.value_name(g.outputs[index]).c_str();
}

ot_status ot_gradients(const ot_model* m, size_t n_inputs, const char* const* input_names,
                       ot_value* const* inputs, size_t n_of, const char* const* of,
                       ot_value* const* cotangents, size_t n_wrt, const char* const* wrt,
                       const ot_options* o, ot_value** results) {
  return guarded({{"m", m}, {"results", results}, {"wrt", wrt}}, [&] {
    GradientRequest r;
    if (of) r.of.assign(of, of + n_of);
    r.wrt.assign(wrt, wrt + n_wrt);
    if (of && cotangents)
      for (size_t k = 0; k < n_of; ++k)
        if (cotangents[k]) r.cotangents[of[k]] = std::get<Tensor>(cotangents[k]->v);
    auto out = gradients(*m->m, feeds_of(n_inputs, input_names, inputs), r, options_of(o));
    for (size_t k = 0; k < out.size(); ++k) results[k] = new ot_value{std::move(out[k].second)};
  });
}
