// What is to be learnt: classes or numbers, and which.
#pragma once
#include "run/new/model.hpp"

namespace onnxtrain::run {

struct NamedTarget;

struct NewTarget {
  bool numeric = false;  // its values are numbers
  bool classes = false;
  bool few_wholes = false;         // whole numbers that could as well be classes
  std::vector<std::string> names;  // of classes, when they are not 0, 1, 2, ...
  int64_t outputs = 1;
  int64_t least = 0, most = 0;          // rows of a class
  std::vector<double> mean, deviation;  // of numbers, per output
  std::string text;                     // "3 classes (58..71 each)"
  std::vector<NamedTarget> parts;       // several columns: what each of them is, not the above
};

struct NamedTarget {
  std::string name;
  NewTarget target;
};

// task: auto, classes or numbers. OT2184 when the target cannot be learnt so.
// labels: whole numbers 0, 1, ... n-1 are classes also when they are many (an array of labels).
NewTarget find_target(const Dataset& data, const std::string& column, const std::string& shown,
                      const std::string& task, bool labels = false);
// The targets of a table.
NewTarget find_targets(const Dataset& data, const std::string& task);

}  // namespace onnxtrain::run
