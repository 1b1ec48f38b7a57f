// What every process was given, compared by hashes.
#include "run/same_everywhere.hpp"

#include <unistd.h>

#include <array>

#include "core/error.hpp"
#include "core/random.hpp"
#include "core/version.hpp"

namespace onnxtrain::run {

uint64_t hash_of(const std::string& text) { return hash64(text.data(), text.size(), 7); }

uint64_t hash_of(const Model& m, const Training* t) {
  const State* state = t ? &t->state() : nullptr;
  Hash64 h;
  auto add = [&](const std::string& s) { h.add(s.data(), s.size()); };
  add(to_text(m.main));
  for (const TrainingStep& step : m.training) add(to_text(step.algorithm));
  for (const std::string& name : state ? state->names() : std::vector<std::string>()) {
    const Tensor& v = state->get(name);
    add(name);
    if (t->is_shared_out(name)) continue;
    if (v.dtype() != DType::kString) h.add(v.data(), v.bytes());
  }
  for (const ValueDef& d : m.main.values) {
    const bool variable = state && state->has(d.name);
    if (d.constant.defined() && !variable && d.constant.dtype() != DType::kString)
      h.add(d.constant.data(), d.constant.bytes());
  }
  return h.value();
}

void check_same(Communicator* c, const Facts& facts) {
  if (!c) return;
  constexpr size_t kMost = 8;
  struct Told {
    std::array<uint64_t, kMost> hashes{};
    std::array<char, 64> host{};
  };
  OT_ASSERT(facts.size() < kMost);
  Told mine;
  mine.hashes[0] = hash_of(version());
  for (size_t k = 0; k < facts.size(); ++k) mine.hashes[k + 1] = facts[k].second;
  gethostname(mine.host.data(), mine.host.size() - 1);
  std::vector<Told> all(static_cast<size_t>(c->size()));
  c->all_gather(&mine, sizeof mine, all.data());
  for (size_t r = 1; r < all.size(); ++r)
    for (size_t k = 0; k <= facts.size(); ++k)
      if (all[r].hashes[k] != all[0].hashes[k])
        usage_error("OT5007",
                    cat("rank ", r, " on host ", all[r].host.data(), " has another ",
                        k == 0 ? "version of onnxtrain" : facts[k - 1].first,
                        " than rank 0 on host ", all[0].host.data()),
                    "start every process with the same program, files and flags");
}

}  // namespace onnxtrain::run
