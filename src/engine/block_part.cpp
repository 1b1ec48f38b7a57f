// Runs one program of a BlockStep, and hands its gradients out.
#include "engine/block_part.hpp"

#include <algorithm>
#include <cstring>
#include <map>

namespace onnxtrain {

BlockStep::Part::Part(Graph graph, SplitStep::Updates updates, const BlockStep& step,
                      ProgramOptions options, const std::shared_ptr<State>& state)
    : program(std::move(graph), std::move(updates), state ? state : step.p_.state, step.p_.pool,
              std::move(options)) {
  const Graph& g = program.graph();
  arrays.resize(g.inputs.size());
  from.resize(g.inputs.size(), -1);
  for (size_t k = 0; k < g.inputs.size(); ++k) {
    names.push_back(g.value_name(g.inputs[k]));
    for (size_t i = 0; i < step.p_.graph.inputs.size(); ++i)
      if (step.p_.graph.inputs[i] == g.inputs[k]) from[k] = int(i);
  }
  sources.resize(g.inputs.size());
  dims.resize(g.inputs.size());
  copies.resize(g.inputs.size());
}

void BlockStep::Part::take_rows(size_t k, int axis, int64_t skip, int64_t rows) {
  ArrayRef& a = arrays[k];
  Shape& shape = dims[k];
  shape.assign(a.dims, a.dims + a.rank);
  const int64_t all = shape[size_t(axis)];
  size_t row = dtype_size(a.dtype), outer = 1;
  for (size_t d = size_t(axis) + 1; d < shape.size(); ++d) row *= size_t(shape[d]);
  for (size_t d = 0; d < size_t(axis); ++d) outer *= size_t(shape[d]);
  shape[size_t(axis)] = std::max<int64_t>(1, rows);
  a.dims = shape.data();
  if (rows == 0 || rows == all) return;
  auto* data = static_cast<char*>(a.data) + size_t(skip) * row;
  if (outer == 1) {
    a.data = data;
    return;
  }
  Tensor& copy = copies[k];
  if (!copy.defined() || copy.dtype() != a.dtype || copy.shape() != shape)
    copy = Tensor(a.dtype, shape);
  const size_t line = row * size_t(rows), pitch = row * size_t(all);
  for (size_t o = 0; o < outer; ++o, data += pitch)
    if (a.dtype == DType::kString)
      std::copy_n(reinterpret_cast<const std::string*>(data), line / sizeof(std::string),
                  copy.as<std::string>() + o * (line / sizeof(std::string)));
    else
      std::memcpy(static_cast<char*>(copy.data()) + o * line, data, line);
  a.data = copy.data();
}

void BlockStep::Part::is_block(int block, const BatchRows& r) {
  const int blocks = int(r.first.size()) - 1;
  share = double(r.rows(block)) / double(r.total());
  whole = double(r.total()) / double(std::max<int64_t>(1, r.rows(block)));
  int first = 0;
  while (r.rows(first) == 0) ++first;
  once = block == first ? 1 : 0;
  if (!here) here = std::make_unique<bool[]>(size_t(blocks));
  for (int b = 0; b < blocks; ++b) here[size_t(b)] = b == block;
  for (next = block + 1; r.rows(int(next % blocks)) == 0;) ++next;
  next %= blocks;
  for (before = block + blocks - 1; r.rows(int(before % blocks)) == 0;) --before;
  before %= blocks;
}

bool BlockStep::Part::bind_number(size_t k) {
  const std::string& name = names[k];
  double* number = name == kShareInput   ? &share
                   : name == kOnceInput  ? &once
                   : name == kWholeInput ? &whole
                                         : nullptr;
  if (number) arrays[k] = {number, nullptr, 0, DType::kDouble};
  int64_t* neighbour = name == kNextInput ? &next : name == kBeforeInput ? &before : nullptr;
  if (neighbour) arrays[k] = {neighbour, nullptr, 0, DType::kInt64};
  if (name == kHereInput) {
    const Graph& g = program.graph();
    if (dims[k].empty()) dims[k] = g.value(g.inputs[k]).type.concrete_shape();
    arrays[k] = {here.get(), dims[k].data(), 1, DType::kBool};
  }
  return number || neighbour || name == kHereInput;
}

void BlockStep::Part::run(uint64_t seed, uint64_t step, Guard* guard) {
  const Plan* plan = program.run_again(arrays.data(), seed, step, guard);
  if (!plan) {
    std::vector<Value> in;
    for (const ArrayRef& a : arrays)
      in.emplace_back(Tensor(a.dtype, Shape(a.dims, a.dims + a.rank), a.data, nullptr));
    program.plan_for(in);
    ++planned;
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

void BlockStep::Overlap::before(const Plan& plan, const Step& step) {
  if (next) next->before(plan, step);
}

void BlockStep::Overlap::after(const Plan& plan, const Step& step) {
  if (next) next->after(plan, step);
  if (&plan != known || part.planned != planned) look(plan);
  for (size_t k : (*made_at)[size_t(&step - plan.steps.data())])
    sums.ready(k, plan.slots[size_t(plan.graph.outputs[k])].address);
  sums.progress();
}

// Which step makes which of the sums; what none makes is handed out in the end.
void BlockStep::Overlap::look(const Plan& plan) {
  if (part.planned != planned) looked.clear();  // another plan may lie where one was
  planned = part.planned;
  known = &plan;
  const auto [entry, fresh] = looked.try_emplace(&plan);
  made_at = &entry->second;
  if (!fresh) return;
  MadeAt& made = entry->second;
  made.resize(plan.steps.size());
  if (plan.has_dynamic) return;
  std::map<NodeId, size_t> step_of;
  for (size_t i = 0; i < plan.steps.size(); ++i) step_of[plan.steps[i].node] = i;
  for (size_t k = 0; k < count; ++k) {
    ValueId v = plan.graph.outputs[k];
    if (plan.slots[size_t(v)].place != Place::kArena) continue;
    for (NodeId p = plan.graph.value(v).producer; p >= 0; p = plan.graph.value(v).producer) {
      if (const auto it = step_of.find(p); it != step_of.end()) {
        made[it->second].push_back(k);
        break;
      }
      const Node& n = plan.graph.nodes[size_t(p)];  // the same memory seen with another shape
      const int view = all_ops().get(n).view_of;
      if (view < 0) break;
      v = n.inputs[size_t(view)];
    }
  }
}

}  // namespace onnxtrain
