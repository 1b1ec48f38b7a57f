// TreeEnsembleRegressor, TreeEnsembleClassifier, TreeEnsemble (ai.onnx.ml).
#include <algorithm>
#include <cmath>
#include <memory>

#include "ops/ml/tree_walk.hpp"

namespace onnxtrain::ops {

namespace {

constexpr const char* kSteps =
    "a decision tree is piecewise constant in its inputs: their gradient is zero almost everywhere";
constexpr int64_t kGrain = 64;  // rows

// ---------------------------------------------------------------- regressor

Forest regressor_forest(const Node& n, int64_t features) {
  Forest f = forest_of(n, "target");
  f.targets = n.i("n_targets", 1);
  if (f.targets < 1) model_error("OT1162", cat("n_targets is ", f.targets));
  f.aggregate = aggregate_of(n.s("aggregate_function", "SUM"));
  if (!f.base.empty() && int64_t(f.base.size()) != f.targets)
    model_error("OT1162", cat(f.base.size(), " base_values for ", f.targets, " targets"));
  f.check(features);
  return f;
}

void regressor_shape(ShapeCtx& c) {
  check_number(c.dtype(0), "TreeEnsembleRegressor");
  Rows x = rows_of(c.shape(0), "TreeEnsembleRegressor");
  post_of(c.node());
  c.set(0, DType::kFloat, {x.rows, c.node().i("n_targets", 1)});
}

Kernel make_regressor(Prepare& p) {
  Rows x = rows_of(p.in(0).shape, "TreeEnsembleRegressor");
  auto f = std::make_shared<const Forest>(regressor_forest(p.node(), x.features));
  Post post = post_of(p.node());
  return dispatch_number(p.in(0).dtype, "TreeEnsembleRegressor", [&]<class T>() -> Kernel {
    return [=](const Run& r) {
      parallel_for(*r.pool, x.rows, kGrain, [&](int64_t begin, int64_t end) {
        std::vector<double> sums(size_t(f->targets));
        std::vector<char> touched(size_t(f->targets));
        for (int64_t i = begin; i < end; ++i) {
          f->row(r.in<T>(0) + i * x.features, sums.data(), touched.data());
          float* y = r.out<float>(0) + i * f->targets;
          for (int64_t k = 0; k < f->targets; ++k)
            y[k] = float(sums[size_t(k)] + (f->base.empty() ? 0 : f->base[size_t(k)]));
          apply_post(post, y, f->targets);
        }
      });
    };
  });
}

// ---------------------------------------------------------------- classifier

struct Classifier {
  Forest forest;
  Labels labels;
  Post post;
  bool binary = false;        // two classes (or one), weights of only one of them
  bool all_positive = false;  // then scores are probabilities and 0.5 is the border
  int64_t columns = 0;
};

Classifier classifier_of(const Node& n) {
  Classifier c;
  c.labels = labels_of(n, "classlabels_int64s", "classlabels_strings");
  int64_t classes = c.labels.count();
  if (classes < 1) model_error("OT1162", "class labels are missing");
  c.post = post_of(n);
  std::vector<int64_t> ids = n.ints("class_ids");
  bool one_id =
      !ids.empty() && std::all_of(ids.begin(), ids.end(), [&](int64_t v) { return v == ids[0]; });
  c.binary = classes <= 2 && one_id;
  if (classes == 1 && c.labels.use_strings())
    model_error("OT1162", "one class label alone must be an integer");
  c.columns = c.binary ? (c.post == Post::kProbit ? 1 : 2) : classes;
  return c;
}

void fill_forest(Classifier& c, const Node& n, int64_t features) {
  c.forest = forest_of(n, "class");
  c.forest.targets = c.labels.count();
  if (c.binary) {
    c.forest.targets = 1;
    for (auto& w : c.forest.weights) w.target = 0;
  }
  c.all_positive = std::all_of(c.forest.weights.begin(), c.forest.weights.end(),
                               [](auto w) { return w.value >= 0; });
  size_t base = c.forest.base.size();
  if (base != 0 && base != 1 && int64_t(base) != c.labels.count())
    model_error("OT1162", cat(base, " base_values for ", c.labels.count(), " classes"));
  c.forest.check(features);
}

void classifier_shape(ShapeCtx& c) {
  check_number(c.dtype(0), "TreeEnsembleClassifier");
  Rows x = rows_of(c.shape(0), "TreeEnsembleClassifier");
  Classifier k = classifier_of(c.node());
  c.set(0, k.labels.dtype(), {x.rows});
  c.set(1, DType::kFloat, {x.rows, k.columns});
}

// Scores of one row from the raw sums; returns the class.
int64_t finish_row(const Classifier& c, const double* sums, float* out) {
  const std::vector<double>& base = c.forest.base;
  if (!c.binary) {
    std::vector<float> s(static_cast<size_t>(c.columns));
    for (int64_t k = 0; k < c.columns; ++k)
      s[size_t(k)] = float(sums[k] + (int64_t(base.size()) == c.columns ? base[size_t(k)] : 0));
    int64_t best = std::max_element(s.begin(), s.end()) - s.begin();
    write_scores(c.post, s.data(), c.columns, -1, out);
    return best;
  }
  float s = float(sums[0] + (base.empty() ? 0 : base.back()));
  bool yes = s > (c.all_positive ? 0.5f : 0.f);
  write_scores(c.post, &s, 1, c.all_positive ? 0 : 2, out);
  return yes ? 1 : 0;
}

Kernel make_classifier(Prepare& p) {
  Rows x = rows_of(p.in(0).shape, "TreeEnsembleClassifier");
  auto c = std::make_shared<Classifier>(classifier_of(p.node()));
  fill_forest(*c, p.node(), x.features);
  const bool has_scores = p.wants(1);
  return dispatch_number(p.in(0).dtype, "TreeEnsembleClassifier", [&]<class T>() -> Kernel {
    return [=](const Run& r) {
      parallel_for(*r.pool, x.rows, kGrain, [&](int64_t begin, int64_t end) {
        std::vector<double> sums(size_t(c->forest.targets));
        std::vector<char> touched(size_t(c->forest.targets));
        std::vector<float> scores(size_t(c->columns) + 2);
        for (int64_t i = begin; i < end; ++i) {
          c->forest.row(r.in<T>(0) + i * x.features, sums.data(), touched.data());
          int64_t best = finish_row(*c, sums.data(), scores.data());
          if (has_scores) std::copy_n(scores.data(), c->columns, r.out<float>(1) + i * c->columns);
          if (!r.outputs[0]) continue;
          if (c->labels.count() == 1) {
            r.out<int64_t>(0)[i] = best;
          } else {
            write_label(c->labels, r.outputs[0], i, best);
          }
        }
      });
    };
  });
}

// ---------------------------------------------------------------- TreeEnsemble-5

void read_members(Forest& f, const Node& n) {
  std::vector<double> all;
  if (const Tensor* t = n.tensor("membership_values")) all = t->to_doubles();
  f.members = all;
  size_t at = 0;
  for (TreeNode& node : f.nodes) {
    if (node.rule != Rule::kMember) continue;
    node.begin = int64_t(at);
    while (at < all.size() && !std::isnan(all[at])) ++at;
    if (at == all.size())
      model_error("OT1162", "membership_values has fewer sets than there are set nodes");
    node.end = int64_t(at++);
  }
}

Forest forest5(const Node& n, int64_t features) {
  Forest f;
  auto required = [&](const char* key) {
    const Tensor* t = n.tensor(key);
    if (!t) model_error("OT1106", cat("attribute '", key, "' is missing"));
    return t->to_doubles();
  };
  std::vector<double> splits = required("nodes_splits"), modes = required("nodes_modes"),
                      weights = required("leaf_weights");
  std::vector<int64_t> feature = n.ints("nodes_featureids"), yes = n.ints("nodes_truenodeids"),
                       no = n.ints("nodes_falsenodeids"), yes_leaf = n.ints("nodes_trueleafs"),
                       no_leaf = n.ints("nodes_falseleafs"), targets = n.ints("leaf_targetids"),
                       missing = n.ints("nodes_missing_value_tracks_true");
  size_t count = splits.size();
  if (modes.size() != count || feature.size() != count || yes.size() != count ||
      no.size() != count || yes_leaf.size() != count || no_leaf.size() != count ||
      (!missing.empty() && missing.size() != count))
    model_error("OT1162", "the nodes_* attributes have different lengths");
  if (targets.size() != weights.size())
    model_error("OT1162", "leaf_targetids and leaf_weights have different lengths");
  f.nodes.resize(count + weights.size());
  auto link = [&](int64_t id, int64_t leaf) {
    int64_t limit = int64_t(leaf ? weights.size() : count);
    if (id < 0 || id >= limit)
      model_error("OT1162",
                  cat("a tree node leads to ", leaf ? "leaf " : "node ", id, " of ", limit));
    return leaf ? int64_t(count) + id : id;
  };
  for (size_t k = 0; k < count; ++k) {
    TreeNode& node = f.nodes[k];
    if (!(modes[k] >= 0 && modes[k] <= 6)) model_error("OT1162", cat("nodes_modes has ", modes[k]));
    node.rule = Rule(int(modes[k]));
    node.feature = feature[k];
    node.value = splits[k];
    node.missing_true = !missing.empty() && missing[k] != 0;
    node.yes = link(yes[k], yes_leaf[k]);
    node.no = link(no[k], no_leaf[k]);
  }
  for (size_t k = 0; k < weights.size(); ++k) {
    TreeNode& leaf = f.nodes[count + k];
    leaf.begin = int64_t(k);
    leaf.end = leaf.begin + 1;
    f.weights.push_back({targets[k], weights[k]});
  }
  f.roots = n.ints("tree_roots");
  f.targets = n.i("n_targets", 1);
  int64_t a = n.i("aggregate_function", 1);
  if (a < 0 || a > 3) model_error("OT1162", cat("aggregate_function is ", a));
  f.aggregate = Aggregate(a);
  read_members(f, n);
  f.check(features);
  return f;
}

Post post5(const Node& n) {
  int64_t v = n.i("post_transform", 0);
  if (v < 0 || v > 4) model_error("OT1106", cat("post_transform is ", v));
  return Post(v);
}

void ensemble_shape(ShapeCtx& c) {
  if (c.dtype(0) != DType::kFloat && c.dtype(0) != DType::kDouble && c.dtype(0) != DType::kFloat16)
    unsupported_dtype(c.dtype(0), "TreeEnsemble");
  Rows x = rows_of(c.shape(0), "TreeEnsemble");
  post5(c.node());
  c.set(0, c.dtype(0), {x.rows, c.node().i("n_targets", 1)});
}

Kernel make_ensemble(Prepare& p) {
  Rows x = rows_of(p.in(0).shape, "TreeEnsemble");
  auto f = std::make_shared<const Forest>(forest5(p.node(), x.features));
  Post post = post5(p.node());
  return dispatch<float, double, Half>(p.in(0).dtype, "TreeEnsemble", [&]<class T>() -> Kernel {
    return [=](const Run& r) {
      parallel_for(*r.pool, x.rows, kGrain, [&](int64_t begin, int64_t end) {
        std::vector<double> sums(size_t(f->targets));
        std::vector<char> touched(size_t(f->targets));
        std::vector<float> scores(size_t(f->targets));
        for (int64_t i = begin; i < end; ++i) {
          f->row(r.in<T>(0) + i * x.features, sums.data(), touched.data());
          T* y = r.out<T>(0) + i * f->targets;
          if (post != Post::kNone) {
            std::copy(sums.begin(), sums.end(), scores.begin());
            apply_post(post, scores.data(), f->targets);
            std::copy(scores.begin(), scores.end(), sums.begin());
          }
          for (int64_t k = 0; k < f->targets; ++k) y[k] = T(compute_t<T>(sums[size_t(k)]));
        }
      });
    };
  });
}

}  // namespace

void register_tree(OpTable& t) {
  t.add({.name = "TreeEnsembleRegressor",
         .domain = kMl,
         .shape = regressor_shape,
         .impls = {{"ref", nullptr, make_regressor}},
         .no_grad = kSteps});
  t.add({.name = "TreeEnsembleClassifier",
         .domain = kMl,
         .shape = classifier_shape,
         .impls = {{"ref", nullptr, make_classifier}},
         .no_grad = kSteps});
  t.add({.name = "TreeEnsemble",
         .domain = kMl,
         .since = 5,
         .shape = ensemble_shape,
         .impls = {{"ref", nullptr, make_ensemble}},
         .no_grad = kSteps});
}

}  // namespace onnxtrain::ops
