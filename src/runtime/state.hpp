// State: every variable that outlives a step (weights, optimizer slots, running statistics,
// counters), by name. Addresses stay fixed once a variable exists, so plans point straight at them.
#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/tensor.hpp"

namespace onnxtrain {

class ThreadPool;

class State {
 public:
  bool has(const std::string& name) const { return variables_.count(name) != 0; }
  const Tensor& get(const std::string& name) const;
  // Creates the variable or overwrites its contents; type and shape of an existing one must match.
  void set(const std::string& name, const Tensor& value);
  // New variables, all at once.
  void add(const std::vector<std::pair<std::string, const Tensor*>>& values, ThreadPool& pool);
  // A new variable whose memory is that of `value`, which nobody else may have.
  void adopt(const std::string& name, Tensor value);
  std::vector<std::string> names() const;  // in order of creation
  size_t bytes() const;
  // How often set() was called: whether somebody besides the steps has written here.
  uint64_t assignments() const { return assignments_; }

 private:
  std::string near_name(const std::string& name) const;  // as a hint
  std::map<std::string, Tensor> variables_;
  std::vector<std::string> order_;
  uint64_t assignments_ = 0;
};

}  // namespace onnxtrain
