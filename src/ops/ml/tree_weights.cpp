// TreeEnsembleRegressor and TreeEnsembleClassifier with trainable leaves.
#include "ops/ml/tree_weights.hpp"

#include <algorithm>
#include <map>

namespace onnxtrain::ops {

namespace {

struct Leaf {
  int64_t tree, node;   // ids
  int64_t ordinal = 0;  // of the tree
  int64_t in_tree = 0;  // number of the leaf in its tree
};

struct Leaves {
  std::vector<Leaf> all;
  std::vector<int64_t> first;  // by tree: number of its first leaf
  std::map<std::pair<int64_t, int64_t>, int64_t> at;
  int64_t trees() const { return int64_t(first.size()); }
};

// In the order of trees, then of nodes; none when the attributes do not fit.
Leaves leaves_of(const Node& n) {
  std::vector<int64_t> trees = n.ints("nodes_treeids"), ids = n.ints("nodes_nodeids");
  std::vector<std::string> modes = n.strings("nodes_modes");
  std::map<int64_t, std::vector<int64_t>> by_tree;
  if (ids.size() != trees.size() || modes.size() != trees.size()) return {};
  for (size_t k = 0; k < trees.size(); ++k)
    if (modes[k] == "LEAF") by_tree[trees[k]].push_back(ids[k]);
  Leaves l;
  for (const auto& [tree, nodes] : by_tree) {
    l.first.push_back(int64_t(l.all.size()));
    for (size_t k = 0; k < nodes.size(); ++k) {
      l.at[{tree, nodes[k]}] = int64_t(l.all.size());
      l.all.push_back({tree, nodes[k], int64_t(l.first.size()) - 1, int64_t(k)});
    }
  }
  constexpr int64_t kExact = int64_t(1) << 24;  // numbers that a float tells apart
  const bool large =
      std::any_of(l.all.begin(), l.all.end(), [](const Leaf& f) { return f.in_tree >= kExact; });
  return large ? Leaves{} : l;
}

// [leaves, targets] of the weights; undefined when a weight is at no leaf.
Tensor table_of(const Node& n, const std::string& prefix, const Leaves& l, int64_t targets,
                bool one_target) {
  std::vector<int64_t> trees = n.ints(prefix + "_treeids"), nodes = n.ints(prefix + "_nodeids"),
                       ids = n.ints(prefix + "_ids");
  std::vector<double> weights = numbers_of(n, prefix + "_weights");
  if (l.all.empty() || targets < 1 || weights.empty() || trees.size() != weights.size() ||
      nodes.size() != weights.size() || ids.size() != weights.size())
    return {};
  std::vector<float> v(l.all.size() * size_t(targets), 0.f);
  for (size_t k = 0; k < weights.size(); ++k) {
    auto it = l.at.find({trees[k], nodes[k]});
    const int64_t target = one_target ? 0 : ids[k];
    if (it == l.at.end() || target < 0 || target >= targets) return {};
    v[size_t(it->second * targets + target)] += float(weights[k]);
  }
  return Tensor::vector<float>(v).reshaped({int64_t(l.all.size()), targets});
}

std::vector<std::pair<std::string, Tensor>> with_base(const Node& n, Tensor table) {
  if (!table.defined()) return {};
  std::vector<std::pair<std::string, Tensor>> out = {{"leaves", std::move(table)}};
  std::vector<double> base = numbers_of(n, "base_values");
  if (base.empty()) return out;
  std::vector<float> v(base.begin(), base.end());
  if (out[0].second.shape()[1] == 1) v = {v.back()};
  out.emplace_back("base_values", Tensor::vector<float>(v).reshaped({1, int64_t(v.size())}));
  return out;
}

// floats, or the tensor that stands for them
void set_numbers(Node& n, const std::string& key, const std::vector<float>& v) {
  const Tensor* old = n.has(key + "_as_tensor") ? n.tensor(key + "_as_tensor") : nullptr;
  if (!old || old->size() == 0) {
    n.attrs[key] = v;
  } else if (old->dtype() == DType::kDouble) {
    n.attrs[key + "_as_tensor"] = Tensor::vector<double>({v.begin(), v.end()});
  } else {
    n.attrs[key + "_as_tensor"] = Tensor::vector<float>(v);
  }
}

// A weight for every leaf and target; ids[t]: what target t is called.
void write_weights(Node& n, const std::string& prefix, const std::vector<float>& table,
                   const std::vector<int64_t>& ids) {
  const Leaves l = leaves_of(n);
  std::vector<int64_t> trees, nodes, targets;
  for (const Leaf& f : l.all)
    for (int64_t id : ids) {
      trees.push_back(f.tree);
      nodes.push_back(f.node);
      targets.push_back(id);
    }
  n.attrs[prefix + "_treeids"] = std::move(trees);
  n.attrs[prefix + "_nodeids"] = std::move(nodes);
  n.attrs[prefix + "_ids"] = std::move(targets);
  set_numbers(n, prefix + "_weights", table);
}

std::vector<float> floats_of(const Tensor& t) { return {t.as<float>(), t.as<float>() + t.size()}; }

struct Classes {
  Labels labels;
  Post post = Post::kNone;
  bool binary = false, all_positive = false;
  int64_t id = 0;  // binary: the only one that has weights
  int64_t targets() const { return binary ? 1 : labels.count(); }
};

Classes classes_of(const Node& n) {
  Classes c;
  c.labels = labels_of(n, "classlabels_int64s", "classlabels_strings");
  c.post = post_of(n);
  std::vector<int64_t> ids = n.ints("class_ids");
  const bool one_id =
      !ids.empty() && std::all_of(ids.begin(), ids.end(), [&](int64_t v) { return v == ids[0]; });
  c.binary = c.labels.count() <= 2 && one_id;
  if (one_id) c.id = ids[0];
  std::vector<double> w = numbers_of(n, "class_weights");
  c.all_positive = std::all_of(w.begin(), w.end(), [](double v) { return v >= 0; });
  return c;
}

// With one score for two classes the signs of the weights say how it becomes two: [1-s, s] when
// none is negative, else [-s, s]. Weights that changed their signs are moved, tree by tree, and the
// base value takes it back.
void keep_signs(const Leaves& l, bool positive, std::vector<float>& w, std::vector<float>& base) {
  if (base.empty()) base = {0.f};
  for (size_t t = 0; t < l.first.size(); ++t) {
    const auto begin = w.begin() + long(l.first[t]);
    const auto end = t + 1 < l.first.size() ? w.begin() + long(l.first[t + 1]) : w.end();
    const float by = positive ? std::max(0.f, -*std::min_element(begin, end))
                              : -1.f - *std::max_element(begin, end);
    for (auto v = begin; v != end; ++v) *v = positive ? std::max(0.f, *v + by) : *v + by;
    base[0] -= by;
    if (!positive) return;  // one tree is enough
  }
}

// Sums of the leaves that the rows reach, [rows, targets].
ValueId sums(GradBuilder& b, bool average) {
  const Node& n = b.node();
  const Leaves l = leaves_of(n);
  Node find;
  find.domain = kMl;
  find.op = "TreeEnsembleRegressor";
  find.version = n.version;
  find.name = n.name + "_leaf";
  for (const auto& [key, a] : n.attrs)
    if (key.starts_with("nodes_")) find.attrs[key] = a;
  std::vector<int64_t> trees, nodes, ids;
  std::vector<float> numbers;
  for (const Leaf& f : l.all) {
    trees.push_back(f.tree);
    nodes.push_back(f.node);
    ids.push_back(f.ordinal);
    numbers.push_back(float(f.in_tree));
  }
  find.attrs["target_treeids"] = trees;
  find.attrs["target_nodeids"] = nodes;
  find.attrs["target_ids"] = ids;
  find.attrs["target_weights"] = numbers;
  find.attrs["n_targets"] = l.trees();
  find.inputs = {b.x(0)};
  ValueId in_tree = b.graph().add_node(std::move(find), 1)[0];
  b.graph().value(in_tree).type = TypeInfo::tensor(DType::kFloat);
  // its shape is not known to every reader of the file
  in_tree = b.call("Reshape", {in_tree, b.constant_ints({-1, l.trees()})});
  ValueId leaf = b.call("Cast", {in_tree}, {{"to", int64_t(DType::kInt64)}});
  leaf = b.add(leaf, b.constant_ints(l.first));
  ValueId values = b.call("Gather", {b.x(1), leaf}, {{"axis", int64_t(0)}});
  ValueId y = b.reduce_sum(values, {1}, false);
  return average ? b.div(y, b.scalar(double(l.trees()), DType::kFloat)) : y;
}

}  // namespace

std::vector<std::pair<std::string, Tensor>> read_tree_regressor(const Node& n, int64_t) {
  const std::string how = n.s("aggregate_function", "SUM");
  if (how != "SUM" && how != "AVERAGE") return {};
  return with_base(n, table_of(n, "target", leaves_of(n), n.i("n_targets", 1), false));
}

std::vector<std::pair<std::string, Tensor>> read_tree_classifier(const Node& n, int64_t) {
  const Classes c = classes_of(n);
  if (c.labels.count() < 2 || c.post == Post::kProbit) return {};
  if (c.binary && c.all_positive && c.post != Post::kNone) return {};
  const size_t base = numbers_of(n, "base_values").size();
  if (!c.binary && base != 0 && int64_t(base) != c.labels.count()) return {};
  return with_base(n, table_of(n, "class", leaves_of(n), c.targets(), c.binary));
}

void write_tree_regressor(Node& n, const std::vector<Tensor>& values) {
  std::vector<int64_t> ids;
  for (int64_t k = 0; k < n.i("n_targets", 1); ++k) ids.push_back(k);
  write_weights(n, "target", floats_of(values.at(0)), ids);
  if (values.size() > 1) set_numbers(n, "base_values", floats_of(values[1]));
}

void write_tree_classifier(Node& n, const std::vector<Tensor>& values) {
  const Classes c = classes_of(n);
  std::vector<float> w = floats_of(values.at(0)),
                     base = values.size() > 1 ? floats_of(values[1]) : std::vector<float>();
  const bool positive = std::all_of(w.begin(), w.end(), [](float v) { return v >= 0; });
  if (c.binary && positive != c.all_positive) keep_signs(leaves_of(n), c.all_positive, w, base);
  std::vector<int64_t> ids;
  for (int64_t k = 0; k < c.targets(); ++k) ids.push_back(c.binary ? c.id : k);
  write_weights(n, "class", w, ids);
  if (!base.empty()) set_numbers(n, "base_values", base);
}

std::vector<ValueId> tree_regressor_form(GradBuilder& b) {
  ValueId y = sums(b, b.node().s("aggregate_function", "SUM") == "AVERAGE");
  if (b.has(2)) y = b.add(y, b.x(2));
  return {post_form(b, post_of(b.node()), y)};
}

std::vector<ValueId> tree_classifier_form(GradBuilder& b) {
  const Classes c = classes_of(b.node());
  ValueId s = sums(b, false);
  if (b.has(2)) s = b.add(s, b.x(2));
  Post post = c.post;
  ValueId best = kNone;
  if (c.binary) {
    ValueId yes = b.call("Greater", {s, b.scalar(c.all_positive ? 0.5 : 0.0, DType::kFloat)});
    best = b.squeeze(b.call("Cast", {yes}, {{"to", int64_t(DType::kInt64)}}), {1});
    if (post == Post::kLogistic) {  // the same numbers, and a loss finds the scores behind it
      s = b.mul(s, b.scalar(0.5, DType::kFloat));
      post = Post::kSoftmax;
    }
    ValueId other = c.all_positive ? b.sub(b.scalar(1, DType::kFloat), s) : b.neg(s);
    s = b.call("Concat", {other, s}, {{"axis", int64_t(1)}});
  } else {
    best = b.call("ArgMax", {s}, {{"axis", int64_t(1)}, {"keepdims", int64_t(0)}});
  }
  return {label_form(b, c.labels, best), post_form(b, post, s)};
}

}  // namespace onnxtrain::ops
