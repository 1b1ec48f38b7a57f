// The run loop.
#include "runtime/executor.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>

#include "core/budget.hpp"
#include "core/mapped.hpp"
#include "core/random.hpp"
#include "core/text_memory.hpp"
#include "runtime/copy.hpp"
#include "runtime/finite.hpp"

namespace onnxtrain {

namespace {

// Values of dynamic places during one run.
struct Frame {
  Plan& plan;
  const RunOptions& options;
  std::vector<Value> values;  // by ValueId; only dynamic ones are used
  std::vector<char> present;
};

// Any value as a Value: static memory is wrapped without copying.
const Value* read(Frame& f, ValueId v, Value& holder) {
  const Slot& s = f.plan.slots[size_t(v)];
  if (s.place == Place::kDynamic) return f.present[size_t(v)] ? &f.values[size_t(v)] : nullptr;
  const ValueDef& d = f.plan.graph.value(v);
  if (s.place == Place::kConstant) {
    holder = d.constant;
  } else {
    holder = Tensor(s.type.dtype, s.type.shape, s.address, nullptr);
  }
  return &holder;
}

Tensor owned(const Value& v) {
  const Tensor& t = std::get<Tensor>(v);
  return t.owner() ? t : t.clone();
}

// Counts what a value takes beside the elements of its tensors: text, and items of sequences.
// The charge lives as long as the value: it is the deleter of the owner of its memory.
template <class T>
struct Charged {
  std::shared_ptr<T> value;
  std::shared_ptr<Charge> charge;
  void operator()(T*) {
    value.reset();
    charge.reset();
  }
};
template <class T>
std::shared_ptr<T> charged(std::shared_ptr<T> value, size_t bytes) {
  auto charge = std::make_shared<Charge>();
  charge->set(bytes);
  T* p = value.get();
  return std::shared_ptr<T>(p, Charged<T>{std::move(value), std::move(charge)});
}

void count_text(Tensor& t) {
  if (!Budget::current() || t.dtype() != DType::kString || !t.owner()) return;
  if (std::get_deleter<Charged<void>>(t.owner())) return;  // counted where it was made
  if (const size_t bytes = text_bytes(t))
    t = Tensor(t.dtype(), t.shape(), t.data(), charged(t.owner(), bytes));
}

void count_value(Value& v) {
  if (Tensor* t = std::get_if<Tensor>(&v)) {
    count_text(*t);
  } else if (auto* s = std::get_if<std::shared_ptr<Sequence>>(&v);
             s && *s && Budget::current() && !(*s)->items.empty()) {
    for (Value& item : (*s)->items) {
      Tensor* t = std::get_if<Tensor>(&item);
      if (!t || t->dtype() != DType::kString) break;
      count_text(*t);
    }
    v = charged(*s, (*s)->items.size() * kItemBytes);
  }
}

// The longest text, and what all of it takes.
std::pair<size_t, size_t> text_of(const Tensor& t) {
  const auto* p = t.as<std::string>();
  size_t longest = 0, all = 0;
  for (int64_t i = 0; i < t.size(); ++i) {
    longest = std::max(longest, p[i].size());
    all += heap_bytes(p[i].size());
  }
  return {longest, all};
}

// Text that a node can make of its inputs' text at most, before it makes it.
void check_text(const std::vector<TensorType>& out, const std::vector<const Tensor*>& in) {
  for (const TensorType& o : out) {
    if (!o.present() || o.dtype != DType::kString) continue;
    size_t longest = 0, all = 0;
    int64_t elements = 0;
    for (const Tensor* t : in) {
      if (!t || t->dtype() != DType::kString) continue;
      const auto [l, a] = text_of(*t);
      longest += l;
      all += a;
      elements += t->size();
    }
    check_memory(o.size() == elements ? all : heap_bytes(longest) * size_t(o.size()));
  }
}

class DynamicCtx final : public ValueCtx {
 public:
  DynamicCtx(Frame& f, const Node& n)
      : f_(f), n_(n), holders_(n.inputs.size()), in_(n.inputs.size(), nullptr) {
    for (size_t k = 0; k < n.inputs.size(); ++k)
      if (n.inputs[k] != kNone) in_[k] = read(f, n.inputs[k], holders_[k]);
  }
  const Node& node() const override { return n_; }
  int inputs() const override { return int(n_.inputs.size()); }
  int outputs() const override { return int(n_.outputs.size()); }
  const Value* in(int i) const override { return in_[size_t(i)]; }
  bool wants(int i) const override { return i < outputs() && n_.outputs[size_t(i)] != kNone; }
  void out(int i, Value v) override {
    if (!wants(i)) return;
    size_t id = size_t(n_.outputs[size_t(i)]);
    const Slot& slot = f_.plan.slots[id];
    if (slot.place != Place::kDynamic) {
      const Tensor* t = std::get_if<Tensor>(&v);
      bool fits = t && t->dtype() == slot.type.dtype &&
                  (t->shape() == slot.type.shape || (t->size() == 0 && slot.type.size() == 0));
      if (!fits)
        model_error("OT1111",
                    cat("output ", i, " is ",
                        t ? cat(dtype_name(t->dtype()), to_string(t->shape())) : "no tensor",
                        ", planned was ", dtype_name(slot.type.dtype), to_string(slot.type.shape)));
      copy_elements(t->dtype(), slot.address, t->data(), t->size(), t->bytes());
      return;
    }
    // a value that only borrows static memory must not outlive the step that overwrites it
    if (auto* t = std::get_if<Tensor>(&v); t && !t->owner()) v = t->clone();
    count_value(v);
    f_.values[id] = std::move(v);
    f_.present[id] = 1;
  }
  std::vector<Value> run_graph(std::string_view attr, std::vector<Value> inputs,
                               uint64_t iteration) override {
    GraphPtr g = n_.graph(attr);
    OT_ASSERT(g && f_.options.subgraphs);
    for (const auto& c : g->captures) {
      Value holder;
      const Value* v = read(f_, c.outer, holder);
      inputs.push_back(v ? *v : Value());
    }
    uint64_t step = f_.options.step;
    if (iteration) step = hash64(&iteration, sizeof iteration, step);
    return (*f_.options.subgraphs)(g, std::move(inputs), step);
  }
  ThreadPool& pool() const override { return *f_.options.pool; }
  uint64_t seed() const override { return f_.options.seed; }
  uint64_t step() const override { return f_.options.step; }

