// A run that several processes read, of which not all see its folder.
#pragma once
#include <cstdint>
#include <string>

#include "distributed/communicator.hpp"

namespace onnxtrain::run {

// Copies of the files that rank 0 sees, in a folder of this process's own. It goes with the object.
class Borrowed {
 public:
  enum class For : uint8_t { kResuming, kEvaluating, kPredicting };
  Borrowed() = default;
  ~Borrowed();
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  // Where this process finds the run, checkpoint or model `path`: there, or here when rank 0 sees
  // it and this process does not. All processes call it.
  std::string find(Communicator& c, const std::string& path, For what);

 private:
  std::string folder_;
};

}  // namespace onnxtrain::run
