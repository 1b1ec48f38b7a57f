// Batches from columns and from streams.
#include "run/data/batches.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>

#include "core/random.hpp"
#include "data/prefetch.hpp"
#include "data/sampler.hpp"
#include "engine/batch_rows.hpp"

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

Tensor rows_between(const Tensor& t, size_t axis, int64_t from, int64_t to) {
  Shape shape = t.shape();
  const auto all = size_t(shape[axis]);
  shape[axis] = to - from;
  Tensor part(t.dtype(), shape);
  size_t outer = 1, inner = 1;
  for (size_t d = 0; d < shape.size(); ++d)
    if (d != axis) (d < axis ? outer : inner) *= size_t(shape[d]);
  const size_t n = size_t(to - from) * inner, pitch = all * inner, skip = size_t(from) * inner;
  for (size_t o = 0; o < outer; ++o)
    if (t.dtype() == DType::kString)
      std::copy_n(t.as<std::string>() + o * pitch + skip, n, part.as<std::string>() + o * n);
    else if (const size_t size = dtype_size(t.dtype()); n > 0)
      std::memcpy(static_cast<char*>(part.data()) + o * n * size,
                  static_cast<const char*>(t.data()) + (o * pitch + skip) * size, n * size);
  return part;
}

class StreamBatches final : public Batches {
 public:
  StreamBatches(BatchStream& stream, const Model& m, const std::vector<ValueDef>& inputs,
                const Part& part, std::function<void(uint64_t)> first_batch)
      : stream_(stream),
        model_(m),
        inputs_(inputs),
        part_(part),
        first_batch_(std::move(first_batch)),
        axes_(row_axes(inputs)) {
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
    if (part_.size > 1) take_own_rows();
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

  uint64_t hash_of_batch() const {
    Hash64 hash;
    for (const auto& [name, value] : fed_.feeds)
      if (const Tensor* t = std::get_if<Tensor>(&value); t && t->dtype() != DType::kString)
        hash.add(t->data(), t->bytes());
    return hash.value();
  }

  void take_own_rows() {
    if (fed_.index == 0 && first_batch_) first_batch_(hash_of_batch());
    const int64_t rank = part_.rank, size = part_.size;
    for (size_t k = 0; k < inputs_.size(); ++k) {
      const auto it = fed_.feeds.find(inputs_[k].name);
      if (axes_[k] < 0 || it == fed_.feeds.end()) continue;
      const Tensor* t = std::get_if<Tensor>(&it->second);
      if (!t || int(t->rank()) <= axes_[k]) continue;
      const int64_t n = t->shape()[size_t(axes_[k])];
      it->second = rows_between(*t, size_t(axes_[k]), n * rank / size, n * (rank + 1) / size);
    }
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
  Part part_;
  std::function<void(uint64_t)> first_batch_;
  std::vector<int> axes_;  // by input, the dimension that counts rows
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
                                        const std::vector<ValueDef>& inputs, const Part& part,
                                        std::function<void(uint64_t)> first_batch) {
  return std::make_unique<StreamBatches>(stream, m, inputs, part, std::move(first_batch));
}

}  // namespace onnxtrain::run
