// Building, checking and walking of decision trees.
#include "ops/ml/tree_walk.hpp"

#include <algorithm>
#include <cmath>
#include <map>

namespace onnxtrain::ops {

namespace {

[[noreturn]] void bad(const std::string& what) { model_error("OT1162", what); }

Rule rule_of(const std::string& s) {
  static const std::map<std::string, Rule> kRules = {
      {"BRANCH_LEQ", Rule::kLeq}, {"BRANCH_LT", Rule::kLt}, {"BRANCH_GTE", Rule::kGte},
      {"BRANCH_GT", Rule::kGt},   {"BRANCH_EQ", Rule::kEq}, {"BRANCH_NEQ", Rule::kNeq},
      {"LEAF", Rule::kLeaf}};
  auto it = kRules.find(s);
  if (it == kRules.end()) bad(cat("nodes_modes has '", s, "'"));
  return it->second;
}

}  // namespace

Aggregate aggregate_of(const std::string& s) {
  if (s == "SUM") return Aggregate::kSum;
  if (s == "AVERAGE") return Aggregate::kAverage;
  if (s == "MIN") return Aggregate::kMin;
  if (s == "MAX") return Aggregate::kMax;
  bad(cat("aggregate_function '", s, "' is unknown"));
}

std::vector<double> numbers_of(const Node& n, const std::string& key) {
  if (const Tensor* t = n.has(key + "_as_tensor") ? n.tensor(key + "_as_tensor") : nullptr;
      t && t->size() > 0)
    return t->to_doubles();
  std::vector<double> out;
  for (float f : n.floats(key)) out.push_back(double(f));
  return out;
}

Forest forest_of(const Node& n, const std::string& prefix) {
  Forest f;
  std::vector<int64_t> trees = n.ints("nodes_treeids"), ids = n.ints("nodes_nodeids"),
                       yes = n.ints("nodes_truenodeids"), no = n.ints("nodes_falsenodeids"),
                       features = n.ints("nodes_featureids"),
                       missing = n.ints("nodes_missing_value_tracks_true");
  std::vector<std::string> modes = n.strings("nodes_modes");
  std::vector<double> values = numbers_of(n, "nodes_values");
  size_t count = trees.size();
  if (ids.size() != count || yes.size() != count || no.size() != count ||
      features.size() != count || modes.size() != count || values.size() != count ||
      (!missing.empty() && missing.size() != count))
    bad("the nodes_* attributes have different lengths");
  std::map<std::pair<int64_t, int64_t>, int64_t> index;
  std::map<int64_t, int64_t> roots;  // the first node of a tree is its root
  for (size_t k = 0; k < count; ++k) {
    if (!index.emplace(std::pair(trees[k], ids[k]), int64_t(k)).second)
      bad(cat("node ", ids[k], " of tree ", trees[k], " is given twice"));
    roots.emplace(trees[k], int64_t(k));
  }
  auto link = [&](size_t k, int64_t id) {
    auto it = index.find({trees[k], id});
    if (it == index.end())
      bad(cat("node ", ids[k], " of tree ", trees[k], " leads to node ", id,
              ", which does not exist"));
    return it->second;
  };
  f.nodes.resize(count);
  for (size_t k = 0; k < count; ++k) {
    TreeNode& node = f.nodes[k];
    node.rule = rule_of(modes[k]);
    node.feature = features[k];
    node.value = values[k];
    node.missing_true = !missing.empty() && missing[k] != 0;
    if (node.rule == Rule::kLeaf) continue;
    node.yes = link(k, yes[k]);
    node.no = link(k, no[k]);
  }
  for (const auto& [tree, root] : roots) f.roots.push_back(root);
  // weights, grouped by leaf
  std::vector<int64_t> wt = n.ints(prefix + "_treeids"), wn = n.ints(prefix + "_nodeids"),
                       wi = n.ints(prefix + "_ids");
  std::vector<double> w = numbers_of(n, prefix + "_weights");
  if (wt.size() != w.size() || wn.size() != w.size() || wi.size() != w.size())
    bad(cat("the ", prefix, "_* attributes have different lengths"));
  std::vector<std::pair<int64_t, size_t>> order;
  for (size_t k = 0; k < w.size(); ++k) {
    auto it = index.find({wt[k], wn[k]});
    if (it == index.end())
      bad(cat("a weight belongs to node ", wn[k], " of tree ", wt[k], ", which does not exist"));
    order.push_back({it->second, k});
  }
  std::sort(order.begin(), order.end());
  for (size_t k = 0; k < order.size(); ++k) {
    TreeNode& node = f.nodes[size_t(order[k].first)];
    if (node.rule != Rule::kLeaf) continue;
    if (k == 0 || order[k - 1].first != order[k].first) node.begin = int64_t(f.weights.size());
    f.weights.push_back({wi[order[k].second], w[order[k].second]});
    node.end = int64_t(f.weights.size());
  }
  f.base = numbers_of(n, "base_values");
  return f;
}

void Forest::check(int64_t features) const {
  int64_t count = int64_t(nodes.size());
  for (const TreeNode& n : nodes) {
    if (n.rule == Rule::kLeaf) continue;
    if (n.feature < 0 || n.feature >= features)
      bad(cat("a tree reads feature ", n.feature, " of ", features));
    if (n.yes < 0 || n.yes >= count || n.no < 0 || n.no >= count) bad("a tree node leads nowhere");
  }
  for (const Weight& w : weights)
    if (w.target < 0 || w.target >= targets)
      bad(cat("a leaf names target ", w.target, " of ", targets));
  // no cycles: colours 0 new, 1 open, 2 done
  std::vector<char> colour(nodes.size(), 0);
  for (int64_t root : roots) {
    if (root < 0 || root >= count) bad(cat("root ", root, " of a tree does not exist"));
    std::vector<int64_t> todo = {root};
    while (!todo.empty()) {
      int64_t k = todo.back();
      if (colour[size_t(k)] == 0) {
        colour[size_t(k)] = 1;
        const TreeNode& n = nodes[size_t(k)];
        if (n.rule != Rule::kLeaf)
          for (int64_t next : {n.yes, n.no}) {
            if (colour[size_t(next)] == 1) bad("a tree has a cycle");
            if (colour[size_t(next)] == 0) todo.push_back(next);
          }
      } else {
        colour[size_t(k)] = 2;
        todo.pop_back();
      }
    }
  }
}

template <class T>
void Forest::row(const T* x, double* out, char* touched) const {
  std::fill_n(out, targets, 0.0);
  std::fill_n(touched, targets, 0);
  for (int64_t root : roots) {
    const TreeNode* n = &nodes[size_t(root)];
    while (n->rule != Rule::kLeaf) {
      double v = double(compute_t<T>(x[n->feature])), t = n->value;
      bool yes = false;
      if (std::isnan(v)) {
        yes = n->missing_true;
      } else {
        switch (n->rule) {
          case Rule::kLeq:
            yes = v <= t;
            break;
          case Rule::kLt:
            yes = v < t;
            break;
          case Rule::kGte:
            yes = v >= t;
            break;
          case Rule::kGt:
            yes = v > t;
            break;
          case Rule::kEq:
            yes = v == t;
            break;
          case Rule::kNeq:
            yes = v != t;
            break;
          case Rule::kMember:
            yes = std::find(members.begin() + n->begin, members.begin() + n->end, v) !=
                  members.begin() + n->end;
            break;
          case Rule::kLeaf:
            break;
        }
      }
      n = &nodes[size_t(yes ? n->yes : n->no)];
    }
    for (int64_t k = n->begin; k < n->end; ++k) {
      const Weight& w = weights[size_t(k)];
      double& y = out[w.target];
      switch (aggregate) {
        case Aggregate::kSum:
        case Aggregate::kAverage:
          y += w.value;
          break;
        case Aggregate::kMin:
          y = touched[w.target] ? std::min(y, w.value) : w.value;
          break;
        case Aggregate::kMax:
          y = touched[w.target] ? std::max(y, w.value) : w.value;
          break;
      }
      touched[w.target] = 1;
    }
  }
  if (aggregate == Aggregate::kAverage && !roots.empty())
    for (int64_t k = 0; k < targets; ++k) out[k] /= double(roots.size());
}

template void Forest::row<float>(const float*, double*, char*) const;
template void Forest::row<double>(const double*, double*, char*) const;
template void Forest::row<int64_t>(const int64_t*, double*, char*) const;
template void Forest::row<int32_t>(const int32_t*, double*, char*) const;
template void Forest::row<Half>(const Half*, double*, char*) const;

}  // namespace onnxtrain::ops
