// Pieces of a fixed size over all blocks.
#include "core/fill.hpp"

#include <algorithm>
#include <exception>
#include <mutex>

#include "core/memory.hpp"
#include "core/threads.hpp"

namespace onnxtrain {

namespace {

constexpr size_t kPiece = size_t(1) << 20;
constexpr size_t kWorthThreads = size_t(4) << 20;  // bytes; starting a thread takes 0.1 ms

struct Piece {
  const Fill* fill;
  size_t at;
};

}  // namespace

void fill_all(const std::vector<Fill>& fills, ThreadPool& pool) {
  std::vector<Piece> pieces;
  for (const Fill& f : fills)
    for (size_t at = 0; at < f.bytes; at += kPiece) pieces.push_back({&f, at});
  std::mutex mutex;
  std::exception_ptr failed;
  auto one = [&](int64_t k) {
    const auto [f, at] = pieces[size_t(k)];
    const size_t n = std::min(kPiece, f->bytes - at);
    char* out = static_cast<char*>(f->to) + at;
    populate(out, n);
    try {
      f->write(at, out, n);
    } catch (...) {
      std::lock_guard lock(mutex);
      if (!failed) failed = std::current_exception();
    }
  };
  pool.run(int64_t(pieces.size()), one);
  if (failed) std::rethrow_exception(failed);
}

void fill_all(const std::vector<Fill>& fills) {
  size_t bytes = 0;
  for (const Fill& f : fills) bytes += f.bytes;
  ThreadPool pool(bytes < kWorthThreads ? 1 : std::min(4, default_threads()));
  fill_all(fills, pool);
}

}  // namespace onnxtrain
