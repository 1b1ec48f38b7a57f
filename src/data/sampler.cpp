// Batches and the validation split.
#include "data/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/error.hpp"
#include "core/random.hpp"

namespace onnxtrain {
namespace {

// Far from any epoch number, so that the split has nothing to do with the first epochs' order.
constexpr uint64_t kSplitEpoch = uint64_t(1) << 63;

struct Group {
  std::vector<int64_t> rows;
  int64_t take = 0;
  double rest = 0;
};

// Whole numbers next to fraction * size that add up to `total`: the largest remainders round up.
void share_out(std::vector<Group>& groups, double fraction, int64_t total) {
  std::vector<Group*> order;
  for (Group& g : groups) {
    const double share = fraction * double(g.rows.size());
    g.take = std::min<int64_t>(int64_t(share), int64_t(g.rows.size()));
    g.rest = share - double(g.take);
    total -= g.take;
    order.push_back(&g);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const Group* a, const Group* b) { return a->rest > b->rest; });
  // a class with one row stays in training unless nothing else is left
  for (int64_t keep : {1, 0})
    for (Group* g : order)
      if (total > 0 && g->take + keep < int64_t(g->rows.size())) ++g->take, --total;
}

}  // namespace

Sampler::Sampler(int64_t rows, int64_t batch, uint64_t seed, bool shuffle, bool drop_last)
    : rows_(rows), batch_(batch), seed_(seed), shuffle_(shuffle), drop_last_(drop_last) {
  if (batch < 1)
    usage_error("OT2131", cat("a batch of ", batch, " rows is impossible"), "--batch 32");
  set_epoch(0);
}

void Sampler::set_epoch(uint64_t epoch) {
  if (!order_.empty() && (!shuffle_ || epoch == epoch_)) return;
  epoch_ = epoch;
  if (shuffle_) {
    order_ = permutation(rows_, seed_, epoch);
  } else {
    order_.resize(size_t(rows_));
    std::iota(order_.begin(), order_.end(), int64_t(0));
  }
}

int64_t Sampler::batches() const {
  return rows_ / batch_ + (!drop_last_ && rows_ % batch_ != 0 ? 1 : 0);
}

std::span<const int64_t> Sampler::batch(int64_t index) const {
  OT_ASSERT(index >= 0 && index < batches());
  const int64_t begin = index * batch_;
  return {order_.data() + begin, size_t(std::min(batch_, rows_ - begin))};
}

Split split_rows(int64_t rows, double fraction, uint64_t seed, std::span<const int64_t> labels) {
  if (!(fraction > 0 && fraction < 1))
    usage_error("OT2130", cat("the validation part must lie between 0 and 1, not ", fraction),
                "--valid 0.1");
  if (rows < 2)
    data_error("OT2130", cat(rows, rows == 1 ? " row" : " rows", " cannot be split for validation"),
               "give validation data of its own: --valid PATH");
  OT_ASSERT(labels.empty() || int64_t(labels.size()) == rows);
  std::map<int64_t, size_t> index;  // class -> group, classes ascending
  for (int64_t label : labels) index.emplace(label, 0);
  // labels that hardly repeat are no classes
  const bool stratify = !labels.empty() && int64_t(index.size()) <= rows / 2;
  std::vector<Group> groups(stratify ? index.size() : 1);
  size_t next = 0;
  for (auto& [label, group] : index) group = stratify ? next++ : 0;
  for (int64_t r = 0; r < rows; ++r)
    groups[stratify ? index[labels[size_t(r)]] : 0].rows.push_back(r);
  const int64_t total = std::clamp<int64_t>(std::llround(fraction * double(rows)), 1, rows - 1);
  share_out(groups, fraction, total);
  Split split;
  for (size_t g = 0; g < groups.size(); ++g) {
    const std::vector<int64_t>& members = groups[g].rows;
    const std::vector<int64_t> order =
        permutation(int64_t(members.size()), seed, kSplitEpoch + uint64_t(g));
    for (size_t i = 0; i < order.size(); ++i)
      (int64_t(i) < groups[g].take ? split.valid : split.train)
          .push_back(members[size_t(order[i])]);
  }
  std::sort(split.train.begin(), split.train.end());
  std::sort(split.valid.begin(), split.valid.end());
  return split;
}

}  // namespace onnxtrain
