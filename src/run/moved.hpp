// Did a training change the weights at all?
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "engine/training.hpp"
#include "run/hooks/observer.hpp"

namespace onnxtrain::run {

// Remembers the weights: small models as they are, large ones by their hashes.
class Moved {
 public:
  explicit Moved(const Training& t);
  // Warns (OT3127) when this many steps were made since, at least one, and no weight changed by
  // more than the last digit that float32 has beside the largest weight.
  void warn_if_nothing(const Training& t, uint64_t steps, Observer& observer) const;

 private:
  struct Weight {
    std::string name;
    uint64_t hash = 0;
    Tensor copy;  // undefined: only the hash is known
  };
  std::vector<Weight> before_;
};

}  // namespace onnxtrain::run
