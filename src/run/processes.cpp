// A run that several processes make together: the same settings, model and data in each.
#include <unistd.h>

#include <array>
#include <cstring>

#include "core/random.hpp"
#include "core/version.hpp"
#include "run/run.hpp"

namespace onnxtrain::run {

namespace {

constexpr size_t kFacts = 5;
constexpr const char* kNames[kFacts] = {"version of onnxtrain", "model", "data", "settings",
                                        "position in the training"};

uint64_t hash_text(const std::string& s) { return hash64(s.data(), s.size(), 7); }

uint64_t hash_of_model(const Training& t) {
  Hash64 h;
  const Model& m = t.source();
  auto add = [&](const std::string& s) { h.add(s.data(), s.size()); };
  add(to_text(m.main));
  for (const TrainingStep& step : m.training) add(to_text(step.algorithm));
  for (const std::string& name : t.state().names()) {
    const Tensor& v = t.state().get(name);
    add(name);
    if (v.dtype() != DType::kString) h.add(v.data(), v.bytes());
  }
  for (const ValueDef& d : m.main.values)
    if (d.is_constant() && !t.state().has(d.name) && d.constant.dtype() != DType::kString)
      h.add(d.constant.data(), d.constant.bytes());
  return h.value();
}

// Paths may differ between hosts; the data itself is compared.
std::string comparable(const std::string& settings) {
  std::string out;
  size_t at = 0;
  while (at < settings.size()) {
    const size_t end = std::min(settings.find('\n', at), settings.size());
    const std::string line = settings.substr(at, end - at);
    const std::string key = line.substr(0, line.find(' '));
    if (key != "data" && key != "valid" && key != "model" && key != "config") out += line + "\n";
    at = end + 1;
  }
  return out;
}

struct Facts {
  std::array<uint64_t, kFacts> hashes{};
  std::array<char, 64> host{};
};

}  // namespace

// Enough rows for all, the same number of blocks as before.
void Run::cut_batches() {
  Communicator* c = q_.communicator;
  const int ranks = c ? c->size() : 1;
  if (c && parts_.train.rows() < ranks)
    data_error("OT5005",
               cat("the data has ", parts_.train.rows(), " rows for training, fewer than the ",
                   ranks, " processes"),
               "start fewer processes");
  if (c && q_.fit.batch < ranks)
    usage_error("OT5006",
                cat("--batch ", q_.fit.batch, " is the batch of all ", ranks,
                    " processes together: it has fewer rows than there are processes"),
                cat("--batch ", ranks));
  distribute(c, q_.blocks);
  settings_.replace("micro-blocks", std::to_string(t_->blocks()));
  check_processes(settings_.text_for_checkpoint());
}

void Run::distribute(Communicator* c, int blocks) {
  const int ranks = c ? c->size() : 1;
  q_.communicator = c;
  q_.blocks = blocks > 0 ? blocks : known_blocks_ > 0 ? known_blocks_ : ranks;
  t_->set_blocks(q_.blocks, c);
}

void Run::check_processes(const std::string& settings) const {
  Communicator* c = q_.communicator;
  if (!c) return;
  Facts mine;
  mine.hashes = {hash_text(version()), hash_of_model(*t_), hash_text(parts_.all.text()),
                 hash_text(comparable(settings)),
                 hash_text(cat(at_.step, " ", at_.epoch, " ", at_.batch, " ", at_.seed))};
  gethostname(mine.host.data(), mine.host.size() - 1);
  std::vector<Facts> all(static_cast<size_t>(c->size()));
  c->all_gather(&mine, sizeof mine, all.data());
  for (size_t r = 1; r < all.size(); ++r)
    for (size_t k = 0; k < kFacts; ++k)
      if (all[r].hashes[k] != all[0].hashes[k])
        usage_error("OT5007",
                    cat("rank ", r, " on host ", all[r].host.data(), " has another ", kNames[k],
                        " than rank 0 on host ", all[0].host.data()),
                    "start every process with the same program, files and flags");
}

}  // namespace onnxtrain::run
