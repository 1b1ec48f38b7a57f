// Shares the updates of a step out, and exchanges what they have made.
#include "engine/sharded_update.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "core/memory.hpp"
#include "infer/specialise.hpp"

namespace onnxtrain {

namespace {

constexpr size_t kStaging = size_t(8) << 20, kLeast = size_t(64) << 10;

// The sums of `split` in another order.
void reorder(SplitStep& split, const std::vector<size_t>& order) {
  std::vector<std::string> names;
  std::vector<ValueId> outputs = split.block.outputs;
  for (size_t k = 0; k < order.size(); ++k) {
    names.push_back(split.sum_names[order[k]]);
    outputs[k] = split.block.outputs[order[k]];
  }
  split.sum_names = std::move(names);
  split.block.outputs = std::move(outputs);
}

}  // namespace

ShardedUpdate::ShardedUpdate(SplitStep& split, std::shared_ptr<State> state, Communicator& c,
                             const std::set<std::string>& elsewhere, ThreadPool& pool)
    : whole_(split.update.clone()), state_(std::move(state)), c_(c) {
  separate_updates(whole_, all_ops());
  types_ = whole_.clone();
  specialise(types_, all_ops(), pool);
  std::set<std::string> gradients, others = elsewhere;
  const std::vector<std::string>& names = split.sum_names;
  // a file without Gradient nodes does not say which of its sums are gradients
  const size_t first = split.forward_sums < names.size() ? split.forward_sums : 0;
  for (size_t k = first; k < names.size(); ++k) gradients.insert(cat(kSumInput, names[k]));
  for (const Graph* g : {&split.block, &split.count})
    for (const Node& n : g->nodes)
      for (ValueId v : g->reads(n)) others.insert(g->value(v).state);
  plan_ = plan_shards(whole_, types_, split.updates, gradients, others, all_ops());
  for (const ShardUnit& u : plan_.units)
    for (const auto& v : u.variables)
      if (v.slot) slots_.insert(v.name);
  if (slots_.empty())
    model_error("OT5055",
                cat("--shard-optimizer: nothing of the optimizer can be shared out",
                    plan_.kept.empty() ? std::string(": it keeps no state of its own")
                                       : cat(": ", plan_.kept[0])),
                "leave --shard-optimizer out: the bits are the same");
  drop_outputs(split);
  // what is shared out stands together: behind the forward sums, or at the end
  std::set<std::string> shared;
  for (const ShardUnit& u : plan_.units)
    for (ValueId v : u.sums)
      if (u.by_element) shared.insert(whole_.value_name(v));
  std::vector<size_t> order(names.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::stable_partition(order.begin() + std::ptrdiff_t(first), order.end(), [&](size_t k) {
    return (shared.count(cat(kSumInput, names[k])) != 0) == (first > 0);
  });
  shared_from_ = first > 0 ? first : names.size() - shared.size();
  shared_to_ = shared_from_ + shared.size();
  reorder(split, order);
  sum_names_ = split.sum_names;
}

// Outputs of the step that are new values of what is shared out are read from the state.
void ShardedUpdate::drop_outputs(SplitStep& split) {
  std::map<ValueId, std::string> state_of;
  for (const ShardUnit& u : plan_.units)
    for (const auto& v : u.variables) state_of[v.next] = v.name;
  std::vector<ValueId> outputs;
  for (SplitStep::Output& o : split.outputs) {
    if (o.update < 0) continue;
    const ValueId v = whole_.outputs[size_t(o.update)];
    const auto it = state_of.find(v);
    if (it != state_of.end()) o.state = it->second;
    o.update = it == state_of.end() ? int(outputs.size()) : -1;
    if (it == state_of.end()) outputs.push_back(v);
  }
  whole_.outputs = std::move(outputs);
}

BlockSum::Shared ShardedUpdate::shared() const {
  return {shared_from_, shared_to_, plan_.whole_gradients};
}

void ShardedUpdate::add_piece(size_t unit, int rank, int64_t from, int64_t to) {
  if (rank == c_.rank()) pieces_.push_back({unit, from, to});
  for (const auto& v : plan_.units[unit].variables) {
    const Tensor& t = state_->get(v.name);
    const size_t size = dtype_size(t.dtype());
    const Part part{v.name, to < 0 ? 0 : size_t(from) * size,
                    to < 0 ? t.bytes() : size_t(to) * size,
                    static_cast<char*>(const_cast<void*>(t.data()))};
    (v.slot ? slot_parts_ : weights_)[size_t(rank)].push_back(part);
    if (v.slot) bytes_of_rank_[size_t(rank)] += part.to - part.from;
  }
}

// Elements as the sums have them, then whole units: each to the process that has the least.
void ShardedUpdate::share_out(const BlockSum& sums) {
  const auto ranks = size_t(c_.size());
  weights_.assign(ranks, {});
  slot_parts_.assign(ranks, {});
  bytes_of_rank_.assign(ranks, 0);
  for (const BlockSum::Piece& p : sums.pieces())
    for (size_t u = 0; u < plan_.units.size(); ++u)
      if (whole_.value_name(plan_.units[u].sums[0]) == cat(kSumInput, sum_names_[p.part])) {
        add_piece(u, p.rank, p.from, p.to);
        const std::string input = whole_.value_name(plan_.units[u].sums[0]);
        inputs_[ShardPiece{u, p.from, p.to}.name(input)] = {p.part, p.from, p.to};
      }
  std::vector<size_t> bytes(plan_.units.size(), 0), order, load = bytes_of_rank_;
  for (size_t u = 0; u < plan_.units.size(); ++u) {
    if (plan_.units[u].by_element) continue;
    order.push_back(u);
    for (const auto& v : plan_.units[u].variables) bytes[u] += state_->get(v.name).bytes();
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  for (size_t u : order) {
    const auto least = std::min_element(load.begin(), load.end());
    *least += bytes[u];
    add_piece(u, int(least - load.begin()), 0, -1);
  }
}

Graph ShardedUpdate::graph(const BlockSum& sums, SplitStep::Updates& updates) {
  share_out(sums);
  std::set<ValueId> mine;
  for (const ShardUnit& u : plan_.units) mine.insert(u.sums.begin(), u.sums.end());
  for (ValueId v : whole_.inputs)  // what all have is judged once
    if (std::string& name = whole_.value(v).name;
        c_.rank() > 0 && mine.count(v) == 0 && name.starts_with(kSumInput))
      name.replace(0, kSumInput.size(), kJudgedInput);
  own_ = std::make_shared<State>();
  for (const std::string& name : state_->names()) own_->adopt(name, state_->get(name));
  for (const ShardPiece& p : pieces_)
    for (const auto& v : plan_.units[p.unit].variables)
      if (p.to >= 0) own_->adopt(p.name(v.name), elements_of(state_->get(v.name), p.from, p.to));
  Graph g =
      shard_graph(whole_, types_, updates, plan_, pieces_,
                  [&](const std::string& name) -> const Tensor& { return state_->get(name); });
  forget();
  return g;
}

bool ShardedUpdate::find(const std::string& input, const BlockSum& sums, Tensor& found) const {
  const auto it = inputs_.find(input);
  if (it == inputs_.end()) return false;
  const auto& [sum, from, to] = it->second;
  const TensorType& t = sums.parts()[sum];
  found = elements_of(Tensor(t.dtype, t.shape, sums.result(sum), nullptr), from, to);
  return true;
}

bool ShardedUpdate::agree(Guard& guard, bool passed, double& norm) {
  const Told mine{norm,        guard.gradient_norm, passed, guard.gradients,
                  guard.zeros, guard.narrow_zeros};
  std::vector<Told>& all = said_;
  all.resize(size_t(c_.size()));
  c_.all_gather(&mine, sizeof mine, all.data());
  double squares = 0, gradients = 0;
  Told sum;
  sum.passed = 1;
  for (const Told& t : all) {
    squares += t.norm * t.norm;
    if (t.gradients >= 0) gradients += t.gradients * t.gradients;
    sum.gradients = std::max(sum.gradients, t.gradients);
    sum.passed &= t.passed;
    sum.count += t.count;
    sum.zeros += t.zeros;
    sum.narrow += t.narrow;
  }
  norm = std::sqrt(squares);
  guard.gradient_norm = sum.gradients >= 0 ? std::sqrt(gradients) : -1;
  guard.gradients = int(sum.count);
  guard.zeros = int(sum.zeros);
  guard.narrow_zeros = int(sum.narrow);
  return sum.passed != 0;
}

void ShardedUpdate::copy(const std::vector<Part>& parts, size_t at, size_t bytes, char* other,
                         bool out) const {
  size_t begin = 0;
  for (const Part& p : parts) {
    const size_t size = p.to - p.from, b = std::max(at, begin),
                 e = std::min(at + bytes, begin + size);
    if (b < e) {
      char* here = p.data + p.from + (b - begin);
      if (out)
        std::memcpy(other + (b - at), here, e - b);
      else
        std::memcpy(here, other + (b - at), e - b);
    }
    begin += size;
  }
}

void ShardedUpdate::exchange(const Parts& parts, int root) {
  const size_t ranks = parts.size(), me = size_t(c_.rank());
  const size_t window = std::max(kLeast, kStaging / ranks);
  totals_.assign(ranks, 0);
  offsets_.resize(ranks + 1);
  places_.resize(ranks + 1);
  for (size_t r = 0; r < ranks; ++r)
    for (const Part& p : parts[r]) totals_[r] += p.to - p.from;
  const size_t most = *std::max_element(totals_.begin(), totals_.end());
  if (!staging_) staging_ = allocate_lasting(window * ranks);
  if (root >= 0 && !received_) received_ = allocate_lasting(window * ranks);
  auto* out = static_cast<char*>(staging_.get());
  auto* in = root < 0 ? out : static_cast<char*>(received_.get());
  for (size_t at = 0; at < most; at += window) {
    places_[0] = 0;
    for (size_t r = 0; r < ranks; ++r)
      places_[r + 1] = places_[r] + std::min(window, totals_[r] - std::min(at, totals_[r]));
    const size_t mine = places_[me + 1] - places_[me];
    copy(parts[me], at, mine, out + (root < 0 ? places_[me] : 0), true);
    if (root < 0) {
      c_.wait(c_.start_collect(out, places_.data()));
    } else {
      for (size_t r = 0; r <= ranks; ++r) offsets_[r] = r <= size_t(root) ? 0 : mine;
      if (int(me) != root) std::fill(places_.begin(), places_.end(), 0);
      c_.wait(c_.start_exchange(out, offsets_.data(), in, places_.data()));
      if (int(me) != root) continue;
    }
    for (size_t r = 0; r < ranks; ++r)
      if (r != me) copy(parts[r], at, places_[r + 1] - places_[r], in + places_[r], false);
  }
  if (root >= 0) received_ = nullptr;
}

void ShardedUpdate::forget() {
  for (size_t r = 0; r < slot_parts_.size(); ++r)
    for (const Part& p : slot_parts_[r])
      if (int(r) != c_.rank()) give_back(p.data + p.from, p.to - p.from);
}

std::vector<std::string> ShardedUpdate::pieces_of(const std::string& name) const {
  std::vector<std::string> found;
  for (const ShardPiece& p : pieces_)
    for (const auto& v : plan_.units[p.unit].variables)
      if (v.name == name) found.push_back(p.name(name));
  return found;
}

size_t ShardedUpdate::slot_bytes() const {
  return std::accumulate(bytes_of_rank_.begin(), bytes_of_rank_.end(), size_t(0));
}

}  // namespace onnxtrain
