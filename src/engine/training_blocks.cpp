// A Training whose batches are cut into blocks of rows.
#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>

#include "distributed/communicator.hpp"
#include "engine/batch_rows.hpp"
#include "engine/block_template.hpp"
#include "engine/target_shapes.hpp"
#include "engine/training_section.hpp"

namespace onnxtrain {

namespace {

// What an optimizer begins with: pages of zeros, which come back when they are written to.
void give_zeros_back(const State& state) {
  constexpr size_t kWorthIt = size_t(1) << 20;
  for (const std::string& name : state.names()) {
    const Tensor& t = state.get(name);
    if (t.dtype() == DType::kString || t.bytes() < kWorthIt || origin_of(t.owner())) continue;
    auto* data = static_cast<char*>(const_cast<void*>(t.data()));
    if (data[0] == 0 && std::memcmp(data, data + 1, t.bytes() - 1) == 0) give_back(data, t.bytes());
  }
}

// State variables that the model itself or another training section reads or writes.
std::set<std::string> read_by_others(const Model& m, size_t section) {
  std::set<std::string> names;
  auto add = [&](const Graph& g) {
    for (const Node& n : g.nodes)
      for (ValueId v : g.reads(n)) names.insert(g.value_name(v));
    for (ValueId v : g.outputs) names.insert(g.value_name(v));
  };
  add(m.main);
  for (size_t k = 0; k < m.training.size(); ++k) {
    if (k == section) continue;
    add(m.training[k].algorithm);
    for (const auto& [state, value] : m.training[k].update_binding) names.insert(state);
  }
  return names;
}

}  // namespace

void Training::set_blocks(int blocks, Communicator* communicator, BlockOptions how) {
  const int ranks = communicator ? communicator->size() : 1;
  if (blocks < 1 || blocks % ranks != 0)
    usage_error("OT5001",
                cat("--micro-blocks ", blocks, " cannot be shared by ", ranks,
                    ranks == 1 ? " process" : " processes", ": it is no multiple of ", ranks),
                cat("--micro-blocks ", std::max(1, (blocks + ranks - 1) / ranks) * ranks));
  blocks_ = blocks;
  communicator_ = communicator;
  how_ = how;
  const bool cut = blocks > 1 || communicator;
  cut_ = cut ? std::make_unique<BatchRows>() : nullptr;
  if (cut) cut_->axes = row_axes(slots_);
  if (how.shard && communicator) {
    algorithms_.front()->state_pages.stop();
    give_zeros_back(*state_);
  }
  for (size_t k = 0; k < algorithms_.size(); ++k) {
    auto& a = algorithms_[k];
    a->blocks = nullptr;
    if (!cut) continue;
    ProgramOptions options = options_;
    options.targets = elementwise_targets(*model_, model_->training[k]);
    options.memory_shares *= 2;  // blocks and update
    std::set<std::string> elsewhere;
    if (how.shard && communicator) elsewhere = read_by_others(*model_, k);
    const Graph& g = a->program->graph();
    std::vector<int> axes;
    for (ValueId v : g.inputs) {
      const auto named = [&](const ValueDef& slot) { return slot.name == g.value_name(v); };
      const auto slot = std::find_if(slots_.begin(), slots_.end(), named);
      axes.push_back(slot != slots_.end()        ? cut_->axes[size_t(slot - slots_.begin())]
                     : has_open_rows(g.value(v)) ? 0
                                                 : -1);
    }
    a->blocks = std::make_unique<BlockStep>(
        BlockStep::Parts{g.clone(), a->updates, a->loss, state_, pool_, options, communicator, how,
                         std::move(elsewhere), std::move(axes)});
  }
}

int64_t Training::meet(int64_t rows) {
  const Told mine{rows, int64_t(step_count_), wish_};
  std::vector<Told>& all = said_;
  all.assign(size_t(communicator_ ? communicator_->size() : 1), mine);
  const int rank = communicator_ ? communicator_->rank() : 0;
  if (communicator_) communicator_->all_gather(&mine, sizeof mine, all.data());
  told_.clear();
  wishes_ = 0;
  for (size_t r = 0; r < all.size(); ++r) {
    if ((all[r].rows == kGathers) != (rows == kGathers))
      throw Error(ErrorKind::kFailed, "OT5057",
                  cat("rank ", rows == kGathers ? size_t(rank) : r,
                      " collects the optimizer's state, rank ", rows == kGathers ? r : size_t(rank),
                      " makes a step: with a sharded optimizer the state is saved or read by all "
                      "processes together"),
                  "call save(), model() and state[...] in every process, not in rank 0 alone");
    if (all[r].step != mine.step)
      throw Error(ErrorKind::kFailed, "OT5020",
                  cat("rank ", r, " is at step ", all[r].step + 1, ", rank ", rank, " at step ",
                      mine.step + 1, ": they do not run the same program"));
    told_.push_back(all[r].rows);
    wishes_ |= int(all[r].wish);
  }
  return std::accumulate(told_.begin(), told_.end(), int64_t(0));
}

// How many rows every process has, and which of them are in which block.
void Training::cut_batch(const ArrayRef* arrays) {
  int64_t rows = -1;
  size_t first = 0;
  for (size_t k = 0; k < slots_.size(); ++k) {
    const int axis = cut_->axes[k];
    if (axis < 0 || arrays[k].dtype == DType::kUndefined || arrays[k].rank <= axis) continue;
    if (rows >= 0 && arrays[k].dims[axis] != rows)
      data_error("OT2165",
                 cat("'", slots_[first].name, "' and '", slots_[k].name,
                     "' have different sizes: ", rows, " and ", arrays[k].dims[axis]),
                 "give as many rows of one as of the other");
    rows = arrays[k].dims[axis];
    first = k;
  }
  if (rows < 0) no_open_rows();
  batch_rows_ = meet(rows);
  if (batch_rows_ == 0) no_rows_in_batch();
  cut_rows(told_, communicator_ ? communicator_->rank() : 0, blocks_, *cut_);
  if (!gathered_) return;
  gathered_ = false;
  for (const auto& a : algorithms_)
    if (a->blocks && a->blocks->shards()) a->blocks->shards()->forget();
}

// The rank whose rows the bad value comes from says so, to all.
void Training::refuse_blocks(Algorithm& a) {
  const double loss = a.loss >= 0 ? a.blocks->loss() : 0;
  const NotFiniteValue mine = a.blocks->trace(seed_, step_count_);
  struct Told {
    std::array<char, 192> name, origin;
  };
  auto put = [](const std::string& s, auto& to) {
    to.fill(0);
    std::memcpy(to.data(), s.data(), std::min(s.size(), to.size() - 1));
  };
  std::vector<Told> all(1);
  put(mine.name, all[0].name);
  put(mine.origin, all[0].origin);
  if (communicator_) {
    const Told own = all[0];
    all.resize(size_t(communicator_->size()));
    communicator_->all_gather(&own, sizeof own, all.data());
  }
  for (size_t r = 0; r < all.size(); ++r) {
    const std::string origin = all[r].origin.data();
    if (origin.empty()) continue;
    not_finite_error(loss, all[r].name.data(),
                     all.size() > 1 ? cat(origin, ", in the rows of rank ", r) : origin);
  }
  not_finite_error(loss, "", "the sum over all blocks");
}

}  // namespace onnxtrain
