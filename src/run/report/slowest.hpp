// Which operators take the time of a run: a few steps are watched and summed up for the report.
#pragma once
#include <memory>

#include "engine/profile.hpp"
#include "engine/training.hpp"
#include "run/folder/folder.hpp"

namespace onnxtrain::run {

class OperatorSample {
 public:
  OperatorSample(Training& t, const Folder& folder) : training_(t), folder_(folder) {}
  ~OperatorSample() { detach(); }
  OperatorSample(const OperatorSample&) = delete;
  OperatorSample& operator=(const OperatorSample&) = delete;

  // Called before every step. The first steps make plans and warm up, the next are watched; then
  // operators.json is written and nothing more is paid.
  void before_step();
  void finish();  // at the end of a run that is shorter than that

 private:
  void detach();
  void write(int steps) const;
  Training& training_;
  const Folder& folder_;
  std::unique_ptr<Profiler> profiler_;
  int step_ = 0;
};

}  // namespace onnxtrain::run
