// env.json: the machine and the build of a run; when it has ended also the memory that it took.
#pragma once
#include <string>

#include "engine/training.hpp"

namespace onnxtrain::run {

struct MemoryUse {
  PlannedMemory planned;
  size_t peak = 0, limit = 0;  // of the process; of --memory, 0: none
  Training::Shards shards = {};
};

MemoryUse memory_use(const Training& t, size_t limit);

// Made when the run begins; what it says is kept, so that the file is never read back.
class Environment {
 public:
  explicit Environment(Training& t);
  // memory: null while the run is under way
  std::string text(const MemoryUse* memory = nullptr) const;

 private:
  int threads_;
  int64_t parameters_ = 0, trained_ = 0;  // elements of the initializers; of those that are updated
  std::string started_;
};

}  // namespace onnxtrain::run
