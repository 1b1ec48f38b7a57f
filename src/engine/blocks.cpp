// Runs the parts of a training section that is cut into blocks.
#include "engine/blocks.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>

#include "core/random_rows.hpp"
#include "engine/block_part.hpp"
#include "engine/block_template.hpp"
#include "engine/number_at.hpp"
#include "passes/passes.hpp"
#include "runtime/finite.hpp"

namespace onnxtrain {

void cut_rows(const std::vector<int64_t>& rows_of_rank, int rank, int blocks, BatchRows& b) {
  const int ranks = int(rows_of_rank.size()), each = blocks / ranks;
  int64_t total = 0;
  for (int64_t n : rows_of_rank) total += n;
  bool even = true;
  int64_t at = 0;
  for (int r = 0; r < ranks; ++r) {
    even = even && at == total * r / ranks;
    at += rows_of_rank[size_t(r)];
  }
  b.first.clear();
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
}

BlockStep::BlockStep(Parts parts) : p_(std::move(parts)) {}
BlockStep::~BlockStep() = default;

void BlockStep::prepare(const ArrayRef* arrays) {
  for (size_t k = 0; k < p_.axes.size(); ++k)  // an input of unknown rank is given a number
    if (arrays[k].rank <= p_.axes[k]) p_.axes[k] = -1;
  resolve_sequences(p_.graph);
  split_ = std::make_unique<SplitStep>(
      split_into_blocks(p_.graph, p_.updates, arrays, *p_.pool, p_.axes, p_.how,
                        int(rows_->first.size()) - 1, rows_->total()));
  ProgramOptions others = p_.options;  // targets meet outputs in the blocks only
  others.targets.clear();
  const SplitStep::Updates none;
  if (p_.how.shard && p_.communicator)
    shards_ = std::make_unique<ShardedUpdate>(*split_, p_.state, *p_.communicator, p_.elsewhere,
                                              *p_.pool);
  prepare_sums();
  if (!split_->count_names.empty())
    count_ = std::make_unique<Part>(std::move(split_->count), none, *this, others);
  if (split_->meets) {
    const int blocks = int(rows_->first.size()) - 1, here = rows_->end - rows_->begin;
    meeting_ = std::make_unique<BlockMeeting>(blocks, p_.communicator);
    p_.options.memory_shares *= size_t(here);
    for (int k = 1; k < here; ++k)
      others_.push_back(std::make_unique<Part>(split_->block.clone(), none, *this, p_.options));
  }
  block_ = std::make_unique<Part>(std::move(split_->block), none, *this, p_.options);
  prepare_update(others);
  if (!meeting_ && p_.communicator)
    overlap_ = std::make_unique<Overlap>(*sums_, *block_, split_->sum_names.size());
  if (p_.loss < 0) return;
  const std::string& name = p_.graph.value_name(p_.graph.outputs[size_t(p_.loss)]);
  for (size_t k = 0; k < split_->sum_names.size(); ++k)
    if (split_->sum_names[k] == name) loss_sum_ = int(k);
}

// What is added is known from the graphs: a process without rows does not run a block.
void BlockStep::prepare_sums() {
  const int blocks = int(rows_->first.size()) - 1;
  auto types = [&](const std::vector<std::string>& names, const Graph& made) {
    std::vector<TensorType> found;
    for (size_t k = 0; k < names.size(); ++k) {
      // inputs of the parts behind are declared with the types of the sums
      const TypeInfo* t = &made.value(made.outputs[k]).type;
      for (const Graph* g : {&split_->update, &split_->block})
        for (ValueId i : g->inputs)
          if (g->value_name(i) == cat(kSumInput, names[k])) t = &g->value(i).type;
      found.push_back({t->elem, t->concrete_shape()});
    }
    return found;
  };
  if (!split_->count_names.empty())
    counts_ = std::make_unique<BlockSum>(types(split_->count_names, split_->count), blocks,
                                         p_.communicator);
  sums_ =
      std::make_unique<BlockSum>(types(split_->sum_names, split_->block), blocks, p_.communicator,
                                 p_.how.narrow ? split_->forward_sums : BlockSum::kNever,
                                 shards_ ? shards_->shared() : BlockSum::Shared{});
}

void BlockStep::prepare_update(const ProgramOptions& options) {
  SplitStep::Updates updates = std::move(split_->updates);
  Graph g = shards_ ? shards_->graph(*sums_, updates) : std::move(split_->update);
  update_ = std::make_unique<Part>(std::move(g), std::move(updates), *this, options,
                                   shards_ ? shards_->state() : nullptr);
}

// The arrays of one block: rows of the batch, shares, counts of the whole batch.
void BlockStep::bind(Part& p, int block) {
  const BatchRows& r = *rows_;
  const int64_t rows = r.rows(block), skip = r.first[size_t(block)] - r.first[size_t(r.begin)];
  p.is_block(block, r);
  for (size_t k = 0; k < p.arrays.size(); ++k) {
    ArrayRef& a = p.arrays[k];
    if (p.from[k] >= 0) {
      a = arrays_[size_t(p.from[k])];
      const int axis = p_.axes[size_t(p.from[k])];
      if (axis < 0) continue;
      p.take_rows(k, axis, skip, rows);
      if (rows == 0) a.data = const_cast<void*>(lone_row(a, k).data());
      continue;
    }
    if (p.bind_number(k)) continue;
    bind_sum(p, k);
  }
}

// A row of zeros: a process without rows takes part in the sums of the others.
const Tensor& BlockStep::lone_row(const ArrayRef& like, size_t input) {
  if (lone_rows_.size() <= input) lone_rows_.resize(input + 1);
  Tensor& t = lone_rows_[input];
  const Shape shape(like.dims, like.dims + like.rank);
  if (t.defined() && t.shape() == shape) return t;
  t = Tensor(like.dtype, shape);
  if (like.dtype != DType::kString) std::memset(t.data(), 0, t.bytes());
  return t;
}

// Statistics of a single value are none.
void BlockStep::check_rows() const {
  if (split_->lone_row.empty()) return;
  const BatchRows& r = *rows_;
  bool lone = r.total() == 1;
  for (size_t b = 0; !split_->meets && b + 1 < r.first.size(); ++b) lone |= r.rows(int(b)) == 1;
  if (!lone) return;
  const bool block = r.total() > 1;
  model_error("OT1286",
              cat(split_->lone_row, " would train on one value per channel: ",
                  block ? cat("a block of this batch of ", r.total(), " rows has one row")
                        : "this batch has one row",
                  ", and the variance of one value is 0"),
              block ? "--batch-norm sync, fewer --micro-blocks, or a batch size that divides the "
                      "number of rows"
                    : "use a batch size such that no batch has a single row");
}

void BlockStep::run_block(Part& p, int block) {
  const BatchRows& r = *rows_;
  bind(p, block);
  const RandomRowsScope random({r.first[size_t(block)], r.rows(block), r.total()});
  p.run(seed_, step_, nullptr);
}

BlockStep::Part& BlockStep::part_of(int block) {
  const int k = meeting_ ? block - rows_->begin : 0;
  return k == 0 ? *block_ : *others_[size_t(k - 1)];
}

// All blocks of this process, which meet those of the others in the middle.
void BlockStep::run_together() {
  here_.clear();
  for (int b = rows_->begin; b < rows_->end; ++b)
    if (!empty_[size_t(b)]) here_.push_back(b);
  if (here_.empty()) here_.push_back(rows_->begin);
  meeting_->run(
      here_, empty_, [&](int block) { run_block(part_of(block), block); }, *p_.pool);
}

// An input that is a sum over the batch, or a number of it.
void BlockStep::find_source(Part& p, size_t k) {
  using Kind = Part::Source::Kind;
  Part::Source& source = p.sources[k];
  for (size_t i = 0; i < split_->given.size(); ++i)
    if (p.names[k] == kNumberInput + p_.graph.value_name(split_->given[i]))
      source = {Kind::kNumber, i};
  if (source.kind == Kind::kNumber) return;
  if (Tensor part; shards_ && shards_->find(p.names[k], *sums_, part)) {
    p.dims[k] = part.shape();
    p.arrays[k] = {part.data(), p.dims[k].data(), int(part.rank()), part.dtype()};
    source.kind = Kind::kKept;
    return;
  }
  const std::string name = p.names[k].substr(kSumInput.size());
  const auto find = [&](const std::vector<std::string>& names, Kind kind) {
    const auto it = std::find(names.begin(), names.end(), name);
    if (it != names.end() && source.kind == Kind::kUnknown)
      source = {kind, size_t(it - names.begin())};
  };
  find(split_->sum_names, Kind::kSum);
  if (counts_) find(split_->count_names, Kind::kCount);
  OT_ASSERT(source.kind != Kind::kUnknown);
}

void BlockStep::bind_sum(Part& p, size_t k) {
  using Kind = Part::Source::Kind;
  if (p.sources[k].kind == Kind::kUnknown) find_source(p, k);
  const auto [kind, at] = p.sources[k];
  if (kind == Kind::kKept) return;
  if (kind == Kind::kNumber) {
    Tensor& t = numbers_[at];
    p.arrays[k] = {t.data(), t.shape().data(), int(t.rank()), t.dtype()};
    return;
  }
  const BlockSum& sums = kind == Kind::kSum ? *sums_ : *counts_;
  const TensorType& t = sums.parts()[at];
  p.arrays[k] = {sums.result(at), t.shape.data(), int(t.shape.size()), t.dtype};
}

// Runs the program for every block of this process and adds its first outputs over all.
void BlockStep::add_up(Part& p, BlockSum& sums) {
  const bool whole = &p == block_.get();
  if (whole && meeting_) run_together();
  auto compute = [&](int block) -> const std::vector<const void*>& {
    Part& own = whole ? part_of(block) : p;
    if (whole && overlap_ && sums.is_last(block)) {
      overlap_->next = observer_;
      own.program.set_observer(overlap_.get());
      run_block(own, block);
      own.program.set_observer(observer_);
    } else if (!whole || !meeting_) {
      run_block(own, block);
    }
    if (whole) gather_rows(own, block);
    return own.out;
  };
  sums.run(empty_, std::ref(compute), *p_.pool);
}

void BlockStep::run(const ArrayRef* arrays, const BatchRows& rows, uint64_t seed, uint64_t step,
                    Guard* guard) {
  arrays_.assign(arrays, arrays + p_.graph.inputs.size());
  last_rows_ = rows;
  rows_ = &last_rows_;
  if (!split_) prepare(arrays);
  check_rows();
  seed_ = seed;
  step_ = step;
  empty_.clear();
  for (size_t b = 0; b + 1 < rows.first.size(); ++b) empty_.push_back(rows.rows(int(b)) == 0);
  row_outputs_.resize(block_->program.graph().outputs.size());
  gathered_.assign(row_outputs_.size(), 0);
  if (!split_->given.empty() && numbers_rows_ != rows.total()) {
    numbers_ = numbers_of_batch(p_.graph, p_.updates, arrays_.data(), p_.axes, rows.total(),
                                split_->given, *p_.pool);
    numbers_rows_ = rows.total();
  }
  if (count_) add_up(*count_, *counts_);
  add_up(*block_, *sums_);
  loss_ = std::numeric_limits<double>::quiet_NaN();
  if (loss_sum_ >= 0) {
    const TensorType& t = sums_->parts()[size_t(loss_sum_)];
    if (t.size() == 1) loss_ = number_at(t.dtype, sums_->result(size_t(loss_sum_)));
  }
  tripped_ = guard && loss_sum_ >= 0 && !std::isfinite(loss_);
  if (tripped_) return;
  run_update(guard);
  tripped_ = guard && guard->tripped;
  const int made = loss_sum_ < 0 && p_.loss >= 0 ? split_->outputs[size_t(p_.loss)].update : -1;
  if (made >= 0) loss_ = number_at(update_->types[size_t(made)].dtype, update_->out[size_t(made)]);
}

void BlockStep::run_update(Guard* guard) {
  for (size_t k = 0; k < update_->arrays.size(); ++k) {
    if (update_->from[k] >= 0)
      update_->arrays[k] = arrays_[size_t(update_->from[k])];
    else
      bind_sum(*update_, k);
  }
  if (shards_ && guard)
    guard->agree = [this](Guard& here, bool passed, double& norm) {
      return shards_->agree(here, passed, norm);
    };
  update_->run(seed_, step_, guard);
  if (shards_ && !(guard && guard->tripped)) shards_->hand_out();
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
void BlockStep::gather_rows(const Part& p, int block) {
  for (size_t k = split_->sum_names.size(); k < p.out.size(); ++k) {
    size_t axis = 0, slow = 1;
    for (const auto& o : split_->outputs)
      if (o.block == int(k)) axis = size_t(o.axis), slow = size_t(o.outer);
    const TensorType& part = p.types[k];
    if (part.dtype == DType::kString) continue;
    const auto rows = size_t(rows_->rows(block)), own = size_t(rows_->own());
    const auto skip = size_t(rows_->first[size_t(block)] - rows_->first[size_t(rows_->begin)]);
    Tensor& all = row_outputs_[k];
    row_shape_ = part.shape;
    row_shape_[axis] = row_shape_[axis] / int64_t(rows) * int64_t(own);
    if (!all.defined() || all.shape() != row_shape_ || all.dtype() != part.dtype)
      all = Tensor(part.dtype, row_shape_);
    gathered_[k] = 1;
    size_t outer = slow;
    for (size_t d = 0; d < axis; ++d) outer *= size_t(part.shape[d]);
    const size_t line = size_t(part.size()) * dtype_size(part.dtype) / outer,
                 pitch = line / rows * own, at = line / rows * skip;
    for (size_t o = 0; o < outer; ++o)
      std::memcpy(static_cast<char*>(all.data()) + o * pitch + at,
                  static_cast<const char*>(p.out[k]) + o * line, line);
  }
}

Value BlockStep::output(size_t k) const {
  const SplitStep::Output& o = split_->outputs[k];
  const std::string& name = p_.graph.value_name(p_.graph.outputs[k]);
  if (!o.refused.empty())
    model_error("OT5012", cat("output '", name, "' cannot be had from blocks of rows: ", o.refused),
                "leave it out, or train in one process without --micro-blocks");
  if (shards_ && shards_->is_slot(o.state))
    model_error("OT5012", cat("output '", name, "' is shared out among the processes"),
                "leave it out, or train without --shard-optimizer");
  if (!o.state.empty()) return p_.state->get(o.state).clone();
  if (o.block >= 0)
    return gathered_[size_t(o.block)] ? row_outputs_[size_t(o.block)].clone() : Tensor();
  return update_->tensor(size_t(o.update)).clone();
}

std::vector<BlockStep::Part*> BlockStep::parts() const {
  std::vector<Part*> all;
  for (Part* p : {count_.get(), block_.get(), update_.get()})
    if (p) all.push_back(p);
  for (const auto& p : others_) all.push_back(p.get());
  return all;
}

PlannedMemory BlockStep::memory() const {
  PlannedMemory all;
  for (const Part* p : parts()) {
    const PlannedMemory m = p->program.memory();
    all.arena += m.arena;
    all.whole += m.whole;
    all.recomputed += m.recomputed;
  }
  return all;
}

std::vector<const Plan*> BlockStep::plans() const {
  std::vector<const Plan*> all;
  for (const Part* p : parts())
    for (const Plan* plan : p->program.plans()) all.push_back(plan);
  return all;
}

void BlockStep::set_observer(StepObserver* observer) {
  observer_ = observer;
  for (Part* p : parts()) p->program.set_observer(observer);
}

}  // namespace onnxtrain
