// What every process was given, compared by hashes.
#include "run/same_everywhere.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>

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

namespace {

constexpr const char* kFix = "start every process with the same program, files and flags";

struct Host {
  uint64_t sign = kSign;  // another command talks of other things
  std::array<char, 64> name{};
  static constexpr uint64_t kSign = 0x6f6e6e78747261ULL;
  Host() { gethostname(name.data(), name.size() - 1); }
  std::string place(size_t rank) const { return cat("rank ", rank, " on host ", name.data()); }
};

void check_command(const Host& host, size_t rank) {
  if (host.sign != Host::kSign)
    usage_error("OT5007", cat("rank ", rank, " runs another command or program than rank 0"), kFix);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

}  // namespace

void check_same(Communicator* c, const Facts& facts) {
  if (!c) return;
  constexpr size_t kMost = 8;
  struct Told {
    Host host;
    std::array<uint64_t, kMost> hashes{};
  };
  OT_ASSERT(facts.size() < kMost);
  Told mine;
  mine.hashes[0] = hash_of(version());
  for (size_t k = 0; k < facts.size(); ++k) mine.hashes[k + 1] = facts[k].second;
  std::vector<Told> all(static_cast<size_t>(c->size()));
  c->all_gather(&mine, sizeof mine, all.data());
  for (size_t r = 0; r < all.size(); ++r) check_command(all[r].host, r);
  for (size_t r = 1; r < all.size(); ++r)
    for (size_t k = 0; k <= facts.size(); ++k)
      if (all[r].hashes[k] != all[0].hashes[k])
        usage_error("OT5007",
                    cat(all[r].host.place(r), " has another ",
                        k == 0 ? "version of onnxtrain" : facts[k - 1].first, " than ",
                        all[0].host.place(0)),
                    kFix);
}

void check_same_lines(Communicator* c, const std::string& text) {
  if (!c) return;
  struct Told {
    Host host;
    uint64_t size = 0;
  };
  Told mine;
  mine.size = text.size();
  std::vector<Told> all(static_cast<size_t>(c->size()));
  c->all_gather(&mine, sizeof mine, all.data());
  uint64_t most = 1;
  for (size_t r = 0; r < all.size(); ++r) {
    check_command(all[r].host, r);
    most = std::max(most, all[r].size);
  }
  std::string padded = text, texts(most * all.size(), ' ');
  padded.resize(most, ' ');
  c->all_gather(padded.data(), most, texts.data());
  const std::vector<std::string> first = lines_of(texts.substr(0, all[0].size));
  for (size_t r = 1; r < all.size(); ++r) {
    const std::vector<std::string> other = lines_of(texts.substr(r * most, all[r].size));
    for (size_t k = 0; k < std::max(first.size(), other.size()); ++k) {
      const std::string here = k < first.size() ? first[k] : "no such setting",
                        there = k < other.size() ? other[k] : "no such setting";
      if (here != there)
        usage_error("OT5007",
                    cat("settings differ: ", there, " on ", all[r].host.place(r), ", ", here,
                        " on ", all[0].host.place(0)),
                    kFix);
    }
  }
}

}  // namespace onnxtrain::run
