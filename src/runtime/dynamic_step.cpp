// Dynamic steps: the shape function and the choice of a kernel at run time, operators on values.
#include "runtime/dynamic_step.hpp"

#include <algorithm>

#include "core/budget.hpp"
#include "core/random.hpp"
#include "core/text_memory.hpp"
#include "runtime/copy.hpp"

namespace onnxtrain {

namespace {

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
  DynamicCtx(RunFrame& f, const Node& n)
      : f_(f), n_(n), holders_(n.inputs.size()), in_(n.inputs.size(), nullptr) {
    for (size_t k = 0; k < n.inputs.size(); ++k)
      if (n.inputs[k] != kNone) in_[k] = read_value(f, n.inputs[k], holders_[k]);
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
      const Value* v = read_value(f_, c.outer, holder);
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
  RunFrame& f_;
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
void run_dynamic_tensors(RunFrame& f, const Node& n, Step& s) {
  const Op& op = *s.op;
  std::vector<Value> holders(n.inputs.size());
  std::vector<TensorType> in(n.inputs.size());
  std::vector<const Tensor*> values(n.inputs.size(), nullptr);
  std::vector<void*> in_ptr(n.inputs.size(), nullptr);
  for (size_t k = 0; k < n.inputs.size(); ++k) {
    if (n.inputs[k] == kNone) continue;
    const Value* v = read_value(f, n.inputs[k], holders[k]);
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

}  // namespace

const Value* read_value(RunFrame& f, ValueId v, Value& holder) {
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

void run_dynamic(RunFrame& f, Step& s) {
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

}  // namespace onnxtrain
