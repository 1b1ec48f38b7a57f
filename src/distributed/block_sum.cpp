// Adding in a fixed order, within a process and between processes. Between processes every rank
// adds one part of the numbers of all and hands the result out: as many bytes as a ring moves, and
// the order of additions is ours.
#include "distributed/block_sum.hpp"

#include <algorithm>
#include <cstring>

namespace onnxtrain {

namespace {

constexpr size_t kAlign = 64;
constexpr size_t kBucket = size_t(32) << 20;  // of the sums, exchanged at once
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

BlockSum::BlockSum(std::vector<TensorType> parts, int blocks, Communicator* communicator)
    : parts_(std::move(parts)), blocks_(blocks), comm_(communicator) {
  for (const TensorType& t : parts_) {
    offsets_.push_back(bytes_);
    bytes_ += aligned(size_t(t.size()) * dtype_size(t.dtype));
  }
  const int ranks = comm_ ? comm_->size() : 1, each = blocks / ranks;
  OT_ASSERT(blocks % ranks == 0);
  for (int r = 0; r < ranks; ++r) {
    subtrees_.emplace_back();
    find_subtrees({0, blocks}, {r * each, (r + 1) * each}, subtrees_.back());
    most_ = std::max(most_, subtrees_.back().size());
  }
  bucket_ = std::min(bytes_, kBucket);
  if (ranks == 1) return;
  for (size_t s = 0; s < most_; ++s)
    received_.push_back(fresh(size_t(ranks) * (bucket_ / size_t(ranks) + 2 * kAlign)));
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
  while (buffers_.size() <= k) buffers_.push_back(fresh(bytes_));
  return static_cast<char*>(buffers_[k].get());
}

void* BlockSum::result(size_t part) const {
  return static_cast<char*>(buffers_[0].get()) + offsets_[part];
}

bool BlockSum::is_empty(const Range& r) const {
  return std::all_of(empty_->begin() + r.from, empty_->begin() + r.to,
                     [](char e) { return e != 0; });
}

void BlockSum::add_parts(char* to, const std::vector<const void*>& from, bool copy,
                         ThreadPool& pool) const {
  for (size_t k = 0; k < parts_.size(); ++k) {
    const size_t bytes = size_t(parts_[k].size()) * dtype_size(parts_[k].dtype);
    if (copy)
      parallel_for(pool, int64_t(bytes), int64_t(4) << 15, [&](int64_t b, int64_t e) {
        std::memcpy(to + offsets_[k] + b, static_cast<const char*>(from[k]) + b, size_t(e - b));
      });
    else
      add_typed(parts_[k].dtype, to + offsets_[k], static_cast<const char*>(from[k]),
                parts_[k].size(), pool);
  }
}

// The sum of some blocks into a buffer; false when they are all empty.
bool BlockSum::sum_local(Range r, size_t at, const Compute& compute, ThreadPool& pool) {
  if (is_empty(r)) return false;
  if (r.to - r.from == 1) {
    add_parts(buffer(at), compute(r.from), true, pool);
    return true;
  }
  const int mid = middle(r.from, r.to);
  const Range right{mid, r.to};
  if (!sum_local({r.from, mid}, at, compute, pool)) return sum_local(right, at, compute, pool);
  if (is_empty(right)) return true;
  if (right.to - right.from == 1) {
    add_parts(buffer(at), compute(right.from), false, pool);
    return true;
  }
  // each partial sum that waits has a buffer of its own, behind those of the subtrees
  const size_t next = std::max(at + 1, most_);
  sum_local(right, next, compute, pool);
  add_bytes(buffer(at), buffer(next), 0, bytes_, pool);
  return true;
}

// to and from begin at byte `begin` of the sums.
void BlockSum::add_bytes(char* to, const char* from, size_t begin, size_t end,
                         ThreadPool& pool) const {
  for (size_t k = 0; k < parts_.size(); ++k) {
    const size_t size = dtype_size(parts_[k].dtype);
    const size_t b = std::max(begin, offsets_[k]),
                 e = std::min(end, offsets_[k] + size_t(parts_[k].size()) * size);
    if (b < e)
      add_typed(parts_[k].dtype, to + (b - begin), from + (b - begin), int64_t((e - b) / size),
                pool);
  }
}

void BlockSum::run(const std::vector<char>& empty, const Compute& compute, ThreadPool& pool) {
  empty_ = &empty;
  const int rank = comm_ ? comm_->rank() : 0;
  const std::vector<Range>& own = subtrees_[size_t(rank)];
  for (size_t s = 0; s < own.size(); ++s) {
    buffer(s);
    sum_local(own[s], s, compute, pool);
  }
  for (size_t s = own.size(); s < most_; ++s) buffer(s);
  if (comm_ && comm_->size() > 1) sum_over_ranks(pool);
}

void BlockSum::sum_over_ranks(ThreadPool& pool) {
  for (size_t begin = 0; begin < bytes_; begin += bucket_)
    sum_bucket(begin, std::min(bytes_, begin + bucket_), pool);
}

void BlockSum::sum_bucket(size_t begin, size_t end, ThreadPool& pool) {
  const auto ranks = size_t(comm_->size()), me = size_t(comm_->rank());
  chunks_.resize(ranks + 1);
  for (size_t r = 0; r <= ranks; ++r)
    chunks_[r] = r == ranks ? end - begin : (end - begin) * r / ranks / kAlign * kAlign;
  const size_t mine = chunks_[me + 1] - chunks_[me];
  std::vector<size_t>& at = places_;
  at.resize(ranks + 1);
  for (size_t r = 0; r <= ranks; ++r) at[r] = r * mine;
  Communicator::Handle handles[Communicator::kPending];
  for (size_t first = 0; first < most_; first += Communicator::kPending) {
    const size_t last = std::min(most_, first + size_t(Communicator::kPending));
    for (size_t s = first; s < last; ++s)
      handles[s - first] =
          comm_->start_exchange(buffer(s) + begin, chunks_.data(), received_[s].get(), at.data());
    for (size_t s = first; s < last; ++s) comm_->wait(handles[s - first]);
  }
  char* sum = sum_tree({0, blocks_}, begin + chunks_[me], begin + chunks_[me + 1], pool);
  char* result = buffer(0) + begin;
  if (sum && mine > 0) std::memcpy(result + chunks_[me], sum, mine);
  comm_->wait(comm_->start_collect(result, chunks_.data()));
}

// The sum of what has come of these blocks, in the memory of the first; null: nothing has.
char* BlockSum::sum_tree(Range r, size_t begin, size_t end, ThreadPool& pool) {
  if (is_empty(r)) return nullptr;
  for (size_t rank = 0; rank < subtrees_.size(); ++rank)
    for (size_t s = 0; s < subtrees_[rank].size(); ++s)
      if (subtrees_[rank][s].from == r.from && subtrees_[rank][s].to == r.to)
        return static_cast<char*>(received_[s].get()) + rank * (end - begin);
  const int mid = middle(r.from, r.to);
  char* left = sum_tree({r.from, mid}, begin, end, pool);
  char* right = sum_tree({mid, r.to}, begin, end, pool);
  if (!left || !right) return left ? left : right;
  add_bytes(left, right, begin, end, pool);
  return left;
}

}  // namespace onnxtrain
