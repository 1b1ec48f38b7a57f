// Batches from columns and from streams.
#include "run/data/batches.hpp"

#include <algorithm>
#include <chrono>

#include "data/prefetch.hpp"
#include "data/sampler.hpp"

namespace onnxtrain::run {

namespace {

class ColumnBatches final : public Batches {
 public:
  ColumnBatches(const FeedColumns& data, int64_t batch, uint64_t seed, bool shuffle, bool whole,
                const Part& part)
      : names_(data.names),
        label_(data.label),
        columns_(data.columns),
        whole_(whole),
        part_(part),
        sampler_(data.rows(), batch, seed, shuffle, whole),
        full_(own_rows(std::min(batch, std::max<int64_t>(1, data.rows())))),
        prefetch_(data.columns, std::max<int64_t>(1, full_)) {
    for (const auto& name : names_) fed_.feeds[name] = Value();
  }
  void start(int64_t epoch, int64_t first) override {
    sampler_.set_epoch(uint64_t(epoch));
    if (part_.size == 1) return prefetch_.start(sampler_.order(), first, whole_);
    index_ = first;
    std::vector<int64_t> own;
    for (int64_t k = 0; k < sampler_.batches(); ++k) {
      const std::span<const int64_t> rows = sampler_.batch(k);
      const auto n = int64_t(rows.size());
      own.insert(own.end(), rows.begin() + n * part_.rank / part_.size,
                 rows.begin() + n * (part_.rank + 1) / part_.size);
    }
    prefetch_.start(std::move(own), first, false);
  }
  const FedBatch* next() override {
    if (part_.size > 1) return next_part();
    const Batch* b = prefetch_.next();
    if (!b) return nullptr;
    fed_.index = b->index;
    fed_.rows = b->rows;
    for (size_t k = 0; k < names_.size(); ++k) fed_.feeds[names_[k]] = b->tensors[k];
    return &fed_;
  }
  int64_t batches() const override { return sampler_.batches(); }
  double wait_seconds() const override { return prefetch_.wait_seconds(); }
  const std::string& label() const override { return label_; }

 private:
  int64_t own_rows(int64_t n) const {
    return n * (part_.rank + 1) / part_.size - n * part_.rank / part_.size;
  }
  // The last batch may be so small that nothing of it is here.
  const FedBatch* next_part() {
    if (index_ >= sampler_.batches()) return nullptr;
    fed_.index = index_;
    fed_.rows = int64_t(sampler_.batch(index_).size());
    ++index_;
    const Batch* b = own_rows(fed_.rows) > 0 ? prefetch_.next() : nullptr;
    for (size_t k = 0; k < names_.size(); ++k) {
      Shape none = columns_[k]->row_shape();
      none.insert(none.begin(), 0);
      fed_.feeds[names_[k]] = b ? b->tensors[k] : Tensor(columns_[k]->dtype(), none);
    }
    return &fed_;
  }

  std::vector<std::string> names_;
  std::string label_;
  std::vector<ColumnPtr> columns_;
  bool whole_;
  Part part_;
  Sampler sampler_;
  int64_t full_, index_ = 0;
  Prefetcher prefetch_;
  FedBatch fed_;
};

class StreamBatches final : public Batches {
 public:
  StreamBatches(BatchStream& stream, const Model& m, const std::vector<ValueDef>& inputs)
      : stream_(stream), model_(m), inputs_(inputs) {
    for (const ValueDef& d : inputs_)
      if (is_target(m, d.name) && label_.empty()) label_ = d.name;
  }
  void start(int64_t epoch, int64_t first) override {
    epoch_ = epoch;
    fed_.index = -1;
    stream_.begin(epoch);
    // batches that an earlier process has trained on come again and are passed over
    while (fed_.index + 1 < first && draw()) ++fed_.index;
  }
  const FedBatch* next() override {
    if (!draw()) {
      if (fed_.index < 0)
        data_error("OT2101", cat("no batches in epoch ", epoch_ + 1),
                   "a generator can be gone through once: pass the function that makes it");
      return nullptr;
    }
    ++fed_.index;
    feed();
    return &fed_;
  }
  int64_t batches() const override { return stream_.batches(); }
  double wait_seconds() const override { return waited_; }
  const std::string& label() const override { return label_; }
  bool is_stream() const override { return true; }

 private:
  static int64_t rows_of(const BatchStream::Values& values) {
    const Tensor* t = values.empty() ? nullptr : std::get_if<Tensor>(&values[0].second);
    return t && t->rank() > 0 ? t->shape()[0] : 1;
  }

  // A batch with rows: a mean over nothing is not a number.
  bool draw() {
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    bool there = stream_.next(values_);
    while (there && rows_of(values_) == 0) there = stream_.next(values_);
    waited_ += std::chrono::duration<double>(Clock::now() - begin).count();
    return there;
  }

  void feed() {
    fed_.rows = rows_of(values_);
    fed_.feeds.clear();
    for (auto& [name, value] : values_) {
      const auto d = std::find_if(inputs_.begin(), inputs_.end(),
                                  [&n = name](const ValueDef& x) { return x.name == n; });
      fed_.feeds[name] = d == inputs_.end() ? std::move(value) : fitted(model_, *d, value);
    }
    for (const ValueDef& d : inputs_)
      if (fed_.feeds.count(d.name) == 0) missing(d.name);
  }

  [[noreturn]] void missing(const std::string& name) const {
    std::vector<std::string> there, wanted;
    for (const auto& [key, value] : fed_.feeds) there.push_back(key);
    for (const ValueDef& d : inputs_) wanted.push_back(d.name);
    data_error("OT2106",
               cat("a batch has no '", name, "'; it has ",
                   there.empty() ? std::string("nothing") : listed(there)),
               cat("a batch is (x, y), or a dict with ", listed(wanted)));
  }

  BatchStream& stream_;
  const Model& model_;
  std::vector<ValueDef> inputs_;
  std::string label_;
  BatchStream::Values values_;
  FedBatch fed_;
  int64_t epoch_ = 0;
  double waited_ = 0;
};

}  // namespace

std::unique_ptr<Batches> column_batches(const FeedColumns& data, int64_t batch, uint64_t seed,
                                        bool shuffle, bool whole, const Part& part) {
  return std::make_unique<ColumnBatches>(data, batch, seed, shuffle, whole, part);
}

std::unique_ptr<Batches> stream_batches(BatchStream& stream, const Model& m,
                                        const std::vector<ValueDef>& inputs) {
  return std::make_unique<StreamBatches>(stream, m, inputs);
}

}  // namespace onnxtrain::run
