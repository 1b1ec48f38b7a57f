// What every process was given, compared by hashes.
#include "run/same_everywhere.hpp"

#include <unistd.h>

#include <array>
#include <set>

#include "core/error.hpp"
#include "core/random.hpp"
#include "core/version.hpp"

namespace onnxtrain::run {

uint64_t hash_of(const std::string& text) { return hash64(text.data(), text.size(), 7); }

namespace {

void add_text(Hash64& h, const std::string& s) { h.add(s.data(), s.size()); }

void add_state(Hash64& h, const Training& t, const std::string& name) {
  const Tensor& v = t.state().get(name);
  add_text(h, name);
  if (!t.is_shared_out(name) && v.dtype() != DType::kString) h.add(v.data(), v.bytes());
}

}  // namespace

uint64_t hash_of(const Model& m, const Training* t) {
  Hash64 h;
  add_text(h, to_text(m.main));
  for (const ValueDef& d : m.main.values)
    if (t && t->state().has(d.name))
      add_state(h, *t, d.name);
    else if (d.constant.defined() && d.constant.dtype() != DType::kString)
      h.add(d.constant.data(), d.constant.bytes());
  return h.value();
}

uint64_t hash_of_training(const Training& t) {
  Hash64 h;
  for (const TrainingStep& step : t.source().training) add_text(h, to_text(step.algorithm));
  std::set<std::string> in_model;
  for (const ValueDef& d : t.source().main.values) in_model.insert(d.name);
  for (const std::string& name : t.state().names())
    if (in_model.count(name) == 0) add_state(h, t, name);
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
