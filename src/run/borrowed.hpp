// A run that is resumed by several processes, of which not all see its folder.
#pragma once
#include <string>

#include "distributed/communicator.hpp"

namespace onnxtrain::run {

// Copies of the files that rank 0 sees, in a folder of this process's own. It goes with the object.
class Borrowed {
 public:
  Borrowed() = default;
  ~Borrowed();
  Borrowed(const Borrowed&) = delete;
  Borrowed& operator=(const Borrowed&) = delete;

  // Where this process finds the run or checkpoint `path`: there, or here when rank 0 alone sees
  // it. All processes call it.
  std::string find(Communicator& c, const std::string& path);

 private:
  std::string folder_;
};

}  // namespace onnxtrain::run
