// Greedy offset assignment.
#include "plan/memory.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace onnxtrain {

namespace {
constexpr size_t kAlign = 64;
size_t aligned(size_t n) { return (n + kAlign - 1) / kAlign * kAlign; }
}  // namespace

MemoryLayout plan_memory(const std::vector<Lifetime>& lifetimes) {
  MemoryLayout out;
  size_t n = lifetimes.size();
  out.offsets.assign(n, 0);
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    if (lifetimes[a].bytes != lifetimes[b].bytes) return lifetimes[a].bytes > lifetimes[b].bytes;
    return a < b;
  });
  struct Placed {
    size_t offset, end;
    int begin, last;
  };
  std::vector<Placed> placed;  // by offset
  for (size_t k : order) {
    const Lifetime& l = lifetimes[k];
    size_t need = aligned(l.bytes);
    if (need == 0) continue;
    size_t at = 0;
    for (const Placed& o : placed) {
      if (o.last < l.begin || o.begin > l.end) continue;
      if (o.offset >= at + need) break;
      at = std::max(at, o.end);
    }
    out.offsets[k] = at;
    auto here = std::upper_bound(placed.begin(), placed.end(), at,
                                 [](size_t x, const Placed& o) { return x < o.offset; });
    placed.insert(here, {at, at + need, l.begin, l.end});
    out.total = std::max(out.total, at + need);
  }
  // peak: sweep
  std::map<int, std::pair<size_t, size_t>> events;  // step -> (begins, ends after)
  for (const Lifetime& l : lifetimes) {
    events[l.begin].first += aligned(l.bytes);
    events[l.end + 1].second += aligned(l.bytes);
  }
  size_t live = 0;
  for (const auto& [step, e] : events) {
    live -= e.second;
    live += e.first;
    out.peak = std::max(out.peak, live);
  }
  return out;
}

}  // namespace onnxtrain
