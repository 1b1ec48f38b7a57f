// Runs the parts of a training section that is cut into blocks.
#include "engine/blocks.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

#include "core/random_rows.hpp"
#include "engine/block_template.hpp"
#include "runtime/finite.hpp"

namespace onnxtrain {

BatchRows cut_rows(const std::vector<int64_t>& rows_of_rank, int rank, int blocks) {
  const int ranks = int(rows_of_rank.size()), each = blocks / ranks;
  int64_t total = 0;
  for (int64_t n : rows_of_rank) total += n;
  bool even = true;
  int64_t at = 0;
  for (int r = 0; r < ranks; ++r) {
    even = even && at == total * r / ranks;
    at += rows_of_rank[size_t(r)];
  }
  BatchRows b;
  at = 0;
  for (int r = 0; r < ranks; ++r) {
    for (int k = 0; k < each; ++k)
      b.first.push_back(even ? total * (r * each + k) / blocks
                             : at + rows_of_rank[size_t(r)] * k / each);
    at += rows_of_rank[size_t(r)];
  }
  b.first.push_back(total);
  b.begin = rank * each;
  b.end = b.begin + each;
  return b;
}

// One program with its inputs: where each comes from.
struct BlockStep::Part {
  Part(Graph graph, SplitStep::Updates updates, const BlockStep& step, ProgramOptions options)
      : program(std::move(graph), std::move(updates), step.p_.state, step.p_.pool,
                std::move(options)) {
    const Graph& g = program.graph();
    arrays.resize(g.inputs.size());
    from.resize(g.inputs.size(), -1);
    for (size_t k = 0; k < g.inputs.size(); ++k) {
      names.push_back(g.value_name(g.inputs[k]));
      for (size_t i = 0; i < step.p_.graph.inputs.size(); ++i)
        if (step.p_.graph.inputs[i] == g.inputs[k]) from[k] = int(i);
    }
    dims.resize(g.inputs.size());
  }
  // Runs on `arrays`; outputs are in `out`.
  void run(uint64_t seed, uint64_t step, Guard* guard) {
    const Plan* plan = program.run_again(arrays.data(), seed, step, guard);
    if (!plan) {
      std::vector<Value> in;
      for (const ArrayRef& a : arrays)
        in.emplace_back(Tensor(a.dtype, Shape(a.dims, a.dims + a.rank), a.data, nullptr));
      program.plan_for(in);
      plan = program.run_again(arrays.data(), seed, step, guard);
      if (!plan) values = program.run(in, seed, step, {}, guard);
    }
    const size_t n = program.graph().outputs.size();
    out.resize(n);
    types.resize(n);
    for (size_t k = 0; k < n; ++k) {
      if (plan) {
        const ValueId v = plan->graph.outputs[k];
        const Slot& s = plan->slots[size_t(v)];
        types[k] = s.type;
        out[k] = s.place == Place::kConstant ? plan->graph.value(v).constant.data() : s.address;
      } else {
        const Tensor& t = std::get<Tensor>(values[k]);
        types[k] = {t.dtype(), t.shape()};
        out[k] = t.data();
      }
    }
  }
  Tensor tensor(size_t k) const {
    return Tensor(types[k].dtype, types[k].shape, const_cast<void*>(out[k]), nullptr);
  }

