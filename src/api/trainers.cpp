// The C API: trainers, their steps and their state.
#include <utility>

#include <nlohmann/json.hpp>

#include "api/handles.hpp"
#include "core/memory.hpp"
#include "onnx/odd_updates.hpp"

using namespace onnxtrain;
using namespace onnxtrain::api;

namespace {
ot_trainer* new_trainer(std::shared_ptr<const Model> m, const ot_options* o) {
  const uint64_t seed = seed_of(o);
  refuse_impossible_updates(*m);
  return new ot_trainer(
      run::Run(std::make_unique<Training>(std::move(m), seed, options_of(o)), seed));
}
}  // namespace

ot_status ot_trainer_create(const ot_model* m, const ot_options* o, ot_trainer** out) {
  return guarded({{"m", m}, {"out", out}}, [&] { *out = new_trainer(m->m, o); });
}
ot_status ot_trainer_take(ot_model* m, const ot_options* o, ot_trainer** out) {
  return guarded({{"m", m}, {"out", out}}, [&] {
    if (m->m->training.empty()) delete new_trainer(m->m, o);  // refuses
    *out = new_trainer(std::exchange(m->m, std::make_shared<const Model>()), o);
  });
}
void ot_trainer_free(ot_trainer* t) { delete t; }
ot_status ot_trainer_initialize(ot_trainer* t) {
  return guarded({{"t", t}}, [&] { t->t().initialize(); });
}
ot_status ot_trainer_memory(const ot_trainer* t, ot_text** json) {
  return guarded({{"t", t}, {"json", json}}, [&] {
    const PlannedMemory m = t->t().memory();
    nlohmann::ordered_json j{{"state_bytes", m.state},
                             {"step_bytes", m.arena},
                             {"step_bytes_without_limit", m.whole},
                             {"nodes_computed_twice", m.recomputed},
                             {"peak_process_bytes", peak_resident_bytes()}};
    if (const Training::Shards s = t->t().shards(); !s.of_rank.empty()) {
      j["optimizer_state_bytes"] = s.bytes;
      j["optimizer_state_bytes_of_rank"] = s.of_rank;
    }
    *json = new ot_text{j.dump()};
  });
}

ot_status ot_trainer_step(ot_trainer* t, size_t n_inputs, const char* const* input_names,
                          ot_value* const* inputs, int which, double* loss) {
  return guarded({{"t", t}}, [&] {
    const Feeds feeds = feeds_of(n_inputs, input_names, inputs);
    std::lock_guard lock(t->stepping);
    const double l = t->run.step(feeds, which);
    if (loss) *loss = l;
  });
}
ot_status ot_trainer_steps(ot_trainer* t, size_t n_inputs, const char* const* input_names,
                           ot_value* const* inputs, uint64_t n, double* loss) {
  return guarded({{"t", t}}, [&] {
    const Feeds feeds = feeds_of(n_inputs, input_names, inputs);
    std::lock_guard lock(t->stepping);
    for (uint64_t k = 0; k < n; ++k) {
      const double l = t->run.step(feeds, -1);
      if (loss) *loss = l;
    }
  });
}
size_t ot_trainer_input_count(const ot_trainer* t) { return t ? t->t().slots().size() : 0; }
const char* ot_trainer_input_name(const ot_trainer* t, size_t index) {
  return index < ot_trainer_input_count(t) ? t->t().slots()[index].name.c_str() : nullptr;
}
ot_status ot_trainer_step_arrays(ot_trainer* t, const ot_array* inputs, int which, uint64_t n,
                                 double* loss) {
  return guarded({{"t", t}}, [&] {
    std::lock_guard lock(t->stepping);
    std::vector<ArrayRef>& a = t->arrays;
    a.resize(t->t().slots().size());
    if (!a.empty()) check_needed({{"inputs", inputs}});
    for (size_t k = 0; k < a.size(); ++k) {
      const ot_array& x = inputs[k];
      if (x.data && (x.rank < 0 || (x.rank > 0 && !x.dims)))
        usage_error("OT1129",
                    cat("array ", k, " has rank ", x.rank, " and ", x.dims ? "sizes" : "no sizes"));
      a[k] = x.data ? ArrayRef{x.data, x.dims, x.rank, checked_dtype(x.dtype)} : ArrayRef{};
      if (a[k].dtype == DType::kString)
        usage_error("OT1129", "strings are made with ot_value_strings");
    }
    const double l = t->run.step_arrays(a, which, n);
    if (loss) *loss = l;
  });
}
size_t ot_trainer_output_count(const ot_trainer* t) { return t ? t->t().outputs() : 0; }
const char* ot_trainer_output_name(const ot_trainer* t, size_t index) {
  return index < ot_trainer_output_count(t) ? t->t().output_name(index).c_str() : nullptr;
}
int ot_trainer_output_is_state(const ot_trainer* t, size_t index) {
  return index < ot_trainer_output_count(t) && t->t().output_is_state(index);
}
ot_status ot_trainer_output(const ot_trainer* t, size_t index, ot_value** out) {
  return guarded({{"t", t}, {"out", out}}, [&] {
    if (index >= t->t().outputs())
      usage_error("OT1129",
                  cat("there is no output ", index, "; the last step has ", t->t().outputs()));
    *out = new ot_value{t->t().output(index)};
  });
}
ot_status ot_trainer_state_names(const ot_trainer* t, ot_text** json) {
  return guarded({{"t", t}, {"json", json}},
                 [&] { *json = new ot_text{nlohmann::json(t->t().state().names()).dump()}; });
}
ot_status ot_trainer_get(const ot_trainer* t, const char* name, ot_value** out) {
  return guarded({{"t", t}, {"name", name}, {"out", out}}, [&] {
    if (t->t().is_shared_out(name)) const_cast<ot_trainer*>(t)->t().gather_state();
    *out = new ot_value{t->t().state().get(name).clone()};
  });
}
ot_status ot_trainer_set(ot_trainer* t, const char* name, const ot_value* value) {
  return guarded({{"t", t}, {"name", name}, {"value", value}}, [&] {
    const Tensor* x = std::get_if<Tensor>(&value->v);
    if (!x) usage_error("OT1120", cat("the new value of '", name, "' is not a tensor"));
    t->t().state().get(name);  // an unknown name is an error, not a new variable
    t->t().state().set(name, *x);
  });
}
ot_status ot_trainer_rate(const ot_trainer* t, double* rate) {
  return guarded({{"t", t}, {"rate", rate}}, [&] { *rate = t->t().lr(); });
}
ot_status ot_trainer_set_rate(ot_trainer* t, double rate) {
  return guarded({{"t", t}}, [&] { t->t().set_lr(rate); });
}
uint64_t ot_trainer_step_count(const ot_trainer* t) { return t ? t->t().step_count() : 0; }
ot_status ot_trainer_set_step_count(ot_trainer* t, uint64_t steps) {
  return guarded({{"t", t}}, [&] { t->t().set_step_count(steps); });
}
ot_status ot_trainer_model(const ot_trainer* t, ot_model** out) {
  return guarded({{"t", t}, {"out", out}}, [&] {
    const_cast<ot_trainer*>(t)->t().gather_state();
    *out = new ot_model{std::make_shared<const Model>(t->t().snapshot())};
  });
}
