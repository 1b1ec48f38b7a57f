// Ensembles of decision trees in one form, whatever operator version they come from.
#pragma once
#include "ops/ml/features.hpp"

namespace onnxtrain::ops {

enum class Rule : uint8_t { kLeq, kLt, kGte, kGt, kEq, kNeq, kMember, kLeaf };
enum class Aggregate : uint8_t { kAverage, kSum, kMin, kMax };

struct TreeNode {
  Rule rule = Rule::kLeaf;
  bool missing_true = false;  // where a NaN goes
  int64_t feature = 0;
  double value = 0;
  int64_t yes = -1, no = -1;   // nodes
  int64_t begin = 0, end = 0;  // leaf: its weights; kMember: its members
};

struct Forest {
  std::vector<TreeNode> nodes;
  std::vector<int64_t> roots;
  struct Weight {
    int64_t target;
    double value;
  };
  std::vector<Weight> weights;
  std::vector<double> members, base;
  int64_t targets = 0;
  Aggregate aggregate = Aggregate::kSum;

  // Checks features, links (no cycles) and targets.
  void check(int64_t features) const;
  // Raw aggregated values of one row (without base values); `touched`: which targets got a weight.
  template <class T>
  void row(const T* x, double* out, char* touched) const;
};

// nodes_* of TreeEnsembleClassifier and -Regressor with the weights of `prefix` ("class",
// "target").
Forest forest_of(const Node& n, const std::string& prefix);
// floats `key`, or tensor `key`_as_tensor.
std::vector<double> numbers_of(const Node& n, const std::string& key);
Aggregate aggregate_of(const std::string& s);

}  // namespace onnxtrain::ops