  Program program;
  std::vector<std::string> names;
  std::vector<int> from;  // by input: that of the section; -1: none of them
  std::vector<ArrayRef> arrays;
  std::vector<Shape> dims;
  float share = 1, once = 1, whole = 1;
  std::vector<Value> values;
  std::vector<const void*> out;
  std::vector<TensorType> types;
};

BlockStep::BlockStep(Parts parts) : p_(std::move(parts)) {}
BlockStep::~BlockStep() = default;

void BlockStep::prepare(const ArrayRef* arrays) {
  split_ = std::make_unique<SplitStep>(
      split_into_blocks(p_.graph, p_.updates, arrays, *p_.pool, is_rows_));
  ProgramOptions others = p_.options;  // targets meet outputs in the blocks only
  others.targets.clear();
  const SplitStep::Updates none;
  if (!split_->count_names.empty())
    count_ = std::make_unique<Part>(std::move(split_->count), none, *this, others);
  block_ = std::make_unique<Part>(std::move(split_->block), none, *this, p_.options);
  update_ =
      std::make_unique<Part>(std::move(split_->update), std::move(split_->updates), *this, others);
  if (p_.loss < 0) return;
  const std::string& name = p_.graph.value_name(p_.graph.outputs[size_t(p_.loss)]);
  for (size_t k = 0; k < split_->sum_names.size(); ++k)
    if (split_->sum_names[k] == name) loss_sum_ = int(k);
}

// The arrays of one block: rows of the batch, shares, counts of the whole batch.
void BlockStep::bind(Part& p, int block) {
  const BatchRows& r = *rows_;
  const int64_t rows = r.rows(block), skip = r.first[size_t(block)] - r.first[size_t(r.begin)];
  p.share = float(double(rows) / double(r.total()));
  p.whole = float(double(r.total()) / double(std::max<int64_t>(1, rows)));
  int once = 0;
  while (r.rows(once) == 0) ++once;
  p.once = block == once ? 1.0f : 0.0f;
  for (size_t k = 0; k < p.arrays.size(); ++k) {
    ArrayRef& a = p.arrays[k];
    if (p.from[k] >= 0) {
      a = arrays_[size_t(p.from[k])];
      if (!is_rows_[size_t(p.from[k])]) continue;
      Shape& dims = p.dims[k];
      dims.assign(a.dims, a.dims + a.rank);
      size_t row = dtype_size(a.dtype);
      for (size_t d = 1; d < dims.size(); ++d) row *= size_t(dims[d]);
      dims[0] = rows;
      a.dims = dims.data();
      a.data = static_cast<char*>(a.data) + size_t(skip) * row;
      continue;
    }
    float* scalar = p.names[k] == kShareInput   ? &p.share
                    : p.names[k] == kOnceInput  ? &p.once
                    : p.names[k] == kWholeInput ? &p.whole
                                                : nullptr;
    if (scalar) {
      a = {scalar, nullptr, 0, DType::kFloat};
      continue;
    }
    bind_sum(p, k);
  }
}

// An input that is a sum over the batch.
void BlockStep::bind_sum(Part& p, size_t k) const {
  constexpr std::string_view kSum = "onnxtrain.sum.";
  const std::string name = p.names[k].substr(kSum.size());
  auto find = [&](const std::vector<std::string>& names, const BlockSum* sums) {
    const auto it = std::find(names.begin(), names.end(), name);
    if (!sums || it == names.end()) return false;
    const auto at = size_t(it - names.begin());
    const TensorType& t = sums->parts()[at];
    p.arrays[k] = {sums->result(at), t.shape.data(), int(t.shape.size()), t.dtype};
    return true;
  };
  const bool found =
      find(split_->sum_names, sums_.get()) || find(split_->count_names, counts_.get());
  OT_ASSERT(found);
}

// Runs the program for every block of this process and adds its first outputs over all.
void BlockStep::add_up(Part& p, std::unique_ptr<BlockSum>& sums, size_t outputs) {
  const BatchRows& r = *rows_;
  const int blocks = int(r.first.size()) - 1;
  auto compute = [&](int block) -> const std::vector<const void*>& {
    bind(p, block);
    const RandomRowsScope random({r.first[size_t(block)], r.rows(block), r.total()});
    p.run(seed_, step_, nullptr);
    if (&p == block_.get()) gather_rows(block);
    return p.out;
  };
  if (!sums) {
    // what is added is known from the graph: a process without rows has not run a block yet
    std::vector<TensorType> types;
    const Graph& g = p.program.graph();
    for (size_t k = 0; k < outputs; ++k) {
      const TypeInfo& t = sum_type(g, g.outputs[k], k, &p == block_.get());
      types.push_back({t.elem, t.concrete_shape()});
    }
    sums = std::make_unique<BlockSum>(std::move(types), blocks, p_.communicator);
  }
  sums->run(empty_, compute, *p_.pool);
}

const TypeInfo& BlockStep::sum_type(const Graph& g, ValueId v, size_t k, bool block) const {
  // inputs of the update are declared with the types of the sums
  const Graph& u = update_->program.graph();
  const std::string name =
      "onnxtrain.sum." + (block ? split_->sum_names[k] : split_->count_names[k]);
  for (const Graph* in : {&block_->program.graph(), &u})
    for (ValueId i : in->inputs)
      if (in->value_name(i) == name) return in->value(i).type;
  return g.value(v).type;
}

void BlockStep::run(const ArrayRef* arrays, const BatchRows& rows, uint64_t seed, uint64_t step,
                    Guard* guard) {
  if (!split_) prepare(arrays);
  arrays_.assign(arrays, arrays + p_.graph.inputs.size());
  last_rows_ = rows;
  rows_ = &last_rows_;
  seed_ = seed;
  step_ = step;
  empty_.clear();
  for (size_t b = 0; b + 1 < rows.first.size(); ++b) empty_.push_back(rows.rows(int(b)) == 0);
  row_outputs_.assign(block_->program.graph().outputs.size(), Tensor());
  if (count_) add_up(*count_, counts_, split_->count_names.size());
  add_up(*block_, sums_, split_->sum_names.size());
  loss_ = std::numeric_limits<double>::quiet_NaN();
  if (loss_sum_ >= 0) {
    const TensorType& t = sums_->parts()[size_t(loss_sum_)];
    if (t.size() == 1)
      loss_ = Tensor(t.dtype, t.shape, sums_->result(size_t(loss_sum_)), nullptr).to_doubles()[0];
  }
  tripped_ = guard && loss_sum_ >= 0 && !std::isfinite(loss_);
  if (tripped_) return;
  for (size_t k = 0; k < update_->arrays.size(); ++k) {
    if (update_->from[k] >= 0)
      update_->arrays[k] = arrays_[size_t(update_->from[k])];
    else
      bind_sum(*update_, k);
  }
  update_->run(seed, step, guard);
  tripped_ = guard && guard->tripped;
  if (loss_sum_ < 0 && p_.loss >= 0 && split_->outputs[size_t(p_.loss)].update >= 0)
    loss_ = update_->tensor(size_t(split_->outputs[size_t(p_.loss)].update)).to_doubles()[0];
}

NotFiniteValue BlockStep::trace(uint64_t seed, uint64_t step) {
  for (int b = rows_->begin; b < rows_->end; ++b) {
    if (rows_->rows(b) == 0) continue;
    bind(*block_, b);
    std::vector<Value> in;
    for (const ArrayRef& a : block_->arrays)
      in.emplace_back(Tensor(a.dtype, Shape(a.dims, a.dims + a.rank), a.data, nullptr));
    const RandomRowsScope random({rows_->first[size_t(b)], rows_->rows(b), rows_->total()});
    block_->run(seed, step, nullptr);
    Guard guard;  // the loss first, then the first gradient that is not finite
    auto bad = [&](size_t k) { return not_finite(block_->tensor(k)) != 0; };
    if (loss_sum_ >= 0 && bad(size_t(loss_sum_))) guard.loss_output = loss_sum_;
    for (size_t k = 0; guard.loss_output < 0 && k < split_->sum_names.size(); ++k)
      if (bad(k)) guard.loss_output = int(k);
    if (guard.loss_output < 0) continue;
    NotFiniteValue found = block_->program.trace_not_finite(in, seed, step, guard);
    if (guard.loss_output != loss_sum_) found.name = split_->sum_names[size_t(guard.loss_output)];
    if (!found.origin.empty()) return found;
  }
  return {};
}

// Keeps outputs that are rows: the next block runs in the same memory.
void BlockStep::gather_rows(int block) {
  for (size_t k = split_->sum_names.size(); k < block_->out.size(); ++k) {
    size_t axis = 0, slow = 1;
    for (const auto& o : split_->outputs)
      if (o.block == int(k)) axis = size_t(o.axis), slow = size_t(o.outer);
    const Tensor part = block_->tensor(k);
    if (part.dtype() == DType::kString) continue;
    const auto rows = size_t(rows_->rows(block)), own = size_t(rows_->own());
    const auto skip = size_t(rows_->first[size_t(block)] - rows_->first[size_t(rows_->begin)]);
    Tensor& all = row_outputs_[k];
    if (!all.defined()) {
      Shape shape = part.shape();
      shape[axis] = shape[axis] / int64_t(rows) * int64_t(own);
      all = Tensor(part.dtype(), shape);
    }
    size_t outer = slow;
    for (size_t d = 0; d < axis; ++d) outer *= size_t(part.shape()[d]);
    const size_t line = part.bytes() / outer, pitch = line / rows * own, at = line / rows * skip;
    for (size_t o = 0; o < outer; ++o)
      std::memcpy(static_cast<char*>(all.data()) + o * pitch + at,
                  static_cast<const char*>(part.data()) + o * line, line);
  }
}

Value BlockStep::output(size_t k) const {
  const SplitStep::Output& o = split_->outputs[k];
  const std::string& name = p_.graph.value_name(p_.graph.outputs[k]);
  if (!o.refused.empty())
    model_error("OT5012", cat("output '", name, "' cannot be had from blocks of rows: ", o.refused),
                "leave it out, or train in one process without --micro-blocks");
  if (o.block >= 0) return row_outputs_[size_t(o.block)];
  return update_->tensor(size_t(o.update)).clone();
}

PlannedMemory BlockStep::memory() const {
  PlannedMemory all;
  for (const Part* p : {count_.get(), block_.get(), update_.get()}) {
    if (!p) continue;
    const PlannedMemory m = p->program.memory();
    all.arena += m.arena;
    all.whole += m.whole;
    all.recomputed += m.recomputed;
  }
  return all;
}

std::vector<const Plan*> BlockStep::plans() const {
  std::vector<const Plan*> all;
  for (const Part* p : {count_.get(), block_.get(), update_.get()})
    if (p)
      for (const Plan* plan : p->program.plans()) all.push_back(plan);
  return all;
}

void BlockStep::set_observer(StepObserver* observer) {
  for (Part* p : {count_.get(), block_.get(), update_.get()})
    if (p) p->program.set_observer(observer);
}

}  // namespace onnxtrain
