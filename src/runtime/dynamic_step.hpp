// Steps whose shapes are known only when they run, and the values of one run that they work on.
#pragma once
#include <vector>

#include "runtime/executor.hpp"

namespace onnxtrain {

// Values of dynamic places during one run.
struct RunFrame {
  Plan& plan;
  const RunOptions& options;
  std::vector<Value> values;  // by ValueId; only dynamic ones are used
  std::vector<char> present;
};

// Any value as a Value: static memory is wrapped without copying. nullptr: it is not there.
const Value* read_value(RunFrame& f, ValueId v, Value& holder);

// Shapes, prepares and runs the node of a dynamic step; releases what nothing reads afterwards.
void run_dynamic(RunFrame& f, Step& s);

}  // namespace onnxtrain
