// Optimizer state that processes share out, as a Training sees it.
#include <array>
#include <cstring>

#include "distributed/communicator.hpp"
#include "engine/training_section.hpp"

namespace onnxtrain {

Training::Shards Training::shards() const {
  Shards all;
  for (const auto& a : algorithms_) {
    const ShardedUpdate* s = a->blocks ? a->blocks->shards() : nullptr;
    if (!s) continue;
    all.bytes += s->slot_bytes();
    all.of_rank.resize(s->bytes_of_rank().size());
    for (size_t r = 0; r < all.of_rank.size(); ++r) all.of_rank[r] += s->bytes_of_rank()[r];
    all.whole.insert(all.whole.end(), s->kept().begin(), s->kept().end());
  }
  return all;
}

bool Training::is_shared_out(const std::string& state) const {
  for (const auto& a : algorithms_)
    if (a->blocks && a->blocks->shards() && a->blocks->shards()->is_slot(state)) return true;
  return false;
}

void Training::gather_state(int root) {
  bool any = false;
  for (const auto& a : algorithms_) any |= a->blocks && a->blocks->shards();
  if (!any || (gathered_ && (gathered_in_ < 0 || gathered_in_ == root))) return;
  meet(kGathers);
  for (const auto& a : algorithms_)
    if (a->blocks && a->blocks->shards()) a->blocks->shards()->gather(root);
  gathered_ = true;
  gathered_in_ = root;
}

void Training::keep(const std::string& name, std::vector<Kept>& kept) const {
  for (const auto& a : algorithms_) {
    const ShardedUpdate* s = a->blocks ? a->blocks->shards() : nullptr;
    if (!s || !s->is_slot(name)) continue;
    for (const std::string& piece : s->pieces_of(name))
      kept.push_back({s->state().get(), piece, s->state()->get(piece).clone()});
    return;
  }
  kept.push_back({state_.get(), name, state_->get(name).clone()});
}

void Training::restore(const std::vector<Kept>& kept) {
  for (const Kept& k : kept) k.state->set(k.name, k.value);
}

// The first name that a process gives; processes that share state out may differ.
std::string Training::first_of_all(const std::string& name) const {
  if (shards().of_rank.empty()) return name;
  std::array<char, 192> mine{};
  std::memcpy(mine.data(), name.data(), std::min(name.size(), mine.size() - 1));
  std::vector<std::array<char, 192>> all(size_t(communicator_->size()));
  communicator_->all_gather(mine.data(), mine.size(), all.data());
  for (const auto& told : all)
    if (told[0] != 0) return told.data();
  return {};
}

}  // namespace onnxtrain
