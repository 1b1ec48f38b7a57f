// Adding in a fixed order, within a process and between processes. Between processes every rank
// adds one part of the numbers of all and hands the result out: as many bytes as a ring moves, and
// the order of additions is ours.
#include "distributed/block_sum.hpp"

#include <algorithm>
#include <cstring>

namespace onnxtrain {

namespace {

constexpr size_t kAlign = 64;
constexpr size_t kBucket = size_t(8) << 20;  // of the sums, exchanged at once
constexpr size_t kFlights = 4;               // buckets under way at most
constexpr int64_t kGrain = 1 << 15;

size_t aligned(size_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

std::shared_ptr<void> fresh(size_t bytes) {
  return allocate_lasting(std::max(bytes, kAlign), true);
}

template <class T>
void add_elements(T* to, const T* from, int64_t n) {
  using C = compute_t<T>;
  for (int64_t i = 0; i < n; ++i) to[i] = T(C(to[i]) + C(from[i]));
}

// n elements from an aligned place on.
void add_typed(DType t, char* to, const char* from, int64_t n, ThreadPool& pool) {
  dispatch<float, double, Half, BFloat16, int64_t, int32_t, uint8_t, bool>(
      t, "a sum over blocks", [&]<class T>() {
        auto* a = reinterpret_cast<T*>(to);
        const auto* b = reinterpret_cast<const T*>(from);
        parallel_for(pool, n, kGrain, [&](int64_t i, int64_t e) {
          if constexpr (std::is_same_v<T, bool>)
            for (; i < e; ++i) a[i] = a[i] || b[i];
          else
            add_elements(a + i, b + i, e - i);
        });
      });
}

}  // namespace

void BlockSum::Layout::add(const TensorType& t) {
  offsets.push_back(bytes);
  parts.push_back(t);
  bytes += aligned(size_t(t.size()) * dtype_size(t.dtype));
}

size_t BlockSum::Layout::end_of(size_t k) const {
  return offsets[k] + size_t(parts[k].size()) * dtype_size(parts[k].dtype);
}

BlockSum::BlockSum(std::vector<TensorType> parts, int blocks, Communicator* communicator,
                   size_t narrow_from, Shared shared)
    : blocks_(blocks), comm_(communicator), shared_(shared) {
  const int ranks = comm_ ? comm_->size() : 1, each = blocks / ranks;
  for (size_t k = 0; k < parts.size(); ++k) {
    here_.add(parts[k]);
    const bool narrow = ranks > 1 && k >= narrow_from && parts[k].dtype == DType::kFloat;
    narrow_ |= narrow;
    between_.add({narrow ? DType::kBFloat16 : parts[k].dtype, parts[k].shape});
  }
  OT_ASSERT(blocks % ranks == 0);
  if (shared.to > shared.from) {
    shared_begin_ = between_.offsets[shared.from];
    shared_end_ = shared.to < parts.size() ? between_.offsets[shared.to] : between_.bytes;
  }
  for (int r = 0; r < ranks; ++r) {
    subtrees_.emplace_back();
    find_subtrees({0, blocks}, {r * each, (r + 1) * each}, subtrees_.back());
    most_ = std::max(most_, subtrees_.back().size());
  }
  bucket_ = std::min(between_.bytes, kBucket);
  if (ranks == 1 || bucket_ == 0) return;
  OT_ASSERT(most_ < size_t(Communicator::kPending));
  for (size_t s = 0; s < most_ && narrow_; ++s) narrowed_.push_back(fresh(between_.bytes));
  size_t buckets = 0;
  for (size_t at = 0; at < between_.bytes; at = bucket_end(at)) ++buckets;
  flights_.resize(std::min({kFlights, buckets, size_t(Communicator::kPending) / most_}));
  for (Flight& f : flights_) {
    f.chunks.resize(size_t(ranks) + 1);
    f.places.resize(size_t(ranks) + 1);
    f.handles.reserve(most_);
    for (size_t s = 0; s < most_; ++s)
      f.received.push_back(fresh(size_t(ranks) * (bucket_ / size_t(ranks) + 2 * kAlign)));
  }
}

void BlockSum::find_subtrees(Range tree, Range own, std::vector<Range>& found) const {
  if (tree.to <= own.from || own.to <= tree.from) return;
  if (own.from <= tree.from && tree.to <= own.to) {
    found.push_back(tree);
    return;
  }
  const int mid = middle(tree.from, tree.to);
  find_subtrees({tree.from, mid}, own, found);
  find_subtrees({mid, tree.to}, own, found);
}

char* BlockSum::buffer(size_t k) {
  while (buffers_.size() <= k) buffers_.push_back(fresh(here_.bytes));
  return static_cast<char*>(buffers_[k].get());
}

void* BlockSum::result(size_t part) const {
  return static_cast<char*>(buffers_[0].get()) + here_.offsets[part];
}

bool BlockSum::is_empty(const Range& r) const {
  return std::all_of(empty_->begin() + r.from, empty_->begin() + r.to,
                     [](char e) { return e != 0; });
}

void BlockSum::add_part(size_t k, char* to, const void* from, bool copy, ThreadPool& pool) const {
  const auto* data = static_cast<const char*>(from);
  const TensorType& t = here_.parts[k];
  to += here_.offsets[k];
  if (!copy) return add_typed(t.dtype, to, data, t.size(), pool);
  const size_t bytes = here_.end_of(k) - here_.offsets[k];
  parallel_for(pool, int64_t(bytes), 4 * kGrain,
               [&](int64_t b, int64_t e) { std::memcpy(to + b, data + b, size_t(e - b)); });
}

void BlockSum::add_leaf(int block, size_t at, bool copy, const Compute& compute, ThreadPool& pool) {
  if (block == last_) {
    reached_ = true;
    late_.push_back({at, -1, copy});
    return;
  }
  const std::vector<const void*>& from = compute(block);
  for (size_t k = 0; k < here_.parts.size(); ++k) add_part(k, buffer(at), from[k], copy, pool);
}

// The sum of some blocks into a buffer; false when they are all empty. What the last block has a
// part in is done when it is ready.
bool BlockSum::sum_local(Range r, size_t at, const Compute& compute, ThreadPool& pool) {
  if (is_empty(r)) return false;
  if (r.to - r.from == 1) {
    add_leaf(r.from, at, true, compute, pool);
    return true;
  }
  const int mid = middle(r.from, r.to);
  const Range right{mid, r.to};
  if (!sum_local({r.from, mid}, at, compute, pool)) return sum_local(right, at, compute, pool);
  if (is_empty(right)) return true;
  if (right.to - right.from == 1) {
    add_leaf(right.from, at, false, compute, pool);
    return true;
  }
  // each partial sum that waits has a buffer of its own, behind those of the subtrees
  const size_t next = std::max(at + 1, most_);
  sum_local(right, next, compute, pool);
  if (reached_)
    late_.push_back({at, int(next), false});
  else
    add_bytes(here_, buffer(at), buffer(next), 0, here_.bytes, pool);
  return true;
}

// to and from begin at byte `begin` of the sums.
void BlockSum::add_bytes(const Layout& l, char* to, const char* from, size_t begin, size_t end,
                         ThreadPool& pool) {
  for (size_t k = 0; k < l.parts.size(); ++k) {
    const size_t b = std::max(begin, l.offsets[k]), e = std::min(end, l.end_of(k));
    if (b >= e) continue;
    const size_t size = dtype_size(l.parts[k].dtype);
    OT_ASSERT(size > 0);
    add_typed(l.parts[k].dtype, to + (b - begin), from + (b - begin), int64_t((e - b) / size),
              pool);
  }
}

// A part of this process's sums as it is sent.
void BlockSum::narrow(size_t k) {
  const TensorType &from = here_.parts[k], &to = between_.parts[k];
  const size_t own = subtrees_[size_t(comm_->rank())].size();
  for (size_t s = 0; s < own; ++s) {
    const char* a = buffer(s) + here_.offsets[k];
    char* b = sent(s) + between_.offsets[k];
    if (from.dtype == to.dtype) {
      std::memcpy(b, a, here_.end_of(k) - here_.offsets[k]);
      continue;
    }
    parallel_for(*pool_, from.size(), kGrain, [&](int64_t i, int64_t e) {
      for (; i < e; ++i)
        reinterpret_cast<BFloat16*>(b)[i] = BFloat16(reinterpret_cast<const float*>(a)[i]);
    });
  }
}

// What came, from byte `begin` on, as this process has it.
void BlockSum::widen(size_t begin, size_t end) {
  for (size_t k = 0; k < here_.parts.size(); ++k) {
    const size_t b = std::max(begin, between_.offsets[k]), e = std::min(end, between_.end_of(k));
    if (b >= e) continue;
    const size_t size =
        std::max<size_t>(dtype_size(between_.parts[k].dtype), 1);  // at least a byte
    const size_t first = (b - between_.offsets[k]) / size;
    const char* from = sent(0) + b;
    char* to = buffer(0) + here_.offsets[k] + first * dtype_size(here_.parts[k].dtype);
    if (here_.parts[k].dtype == between_.parts[k].dtype) {
      std::memcpy(to, from, e - b);
      continue;
    }
    parallel_for(*pool_, int64_t((e - b) / size), kGrain, [&](int64_t i, int64_t last) {
      for (; i < last; ++i)
        reinterpret_cast<float*>(to)[i] = float(reinterpret_cast<const BFloat16*>(from)[i]);
    });
  }
}

void BlockSum::run(const std::vector<char>& empty, const Compute& compute, ThreadPool& pool) {
  empty_ = &empty;
  pool_ = &pool;
  const int rank = comm_ ? comm_->rank() : 0, each = blocks_ / (comm_ ? comm_->size() : 1);
  last_ = -1;
  for (int b = rank * each; b < (rank + 1) * each; ++b)
    if (!empty[size_t(b)]) last_ = b;
  late_.clear();
  reached_ = false;
  ready_.assign(here_.parts.size(), 0);
  ready_parts_ = started_ = finished_ = 0;
  const std::vector<Range>& own = subtrees_[size_t(rank)];
  for (size_t s = 0; s < most_; ++s) buffer(s);
  for (size_t s = 0; s < own.size(); ++s) sum_local(own[s], s, compute, pool);
  const std::vector<const void*>* out = last_ >= 0 ? &compute(last_) : nullptr;
  for (size_t k = 0; k < here_.parts.size(); ++k)
    if (!ready_[k]) ready(k, out ? (*out)[k] : nullptr);
  last_ = -1;
  const size_t all = flights_.empty() ? 0 : between_.bytes;
  for (int turn = 0; finished_ < all; ++turn) {
    progress();
    if (finished_ < all) Communicator::pause(turn);
  }
}

void BlockSum::ready(size_t part, const void* data) {
  if (ready_[part]) return;
  for (const Late& l : late_) {
    const char* from =
        l.from < 0 ? static_cast<const char*>(data) : buffer(size_t(l.from)) + here_.offsets[part];
    add_part(part, buffer(l.to), from, l.copy, *pool_);
  }
  if (narrow_) narrow(part);
  ready_[part] = 1;
  while (ready_parts_ < here_.parts.size() && ready_[ready_parts_]) ++ready_parts_;
  start_buckets();
}

// Begins what is complete, in order: every rank begins the same exchanges in the same order.
void BlockSum::start_buckets() {
  if (flights_.empty()) return;
  const size_t all = between_.bytes,
               there = ready_parts_ < ready_.size() ? between_.offsets[ready_parts_] : all;
  while (started_ < all && under_way_ < flights_.size()) {
    const size_t end = bucket_end(started_);
    if (end > there) return;
    Flight& f = flights_[(oldest_ + under_way_) % flights_.size()];
    ++under_way_;
    f.begin = started_;
    f.end = end;
    f.shared = !shared_.everywhere && f.begin >= shared_begin_ && f.begin < shared_end_;
    started_ = end;
    start(f);
  }
}

// Parts that are shared have buckets of their own.
size_t BlockSum::bucket_end(size_t begin) const {
  size_t end = std::min(between_.bytes, begin + bucket_);
  for (size_t edge : {shared_begin_, shared_end_})
    if (begin < edge) end = std::min(end, edge);
  return end;
}

// The part of a bucket that each rank adds up.
void BlockSum::cut(size_t begin, size_t end, std::vector<size_t>& chunks) const {
  const size_t ranks = chunks.size() - 1, bytes = end - begin;
  for (size_t r = 0; r <= ranks; ++r)
    chunks[r] = r == ranks ? bytes : bytes * r / ranks / kAlign * kAlign;
}

std::vector<BlockSum::Piece> BlockSum::pieces() const {
  std::vector<Piece> found;
  std::vector<size_t> chunks(size_t(comm_ ? comm_->size() : 1) + 1);
  for (size_t at = shared_begin_; at < shared_end_; at = bucket_end(at)) {
    cut(at, bucket_end(at), chunks);
    for (size_t r = 0; r + 1 < chunks.size(); ++r)
      for (size_t k = shared_.from; k < shared_.to; ++k) {
        const size_t b = std::max(at + chunks[r], between_.offsets[k]),
                     e = std::min(at + chunks[r + 1], between_.end_of(k)),
                     size = dtype_size(between_.parts[k].dtype);
        if (b < e)
          found.push_back({k, int(r), int64_t((b - between_.offsets[k]) / size),
                           int64_t((e - between_.offsets[k]) / size)});
      }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const Piece& a, const Piece& b) { return a.part < b.part; });
  return found;
}

void BlockSum::start(Flight& f) {
  const auto ranks = size_t(comm_->size()), me = size_t(comm_->rank());
  cut(f.begin, f.end, f.chunks);
  const size_t mine = f.chunks[me + 1] - f.chunks[me];
  for (size_t r = 0; r <= ranks; ++r) f.places[r] = r * mine;
  f.collects = false;
  f.handles.clear();
  for (size_t s = 0; s < most_; ++s)
    f.handles.push_back(comm_->start_exchange(sent(s) + f.begin, f.chunks.data(),
                                              f.received[s].get(), f.places.data()));
}

bool BlockSum::is_done(Flight& f) {
  while (!f.handles.empty() && comm_->test(f.handles.back())) f.handles.pop_back();
  return f.handles.empty();
}

// The sum of this rank's part, then those of the others.
void BlockSum::collect(Flight& f) {
  const auto me = size_t(comm_->rank());
  const size_t mine = f.chunks[me + 1] - f.chunks[me];
  char* sum = sum_tree(f, {0, blocks_}, f.begin + f.chunks[me], f.begin + f.chunks[me + 1]);
  char* result = sent(0) + f.begin;
  if (sum && mine > 0) std::memcpy(result + f.chunks[me], sum, mine);
  f.collects = true;
  if (!f.shared) f.handles.push_back(comm_->start_collect(result, f.chunks.data()));
}

void BlockSum::progress() {
  bool in_order = true;  // sums are handed out in the order of the buckets
  for (size_t k = 0; k < under_way_; ++k) {
    Flight& f = flights_[(oldest_ + k) % flights_.size()];
    if (!f.collects) {
      if (!is_done(f) || !in_order) {
        in_order = false;
        continue;
      }
      collect(f);
    }
  }
  while (under_way_ > 0) {
    Flight& f = flights_[oldest_];
    if (!f.collects || !is_done(f)) break;
    finished_ = f.end;
    if (narrow_) widen(f.begin, f.end);
    oldest_ = (oldest_ + 1) % flights_.size();
    --under_way_;
  }
  start_buckets();
}

// The sum of what has come of these blocks, in the memory of the first; null: nothing has.
char* BlockSum::sum_tree(const Flight& f, Range r, size_t begin, size_t end) {
  if (is_empty(r)) return nullptr;
  for (size_t rank = 0; rank < subtrees_.size(); ++rank)
    for (size_t s = 0; s < subtrees_[rank].size(); ++s)
      if (subtrees_[rank][s].from == r.from && subtrees_[rank][s].to == r.to)
        return static_cast<char*>(f.received[s].get()) + rank * (end - begin);
  const int mid = middle(r.from, r.to);
  char* left = sum_tree(f, {r.from, mid}, begin, end);
  char* right = sum_tree(f, {mid, r.to}, begin, end);
  if (!left || !right) return left ? left : right;
  add_bytes(between_, left, right, begin, end, *pool_);
  return left;
}

}  // namespace onnxtrain
