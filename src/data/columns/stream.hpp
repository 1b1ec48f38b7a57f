// A dataset without rows that can be chosen: its batches come one after the other from whoever
// makes them (a generator, a loader of another library).
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.hpp"

namespace onnxtrain {

class BatchStream {
 public:
  using Values = std::vector<std::pair<std::string, Value>>;  // by the names of the model's inputs

  virtual ~BatchStream() = default;
  // A new epoch, counted from 0.
  virtual void begin(int64_t epoch) = 0;
  // The next batch into `out`; false at the end of the epoch.
  virtual bool next(Values& out) = 0;
  // Batches of an epoch; 0 when only its end will tell.
  virtual int64_t batches() const { return 0; }
};

}  // namespace onnxtrain