 private:
  Frame& f_;
  const Node& n_;
  std::vector<Value> holders_;
  std::vector<const Value*> in_;
};

struct DynamicAllocator final : Run::Allocator {
  DynamicAllocator(const std::vector<TensorType>& types) : types(types), tensors(types.size()) {}
  void* allocate(int output, const Shape& shape) override {
    tensors[size_t(output)] = Tensor(types[size_t(output)].dtype, shape);
    return tensors[size_t(output)].data();
  }
  const std::vector<TensorType>& types;
  std::vector<Tensor> tensors;
};

// Shapes, prepares and runs one node on the values that are there now. The step keeps what was
// chosen, for reports.
void run_dynamic_tensors(Frame& f, const Node& n, Step& s) {
  const Op& op = *s.op;
  std::vector<Value> holders(n.inputs.size());
  std::vector<TensorType> in(n.inputs.size());
  std::vector<const Tensor*> values(n.inputs.size(), nullptr);
  std::vector<void*> in_ptr(n.inputs.size(), nullptr);
  for (size_t k = 0; k < n.inputs.size(); ++k) {
    if (n.inputs[k] == kNone) continue;
    const Value* v = read(f, n.inputs[k], holders[k]);
    const Tensor* t = v ? std::get_if<Tensor>(v) : nullptr;
    if (!t)
      model_error("OT1108", cat("input ", k, " ('", f.plan.graph.value_name(n.inputs[k]),
                                "') is not a tensor"));
    in[k] = {t->dtype(), t->shape()};
    values[k] = t;
    in_ptr[k] = const_cast<void*>(t->data());
  }
  ShapeCtx ctx(n, in, values);
  op.shape(ctx);
  check_text(ctx.out, values);
  DynamicAllocator alloc(ctx.out);
  std::vector<void*> out_ptr(n.outputs.size(), nullptr);
  for (size_t k = 0; k < n.outputs.size(); ++k)
    if (n.outputs[k] != kNone && ctx.out[k].present() && !ctx.dynamic[k])
      out_ptr[k] = alloc.allocate(int(k), ctx.out[k].shape);
  Prepare p(n, in, ctx.out, values, *f.options.pool);
  Choice c = choose_kernel(op, p);
  s.impl = c.impl;
  s.refused = std::move(c.refused);
  std::shared_ptr<void> workspace = allocate(c.workspace);
  c.kernel(Run{in_ptr.data(), out_ptr.data(), workspace.get(), f.options.pool, f.options.seed,
               f.options.step, &alloc});
  for (size_t k = 0; k < n.outputs.size(); ++k) {
    if (n.outputs[k] == kNone) continue;
    count_text(alloc.tensors[k]);
    f.values[size_t(n.outputs[k])] = std::move(alloc.tensors[k]);
    f.present[size_t(n.outputs[k])] = 1;
  }
}

void run_dynamic(Frame& f, Step& s) {
  const Node& n = f.plan.graph.nodes[size_t(s.node)];
  try {
    if (s.op->run_values) {
      DynamicCtx ctx(f, n);
      s.impl = "values";
      s.op->run_values(ctx);
    } else {
      run_dynamic_tensors(f, n, s);
    }
  } catch (Error& e) {
    e.add_place("in " + n.label());
    throw;
  }
  for (ValueId v : f.plan.release_after[size_t(s.node)]) {
    f.values[size_t(v)] = Value();
  }
}

void bind_input(Plan& plan, size_t k, void* data) {
  if (plan.bound_inputs[k] == data) return;
  for (void** p : plan.input_pointers[k]) *p = data;
  plan.slots[size_t(plan.graph.inputs[k])].address = data;
  plan.bound_inputs[k] = data;
}

void bind_inputs(Plan& plan, const std::vector<Value>& inputs, Frame& f) {
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

void assign_updates(Plan& plan, Frame& f) {
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

// Is a variable assigned that is computed behind the first write? Nobody has looked at its value.
bool assigns_unseen(const Plan& plan) {
  if (plan.first_write >= plan.steps.size()) return false;
  const NodeId first = plan.steps[plan.first_write].node;
  return std::any_of(plan.updates.begin(), plan.updates.end(), [&](const Update& u) {
    return !u.in_place && plan.graph.value(u.value).producer >= first;
  });
}

// What a value holds, and whether it is finite; `gradient`: read by an optimizer.
struct Seen {
  double squares = 0;
  bool counts = false;  // as a gradient
};
Seen look_at(Frame& f, Guard& guard, ValueId v, bool gradient) {
  constexpr double kSmallSquare = 0x1p-36;  // of 2^-18, a number of six bits in float16
  const Slot& s = f.plan.slots[size_t(v)];
  double squares = 0;
  size_t rank = 0;
  int64_t count = 0;
  DType dtype = s.type.dtype;
  if (s.place == Place::kDynamic || s.place == Place::kConstant) {
    Value holder;
    const Value* value = read(f, v, holder);
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
void look_at_narrow(Frame& f, Guard& guard, size_t step, size_t& next) {
  for (; next < f.plan.narrow.size() && f.plan.narrow[next].step == step; ++next)
    guard.narrow_squares += look_at(f, guard, f.plan.narrow[next].value, true).squares;
}

// Is all that the writing steps and the assignments will read finite? norm: of all that.
bool passes_here(Frame& f, Guard& guard, double& norm) {
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
  norm = assigns_unseen(f.plan) ? HUGE_VAL : std::sqrt(all);
  return true;
}

bool passes(Frame& f, Guard& guard) {
  double norm = 0;
  bool passed = passes_here(f, guard, norm);
  if (guard.agree) passed = guard.agree(guard, passed, norm);
  guard.tripped |= !passed;
  if (passed && guard.before_writes) guard.before_writes(norm);
  return passed;
}

void show(Frame& f, const Step& s) {
  for (ValueId v : f.plan.graph.nodes[size_t(s.node)].outputs) {
    if (v == kNone) continue;
    Value holder;
    const Value* value = read(f, v, holder);
    if (const Tensor* t = value ? std::get_if<Tensor>(value) : nullptr)
      (*f.options.inspect)(s, v, *t);
  }
}

void run_steps(Frame& f, size_t begin, size_t end) {
  const RunOptions& o = f.options;
  const Budget* budget = Budget::current();
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
    if (o.guard && begin == 0) look_at_narrow(f, *o.guard, k, narrow);
    if (o.inspect) show(f, s);
  }
}

// A copy of result k for the caller. In the memory of the one before where that was given up:
// fresh memory costs more than the copy.
Tensor hand_out(Frame& f, size_t k, const Tensor& t) {
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

std::vector<Value> collect(Frame& f, const std::vector<char>& wanted) {
  const Plan& plan = f.plan;
  std::vector<Value> results(plan.graph.outputs.size());
  for (size_t k = 0; k < results.size(); ++k) {
    if (!wanted.empty() && !wanted[k]) continue;
    ValueId v = plan.graph.outputs[k];
    Value holder;
    const Value* r = read(f, v, holder);
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
  Frame f{plan, o, {}, {}};
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
  Frame f{plan, o, {}, {}};
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
