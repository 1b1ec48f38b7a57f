// The run loop.
#include "runtime/executor.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "core/budget.hpp"
#include "core/mapped.hpp"
#include "runtime/copy.hpp"
#include "runtime/dynamic_step.hpp"
#include "runtime/finite.hpp"

namespace onnxtrain {

namespace {

Tensor owned(const Value& v) {
  const Tensor& t = std::get<Tensor>(v);
  return t.owner() ? t : t.clone();
}

void bind_input(Plan& plan, size_t k, void* data) {
  if (plan.bound_inputs[k] == data) return;
  for (void** p : plan.input_pointers[k]) *p = data;
  plan.slots[size_t(plan.graph.inputs[k])].address = data;
  plan.bound_inputs[k] = data;
}

void bind_inputs(Plan& plan, const std::vector<Value>& inputs, RunFrame& f) {
  for (size_t k = 0; k < plan.graph.inputs.size(); ++k) {
    ValueId v = plan.graph.inputs[k];
    if (plan.slots[size_t(v)].place == Place::kDynamic) {
      f.values[size_t(v)] = inputs[k];
      f.present[size_t(v)] = 1;
      continue;
    }
    bind_input(plan, k, const_cast<void*>(std::get<Tensor>(inputs[k]).data()));
  }
}

void assign_updates(Plan& plan, RunFrame& f) {
  for (const Update& u : plan.updates) {
    if (u.in_place) continue;
    const Slot& s = plan.slots[size_t(u.value)];
    if (s.place == Place::kDynamic) {
      const Tensor* t = std::get_if<Tensor>(&f.values[size_t(u.value)]);
      if (!t) model_error("OT1108", cat("the update of '", u.state, "' is not a tensor"));
      check_update(u, t->dtype(), t->shape());
      copy_elements(t->dtype(), u.to, t->data(), t->size(), t->bytes());
    } else if (u.bytes) {
      copy_elements(s.type.dtype, u.to, s.address, s.type.size(), u.bytes);
    }
  }
}

// What a value holds, and whether it is finite; `gradient`: read by an optimizer.
struct Seen {
  double squares = 0;
  bool counts = false;  // as a gradient
};
Seen look_at(RunFrame& f, Guard& guard, ValueId v, bool gradient) {
  constexpr double kSmallSquare = 0x1p-36;  // of 2^-18, a number of six bits in float16
  const Slot& s = f.plan.slots[size_t(v)];
  double squares = 0;
  size_t rank = 0;
  int64_t count = 0;
  DType dtype = s.type.dtype;
  if (s.place == Place::kDynamic || s.place == Place::kConstant) {
    Value holder;
    const Value* value = read_value(f, v, holder);
    const Tensor* t = value ? std::get_if<Tensor>(value) : nullptr;
    if (!t) return {};
    rank = size_t(t->rank());
    count = t->size();
    dtype = t->dtype();
    squares = sum_of_squares(t->dtype(), t->data(), t->size(), *f.options.pool);
  } else {  // nothing is allocated
    rank = s.type.shape.size();
    count = s.type.size();
    squares = sum_of_squares(s.type.dtype, s.address, s.type.size(), *f.options.pool);
  }
  const bool counts = gradient && rank > 0;
  if (counts) {
    ++guard.gradients;
    guard.zeros += squares == 0;
    guard.narrow_zeros += dtype == DType::kFloat16 && squares < kSmallSquare * double(count);
  }
  if (!std::isfinite(squares) && !guard.tripped) {
    guard.bad = v;
    guard.tripped = true;
  }
  return {squares, counts};
}

// The plan's narrow gradients that this step has made.
void look_at_narrow(RunFrame& f, Guard& guard, size_t step, size_t& next) {
  for (; next < f.plan.narrow.size() && f.plan.narrow[next].step == step; ++next)
    guard.narrow_squares += look_at(f, guard, f.plan.narrow[next].value, true).squares;
}

// Is all that the writing steps and the assignments will read finite? norm: of all that.
bool passes_here(RunFrame& f, Guard& guard, double& norm) {
  if (guard.tripped) return false;
  double all = guard.narrow_squares, gradients = all;
  bool any = guard.gradients > 0;
  auto look = [&](ValueId v, bool gradient) {
    const Seen seen = look_at(f, guard, v, gradient);
    all += seen.squares;
    gradients += seen.counts ? seen.squares : 0;
    any |= seen.counts;
    return !guard.tripped;
  };
  if (guard.loss_output >= 0 && !look(f.plan.graph.outputs[size_t(guard.loss_output)], false))
    return false;
  all = guard.narrow_squares;
  for (const auto& [v, gradient] : f.plan.watched)
    if (!look(v, gradient)) return false;
  if (any) guard.gradient_norm = std::sqrt(gradients);
  norm = f.plan.assigns_unseen ? HUGE_VAL : std::sqrt(all);
  return true;
}

bool passes(RunFrame& f, Guard& guard) {
  double norm = 0;
  bool passed = passes_here(f, guard, norm);
  if (guard.agree) passed = guard.agree(guard, passed, norm);
  guard.tripped |= !passed;
  if (passed && guard.before_writes) guard.before_writes(norm);
  return passed;
}

void show(RunFrame& f, const Step& s) {
  for (ValueId v : f.plan.graph.nodes[size_t(s.node)].outputs) {
    if (v == kNone) continue;
    Value holder;
    const Value* value = read_value(f, v, holder);
    if (const Tensor* t = value ? std::get_if<Tensor>(value) : nullptr)
      (*f.options.inspect)(s, v, *t);
  }
}

void run_steps(RunFrame& f, size_t begin, size_t end) {
  const RunOptions& o = f.options;
  const Budget* budget = Budget::current();
  const bool has_narrow = o.guard && begin == 0 && !f.plan.narrow.empty();
  size_t narrow = 0;
  for (size_t k = begin; k < end; ++k) {
    Step& s = f.plan.steps[k];
    if (budget) budget->check_time();
    if (o.observer) o.observer->before(f.plan, s);
    if (s.dynamic) {
      run_dynamic(f, s);
    } else {
      s.kernel(Run{s.in.data(), s.out.data(), s.workspace, o.pool, o.seed, o.step, nullptr});
    }
    if (o.observer) o.observer->after(f.plan, s);
    if (has_narrow) look_at_narrow(f, *o.guard, k, narrow);
    if (o.inspect) show(f, s);
  }
}

// A copy of result k for the caller. In the memory of the one before where that was given up:
// fresh memory costs more than the copy.
Tensor hand_out(RunFrame& f, size_t k, const Tensor& t) {
  constexpr size_t kKept = size_t(16) << 20, kPiece = size_t(256) << 10;
  if (t.dtype() == DType::kString || t.bytes() > kKept) return t.clone();
  std::vector<Tensor>& handed = f.plan.handed;
  handed.resize(f.plan.graph.outputs.size());
  Tensor& mine = handed[k];
  const bool free =
      mine.owner().use_count() == 1 && mine.dtype() == t.dtype() && mine.shape() == t.shape();
  if (!free) mine = Tensor(t.dtype(), t.shape());
  std::atomic_thread_fence(std::memory_order_acquire);  // who gave it up has read it
  auto* to = static_cast<char*>(mine.data());
  const auto* from = static_cast<const char*>(t.data());
  parallel_for(*f.options.pool, int64_t(t.bytes()), int64_t(kPiece),
               [&](int64_t b, int64_t e) { std::memcpy(to + b, from + b, size_t(e - b)); });
  return mine;
}

std::vector<Value> collect(RunFrame& f, const std::vector<char>& wanted) {
  const Plan& plan = f.plan;
  std::vector<Value> results(plan.graph.outputs.size());
  for (size_t k = 0; k < results.size(); ++k) {
    if (!wanted.empty() && !wanted[k]) continue;
    ValueId v = plan.graph.outputs[k];
    Value holder;
    const Value* r = read_value(f, v, holder);
    if (!r) continue;
    if (std::holds_alternative<Tensor>(*r)) {
      // constants are shared with the model, inputs and state with their owners: hand out copies
      bool fresh = plan.slots[size_t(v)].place == Place::kDynamic;
      results[k] = fresh ? owned(*r) : hand_out(f, k, std::get<Tensor>(*r));
    } else {
      results[k] = *r;
    }
  }
  return results;
}

}  // namespace

void run_static(Plan& plan, void* const* inputs, const RunOptions& o) {
  RunFrame f{plan, o, {}, {}};
  for (size_t k = 0; k < plan.bound_inputs.size(); ++k) bind_input(plan, k, inputs[k]);
  run_steps(f, 0, plan.first_write);
  check_mapped_files();
  if (!o.assign_updates || (o.guard && !passes(f, *o.guard))) return;
  run_steps(f, plan.first_write, plan.steps.size());
  for (const Update& u : plan.updates)
    if (!u.in_place && u.bytes) {
      const Slot& s = plan.slots[size_t(u.value)];
      copy_elements(s.type.dtype, u.to, s.address, s.type.size(), u.bytes);
    }
}

std::vector<Value> run_plan(Plan& plan, const std::vector<Value>& inputs, const RunOptions& o,
                            const std::vector<char>& wanted) {
  RunFrame f{plan, o, {}, {}};
  if (plan.has_dynamic) {
    f.values.resize(plan.graph.values.size());
    f.present.resize(plan.graph.values.size(), 0);
  }
  bind_inputs(plan, inputs, f);
  run_steps(f, 0, plan.first_write);
  check_mapped_files();
  if (!o.assign_updates) return {};
  if (o.guard && !passes(f, *o.guard)) return collect(f, wanted);
  run_steps(f, plan.first_write, plan.steps.size());
  std::vector<Value> results = collect(f, wanted);
  assign_updates(plan, f);
  return results;
}

}  // namespace onnxtrain
