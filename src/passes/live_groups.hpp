// Memory by lifetimes alone: what a plan has to keep at each step, before any arena is laid out.
#pragma once
#include <cstddef>
#include <vector>

#include "op/op.hpp"

namespace onnxtrain {

// A value and its views: they share memory, so they live together.
struct LiveGroup {
  size_t bytes = 0;
  int first = 0;          // the node that makes it
  std::vector<int> uses;  // nodes that read it or one of its views, ascending
};

struct LiveGroups {
  LiveGroups(const Graph& g, const OpTable& table);
  int of(ValueId v) const { return of_[size_t(v)]; }  // -1: not in the arena
  bool is_view(size_t node) const { return view_[node] != 0; }
  std::vector<LiveGroup> groups;

 private:
  std::vector<int> of_;
  std::vector<char> view_;
};

// Has this value a place in the arena?
bool is_planned(const Graph& g, ValueId v);

// Sums up intervals [from, to] of steps.
class AliveBytes {
 public:
  explicit AliveBytes(size_t steps = 0) : change_(steps + 2, 0) {}
  void add(int from, int to, size_t bytes) {
    change_[size_t(from)] += int64_t(bytes);
    change_[size_t(to) + 1] -= int64_t(bytes);
  }
  void finish();
  std::vector<size_t> alive;  // by step, after finish()
  size_t peak = 0;
  int peak_step = 0;

 private:
  std::vector<int64_t> change_;
};

}  // namespace onnxtrain
