// The values that state variables began with, for initialize(): not a second copy of the weights.
// What is zero, or stands in a file that is still the same, is not kept.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>

#include "core/memory.hpp"
#include "core/tensor.hpp"

namespace onnxtrain {

class InitialValues {
 public:
  void remember(const std::string& name, const Tensor& value);
  // Nothing when the file it would have to be read from has changed.
  std::optional<Tensor> find(const std::string& name) const;
  // Throws OT1137 then.
  Tensor get(const std::string& name) const;

 private:
  struct Entry {
    Tensor kept;  // without contents when there is another source
    bool zero = false;
    std::shared_ptr<const FileRange> file;
    uint64_t hash = 0;
  };
  std::unordered_map<std::string, Entry> entries_;
};

}  // namespace onnxtrain
