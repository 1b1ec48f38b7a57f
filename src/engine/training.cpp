// Programs over a shared State.
#include "engine/training.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "core/closest.hpp"
#include "engine/batch_rows.hpp"
#include "engine/fed_state.hpp"
#include "engine/number_at.hpp"
#include "engine/training_section.hpp"
#include "runtime/finite.hpp"

namespace onnxtrain {

int find_loss(const Graph& g, size_t own_outputs) {
  int found = -1;
  for (size_t k = 0; k < own_outputs; ++k) {
    const ValueDef& d = g.value(g.outputs[k]);
    if (d.name == "loss") return int(k);
    bool scalar = d.type.is_tensor() && dtype_is_float(d.type.elem) &&
                  (!d.type.shape || d.type.shape->empty());
    if (scalar && found < 0) found = int(k);
  }
  return found;
}

namespace {

double scalar_of(const Value& v) {
  const Tensor* t = std::get_if<Tensor>(&v);
  return t && t->size() == 1 ? t->to_doubles()[0] : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

int Training::algorithms() const { return int(algorithms_.size()); }

std::vector<std::string> Training::input_names(int i) const {
  std::vector<std::string> names;
  for (const auto& d : algorithms_[size_t(i)]->inputs) names.push_back(d.name);
  return names;
}

const ValueDef& Training::input(int i, const std::string& name) const {
  for (const auto& d : algorithms_[size_t(i)]->inputs)
    if (d.name == name) return d;
  unknown_feed(name, input_names(i));
}

void Training::check_which(int which) const {
  if (which >= algorithms())
    throw Error(ErrorKind::kUsage, "OT1124",
                cat("step(", which, "): the model has ", algorithms(), " training sections"),
                cat("sections are counted from 0; the last is ", algorithms() - 1));
}

double Training::loss_of(const Algorithm& a) const {
  if (a.loss < 0) return std::numeric_limits<double>::quiet_NaN();
  if (a.blocks) return a.blocks->loss();
  if (!a.last_plan) return scalar_of(a.last_values[size_t(a.loss)]);
  const Plan& p = *a.last_plan;
  const Slot& s = p.slots[size_t(p.graph.outputs[size_t(a.loss)])];
  if (s.type.size() != 1) return std::numeric_limits<double>::quiet_NaN();
  if (s.type.dtype == DType::kFloat && s.place != Place::kConstant)
    return double(*static_cast<const float*>(s.address));
  return scalar_of(Tensor(s.type.dtype, s.type.shape, s.address, nullptr));
}

// Views of the arrays as tensors, checked.
void Training::feed_arrays(Algorithm& a) {
  for (size_t k = 0; k < a.inputs.size(); ++k) {
    const ArrayRef& r = a.arrays[k];
    if (r.dtype == DType::kUndefined)
      data_error(
          "OT2113",
          cat("input '", a.inputs[k].name, "' (", to_string(a.inputs[k].type), ") was not given"),
          cat("add an array '", a.inputs[k].name, "' to --inputs in.npz"));
    a.fed[k] = Tensor(r.dtype, Shape(r.dims, r.dims + r.rank), r.data, nullptr);
    check_feed(a.inputs[k], a.fed[k]);
  }
}

// Arrays of these types were checked before.
bool Training::were_checked(const Algorithm& a) {
  const auto alike = [&](const std::vector<TensorType>& types) {
    for (size_t k = 0; k < types.size(); ++k) {
      const ArrayRef& r = a.arrays[k];
      const Shape& shape = types[k].shape;
      if (r.dtype != types[k].dtype ||
          !std::equal(r.dims, r.dims + r.rank, shape.begin(), shape.end()))
        return false;
    }
    return true;
  };
  return std::any_of(a.checked.begin(), a.checked.end(), alike);
}

// run(guard) runs one algorithm; when the guard trips, the step is refused.
template <class F>
void Training::run_judged(Algorithm& a, const F& run) {
  if (!check_finite_) return run(nullptr);
  // Finite gradients can still make weights that are not, if they or the learning rate are
  // enormous: then the state is kept aside and looked at afterwards.
  constexpr double kLargeNorm = 1e9, kLargeLr = 100;
  std::vector<Kept> before;
  Guard guard;
  guard.loss_output = a.loss;
  guard.before_writes = [this, &before](double norm) {
    if (norm < kLargeNorm && (!has_lr() || std::fabs(lr()) < kLargeLr)) return;
    for (const auto& name : state_->names()) keep(name, before);
  };
  run(&guard);
  if (guard.tripped) refuse(a, guard);
  if (!before.empty()) check_written(before);
  last_norm_ = guard.gradient_norm;
  last_zeros_ = {guard.gradients, guard.zeros, guard.narrow_zeros};
}

void Training::run_algorithm(Algorithm& a, const ArrayRef* arrays) {
  for (size_t k = 0; k < a.arrays.size(); ++k) a.arrays[k] = arrays[a.slots[k]];
  if (a.blocks) return run_blocks(a);
  run_judged(a, [&](Guard* guard) {
    a.last_plan = a.program->run_again(a.arrays.data(), seed_, step_count_, guard);
    if (a.last_plan) return;
    feed_arrays(a);
    a.program->plan_for(a.fed);
    a.last_plan = a.program->run_again(a.arrays.data(), seed_, step_count_, guard);
    if (!a.last_plan) a.last_values = a.program->run(a.fed, seed_, step_count_, {}, guard);
  });
}

void Training::run_blocks(Algorithm& a) {
  if (!were_checked(a)) {
    feed_arrays(a);
    constexpr size_t kMost = 16;  // batches of so many sizes
    if (a.checked.size() == kMost) a.checked.clear();
    std::vector<TensorType>& types = a.checked.emplace_back();
    for (const ArrayRef& r : a.arrays) types.push_back({r.dtype, Shape(r.dims, r.dims + r.rank)});
  }
  run_judged(a, [&](Guard* guard) {
    a.blocks->run(a.arrays.data(), *cut_, seed_, step_count_, guard);
    if (guard) guard->tripped |= a.blocks->tripped();
  });
}

// One step: run(algorithm) for each that is wanted. A later one may refuse: then what the earlier
// ones assigned is taken back.
template <class F>
double Training::run_sections(int which, const F& run) {
  std::vector<Kept> earlier;
  if (check_finite_ && which < 0)
    for (int i = 0; i + 1 < algorithms(); ++i)
      for (const auto& [key, value] : model_->training[size_t(i)].update_binding)
        keep(key, earlier);
  double loss = std::numeric_limits<double>::quiet_NaN();
  try {
    for (int i = 0; i < algorithms(); ++i) {
      if (which >= 0 && i != which) continue;
      Algorithm& a = *algorithms_[size_t(i)];
      run(a);
      if (a.loss >= 0) loss = loss_of(a);
    }
  } catch (const NotFiniteError&) {
    restore(earlier);
    throw;
  }
  ++step_count_;
  last_loss_ = loss;
  return loss;
}

double Training::step_arrays(const ArrayRef* arrays, int which, uint64_t n) {
  check_which(which);
  // blocks ask all processes: one of them may have no rows
  if (!cut_)
    require_some_rows(slots_, [&](size_t k) {
      return arrays[k].dtype == DType::kUndefined || arrays[k].rank == 0 ? -1 : arrays[k].dims[0];
    });
  double loss = std::numeric_limits<double>::quiet_NaN();
  for (uint64_t k = 0; k < n; ++k) {
    if (cut_) cut_batch(arrays);
    loss = run_sections(which, [&](Algorithm& a) { run_algorithm(a, arrays); });
  }
  remember_outputs(which);
  return loss;
}

void Training::remember_outputs(int which) {
  if (which == last_which_) return;
  last_which_ = which;
  last_outputs_.clear();
  for (int i = 0; i < algorithms(); ++i)
    if (which < 0 || i == which)
      for (size_t k = 0; k < algorithms_[size_t(i)]->outputs.size(); ++k)
        last_outputs_.emplace_back(i, k);
}

size_t Training::outputs() const { return last_outputs_.size(); }

const std::string& Training::output_name(size_t k) const {
  auto [i, o] = last_outputs_.at(k);
  return algorithms_[size_t(i)]->outputs[o];
}

bool Training::output_is_state(size_t k) const {
  auto [i, o] = last_outputs_.at(k);
  return algorithms_[size_t(i)]->is_state[o] != 0;
}

Value Training::output(size_t k) const {
  auto [i, o] = last_outputs_.at(k);
  const Algorithm& a = *algorithms_[size_t(i)];
  if (a.blocks) return a.blocks->output(o);
  if (!a.last_plan) return a.last_values.at(o);
  ValueId v = a.last_plan->graph.outputs[o];
  const Slot& s = a.last_plan->slots[size_t(v)];
  if (s.place == Place::kConstant) return a.last_plan->graph.value(v).constant.clone();
  return Tensor(s.type.dtype, s.type.shape, s.address, nullptr).clone();
}

namespace {

// One input is missing and one name is nobody's: that is a typing mistake.
void check_names(const Feeds& feeds, const std::vector<ValueDef>& slots) {
  std::string missing, unknown;
  for (const ValueDef& d : slots)
    if (feeds.count(d.name) == 0 && !d.constant.defined()) missing = d.name;
  if (missing.empty()) return;
  for (const auto& [name, value] : feeds)
    if (std::none_of(slots.begin(), slots.end(),
                     [&, &fed = name](const ValueDef& d) { return d.name == fed; }))
      unknown = name;
  if (unknown.empty() || closest(unknown, {missing}).empty()) return;
  data_error("OT2112", cat("there is no input named '", unknown, "'"),
             cat("did you mean '", missing, "'?"));
}

}  // namespace

void Training::accept(const std::string& input, DType type) {
  auto change = [&](std::vector<ValueDef>& inputs) {
    for (ValueDef& d : inputs)
      if (d.name == input) d.type.elem = type;
  };
  change(slots_);
  for (auto& a : algorithms_) {
    change(a->inputs);
    a->checked.clear();
  }
}

StepResult Training::step(const Feeds& feeds, int which, bool outputs) {
  check_which(which);
  std::vector<ArrayRef>& arrays = arrays_;
  arrays.assign(slots_.size(), {});
  bool tensors = true;
  for (size_t k = 0; k < slots_.size(); ++k) {
    auto it = feeds.find(slots_[k].name);
    if (it == feeds.end()) continue;
    const Tensor* t = std::get_if<Tensor>(&it->second);
    if (!t) {
      tensors = false;
      continue;
    }
    arrays[k] = {const_cast<void*>(t->data()), t->shape().data(), int(t->rank()), t->dtype()};
  }
  check_names(feeds, slots_);
  FedState fed(*state_, *model_, feeds);
  StepResult r;
  r.loss = tensors ? step_arrays(arrays.data(), which) : step_values(feeds, which);
  for (int i = 0; i < algorithms(); ++i)
    if (which < 0 || i == which) fed.assigned(model_->training[size_t(i)]);
  for (size_t k = 0; outputs && k < last_outputs_.size(); ++k)
    r.outputs.emplace_back(output_name(k), output(k));
  return r;
}

// Feeds of which one is a sequence, a map or an optional.
double Training::step_values(const Feeds& feeds, int which) {
  if (cut_)
    data_error("OT5013", "a batch with a sequence, a map or an optional cannot be cut into blocks",
               "train in one process, without --micro-blocks");
  double loss = run_sections(which, [&](Algorithm& a) {
    for (size_t k = 0; k < a.inputs.size(); ++k) {
      auto it = feeds.find(a.inputs[k].name);
      if (it == feeds.end())
        data_error(
            "OT2113",
            cat("input '", a.inputs[k].name, "' (", to_string(a.inputs[k].type), ") was not given"),
            cat("add an array '", a.inputs[k].name, "' to --inputs in.npz"));
      check_feed(a.inputs[k], it->second);
      a.fed[k] = it->second;
    }
    a.last_plan = nullptr;
    run_judged(a, [&](Guard* guard) {
      a.last_values = a.program->run(a.fed, seed_, step_count_, {}, guard);
    });
  });
  remember_outputs(which);
  return loss;
}

void Training::refuse(Algorithm& a, const Guard& guard) {
  if (a.blocks) refuse_blocks(a);
  if (a.last_plan) feed_arrays(a);
  double loss = a.loss >= 0 ? loss_of(a) : 0;
  const NotFiniteValue bad = a.program->trace_not_finite(a.fed, seed_, step_count_, guard);
  not_finite_error(loss, bad.name, bad.origin);
}

void Training::not_finite_error(double loss, const std::string& name, std::string origin) {
  constexpr std::string_view kEnd = "_grad";
  std::string parameter = name;
  if (parameter.ends_with(kEnd)) parameter.resize(parameter.size() - kEnd.size());
  const bool named = parameter != name && state_->has(parameter);
  std::string subject = std::isnan(loss)       ? "loss became NaN"
                        : !std::isfinite(loss) ? "loss became infinite"
                        : named ? cat("the gradient of '", parameter, "' became NaN or infinite")
                        : state_->has(name)
                            ? cat("the new value of '", name, "' became NaN or infinite")
                            : "a gradient became NaN or infinite";
  throw NotFiniteError(subject, std::move(origin), step_count_ + 1, last_loss_, last_norm_);
}

void Training::check_written(const std::vector<Kept>& before) {
  std::string bad;
  for (const Kept& k : before)
    if (bad.empty() && not_finite(k.state->get(k.name)) && !not_finite(k.value)) bad = k.name;
  bad = first_of_all(bad);
  if (bad.empty()) return;
  restore(before);
  throw NotFiniteError("the new value of a state variable became NaN or infinite",
                       cat("state variable '", bad, "', after the update"), step_count_ + 1,
                       last_loss_, last_norm_);
}

double Training::lr() const {
  if (lr_name_.empty())
    throw Error(ErrorKind::kUsage, "OT1125",
                "the training file has no single learning rate that could be read or set");
  const Tensor& t = state_->get(lr_name_);
  return number_at(t.dtype(), t.data());
}

void Training::set_lr(double r) {
  if (!(r >= 0) || !std::isfinite(r))
    usage_error("OT1233", cat("the learning rate is ", r, ", it must be 0 or more"),
                "for example 0.001");
  lr();
  Tensor t(state_->get(lr_name_).dtype(), state_->get(lr_name_).shape());
  dispatch<float, double>(t.dtype(), "the learning rate", [&]<class T>() {
    for (int64_t k = 0; k < t.size(); ++k) t.as<T>()[k] = T(r);
  });
  state_->set(lr_name_, t);
}

void Training::limit_threads(int threads) {
  if (options_.threads != 0 || threads >= pool_->threads()) return;
  std::destroy_at(pool_.get());  // in its place: programs and evaluations hold this pool
  std::construct_at(pool_.get(), threads);
}

void Training::set_observer(StepObserver* observer) {
  for (auto& a : algorithms_) {
    a->program->set_observer(observer);
    if (a->blocks) a->blocks->set_observer(observer);
  }
}

std::vector<const Plan*> Training::plans() const {
  std::vector<const Plan*> all;
  for (const auto& a : algorithms_)
    for (const Plan* p : a->blocks ? a->blocks->plans() : a->program->plans()) all.push_back(p);
  return all;
}

void Training::read_gradients(const Feeds& feeds, const GradientReader& read) {
  for (auto& a : algorithms_) {
    for (size_t k = 0; k < a->inputs.size(); ++k)
      if (auto it = feeds.find(a->inputs[k].name); it != feeds.end()) a->fed[k] = it->second;
    a->program->read_gradients(a->fed, seed_, step_count_, read);
  }
}

Plan& Training::plan_for(const Feeds& feeds, int which) {
  Algorithm& a = *algorithms_[size_t(std::max(0, which))];
  for (size_t k = 0; k < a.inputs.size(); ++k) a.fed[k] = feeds.at(a.inputs[k].name);
  return a.program->plan_for(a.fed);
}

}  // namespace onnxtrain
