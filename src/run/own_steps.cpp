// Steps that a caller makes one by one. What is asked of the training here does not depend on its
// state: an engine keeps that until somebody reads it.
#include <cstring>

#include "engine/batch_rows.hpp"
#include "run/data/target_check.hpp"
#include "run/run.hpp"

namespace onnxtrain::run {

// Is it a target that takes class labels of the file?
bool Run::is_label(const ValueDef& d) {
  const Model& m = t_->source();
  if (!labels_) labels_ = numbers_of_labels(m);
  return !labels_->empty() && d.type.elem == DType::kInt64 && is_target(m, d.name);
}

// Before the first step: targets that the loss does not take, as fit refuses them.
void Run::check_first_target(const std::string& name, const Tensor& given) const {
  const Model& m = t_->source();
  if (t_->step_count() > 0 || given.rank() == 0 || given.size() == 0 ||
      !dtype_is_float(given.dtype()) || !is_target(m, name))
    return;
  LoadedData d;
  d.feeds = {{name}, {memory_column(given)}, name};
  d.target = target_facts(Dataset::from_tensors({{name, given}}), name, *d.feeds.columns[0]);
  Observer nobody;
  check_target(m, d, nobody);
}

double Run::step(Feeds feeds, int which) {
  for (const auto& [name, value] : feeds)
    if (const Tensor* given = std::get_if<Tensor>(&value)) check_first_target(name, *given);
  Training& t = *t_;
  for (const ValueDef& d : t.slots())
    if (auto it = feeds.find(d.name); it != feeds.end() && is_label(d))
      if (Tensor* given = std::get_if<Tensor>(&it->second);
          given && given->dtype() == DType::kInt64)
        *given = class_numbers(d.name, *given, *labels_);
  if (!has_engine()) return t.step(feeds, which, false).loss;
  if (which >= 0 && t.algorithms() > 1)
    usage_error("OT1277", "an engine makes a step of all training sections, not of a single one");
  require_some_rows(t.slots(), [&](size_t k) {
    const auto it = feeds.find(t.slots()[k].name);
    const Tensor* x = it == feeds.end() ? nullptr : std::get_if<Tensor>(&it->second);
    return x && x->rank() > 0 ? x->shape()[0] : -1;
  });
  return stepper().step(feeds);
}

double Run::step_arrays(std::vector<ArrayRef>& arrays, int which, uint64_t n) {
  if (has_engine()) usage_error("OT1277", "with an engine, steps are made by ot_trainer_step");
  const std::vector<ValueDef>& slots = t_->slots();
  std::vector<Tensor> labels;  // that take the place of the caller's
  for (size_t k = 0; k < arrays.size(); ++k) {
    ArrayRef& a = arrays[k];
    if (!a.data || a.dtype != DType::kInt64 || !is_label(slots[k])) continue;
    Tensor given(DType::kInt64, Shape(a.dims, a.dims + a.rank));
    std::memcpy(given.data(), a.data, given.bytes());
    labels.push_back(class_numbers(slots[k].name, given, *labels_));
    a.data = labels.back().data();
  }
  for (size_t k = 0; t_->step_count() == 0 && k < arrays.size(); ++k) {
    const ArrayRef& a = arrays[k];
    if (a.data && a.rank > 0)
      check_first_target(slots[k].name,
                         Tensor(a.dtype, Shape(a.dims, a.dims + a.rank), a.data, nullptr));
  }
  return t_->step_arrays(arrays.data(), which, n);
}

}  // namespace onnxtrain::run
