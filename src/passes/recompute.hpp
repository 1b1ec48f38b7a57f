// Recomputation under a memory limit: values of the forward pass that wait long for their next
// reader are dropped and computed again from what is still there, by a copy of the node that made
// them. The copy reads the same values with the same kernel and, when it is random, the same
// stream: the results are bit-exact.
#pragma once
#include <cstddef>
#include <vector>

#include "op/op.hpp"

namespace onnxtrain {

class Recomputation {
 public:
  // `keep`: values that must survive beside the outputs (state updates).
  Recomputation(const Graph& g, const std::vector<ValueId>& keep, const OpTable& table);
  ~Recomputation();

  // Largest sum of bytes alive at once, by lifetimes alone, with what was dropped so far.
  size_t peak() const;
  // Drops values, cheap ones to recompute first, until peak() <= target. False: it stays above.
  bool reduce_to(size_t target);
  // Drops cheap values while all copies together cost at most this share of the step.
  void spend(double share);
  // How many nodes run a second time.
  int copies() const;
  // The graph in which the dropped values are computed again before they are read.
  Graph rewritten() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// The node that this one repeats, by name: "conv1_again" -> "conv1".
std::string_view repeated_name(std::string_view name);

}  // namespace onnxtrain
