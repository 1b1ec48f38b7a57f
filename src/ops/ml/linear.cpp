// LinearRegressor, LinearClassifier (ai.onnx.ml).
#include <algorithm>

#include "op/needs_shape.hpp"
#include "ops/ml/features.hpp"

namespace onnxtrain::ops {

namespace {

struct Linear {
  Rows x;
  int64_t targets = 0;
  std::vector<float> weights, bias;  // weights: [targets, features]
};

Linear linear_of(const Node& n, const TensorType& x, int64_t targets) {
  check_number(x.dtype, n.op.c_str());
  Linear l;
  l.x = rows_of(x.shape, n.op.c_str());
  l.weights = n.floats("coefficients");
  l.bias = n.floats("intercepts");
  l.targets = targets;
  if (targets < 0) {
    if (l.x.features < 1 || l.weights.empty() || int64_t(l.weights.size()) % l.x.features)
      model_error("OT1160",
                  cat(l.weights.size(), " coefficients do not fit ", l.x.features, " features"));
    l.targets = int64_t(l.weights.size()) / l.x.features;
    const auto given = int64_t(l.bias.size());
    if (given > 0 && given != l.targets && int64_t(l.weights.size()) % given == 0)
      model_error("OT1160",
                  cat(l.weights.size(), " coefficients and ", given, " intercepts are for ",
                      int64_t(l.weights.size()) / given, " features; the input has ", l.x.features),
                  "the file is wrong: write it again with the exporter, or correct the shape of "
                  "its input");
  }
  if (l.targets < 1 || int64_t(l.weights.size()) / l.targets != l.x.features ||
      int64_t(l.weights.size()) % l.targets)
    model_error("OT1160", cat(l.weights.size(), " coefficients do not fit ", l.targets,
                              " targets and ", l.x.features, " features"));
  if (!l.bias.empty() && int64_t(l.bias.size()) != l.targets)
    model_error("OT1160", cat(l.bias.size(), " intercepts for ", l.targets, " targets"));
  return l;
}

template <class T>
void row_scores(const Linear& l, const T* x, float* y) {
  for (int64_t t = 0; t < l.targets; ++t) {
    const float* w = l.weights.data() + t * l.x.features;
    double s = 0;
    for (int64_t k = 0; k < l.x.features; ++k) s += double(x[k]) * double(w[k]);
    y[t] = float(s) + (l.bias.empty() ? 0.f : l.bias[size_t(t)]);
  }
}

int64_t grain_of(const Linear& l) {
  return std::max<int64_t>(1, 16384 / (l.x.features * l.targets + 1));
}

void regressor_shape(ShapeCtx& c) {
  Linear l = linear_of(c.node(), c.in(0), c.node().i("targets", 1));
  post_of(c.node());
  c.set(0, DType::kFloat, {l.x.rows, l.targets});
}

Kernel make_regressor(Prepare& p) {
  Linear l = linear_of(p.node(), p.in(0), p.node().i("targets", 1));
  Post post = post_of(p.node());
  return dispatch_number(p.in(0).dtype, "LinearRegressor", [&]<class T>() -> Kernel {
    return [=](const Run& r) {
      parallel_for(*r.pool, l.x.rows, grain_of(l), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          float* y = r.out<float>(0) + i * l.targets;
          row_scores(l, r.in<T>(0) + i * l.x.features, y);
          apply_post(post, y, l.targets);
        }
      });
    };
  });
}

// Scores in standard operators, [rows, targets].
ValueId scores_form(GradBuilder& b, int64_t targets) {
  std::vector<float> w = b.node().floats("coefficients"), bias = b.node().floats("intercepts");
  DType type = form_type(b);
  int64_t features = int64_t(w.size()) / targets;
  ValueId weights = b.transpose(float_table(b, w, features, type), {1, 0});
  ValueId y = b.call("MatMul", {feature_rows(b, features), weights});
  return bias.empty() ? y : b.add(y, float_table(b, bias, targets, type));
}

std::vector<ValueId> regressor_form(GradBuilder& b) {
  ValueId y = scores_form(b, b.node().i("targets", 1));
  return {to_float(b, post_form(b, post_of(b.node()), y))};
}

struct Classes {
  Labels labels;
  bool doubled = false;  // one row of coefficients for two classes
  int64_t columns = 0;
};

Classes classes_of(const Node& n, const Linear& l) {
  Classes c;
  c.labels = labels_of(n, "classlabels_ints", "classlabels_strings");
  c.doubled = l.targets == 1 && c.labels.count() == 2;
  c.columns = c.doubled ? 2 : l.targets;
  if (c.columns > 1 && c.labels.count() > 0 && c.labels.count() < c.columns)
    model_error("OT1160", cat(c.labels.count(), " class labels for ", c.columns, " scores"));
  return c;
}

void classifier_shape(ShapeCtx& c) {
  Linear l = linear_of(c.node(), c.in(0), -1);
  Classes k = classes_of(c.node(), l);
  post_of(c.node());
  c.set(0, k.labels.dtype(), {l.x.rows});
  c.set(1, DType::kFloat, {l.x.rows, k.columns});
}

Kernel make_classifier(Prepare& p) {
  Linear l = linear_of(p.node(), p.in(0), -1);
  Classes c = classes_of(p.node(), l);
  Post post = post_of(p.node());
  p.workspace = size_t(l.x.rows * c.columns) * sizeof(float);
  const bool has_scores = p.wants(1);
  return dispatch_number(p.in(0).dtype, "LinearClassifier", [&]<class T>() -> Kernel {
    return [=](const Run& r) {
      float* scores = has_scores ? r.out<float>(1) : static_cast<float*>(r.workspace);
      parallel_for(*r.pool, l.x.rows, grain_of(l), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          float* s = scores + i * c.columns;
          row_scores(l, r.in<T>(0) + i * l.x.features, s);
          if (c.doubled) {
            s[1] = s[0];
            s[0] = -s[0];
          }
          apply_post(post, s, c.columns);
          if (c.columns > 1) {
            write_label(c.labels, r.outputs[0], i, std::max_element(s, s + c.columns) - s);
            continue;
          }
          // one score and at most one label: that label, or none
          bool yes = s[0] >= (post == Post::kNone ? 0.f : 0.5f);
          if (!r.outputs[0]) continue;
          if (c.labels.use_strings()) {
            r.out<std::string>(0)[i] = yes ? c.labels.strings[0] : std::string();
          } else {
            r.out<int64_t>(0)[i] = yes ? (c.labels.ints.empty() ? 1 : c.labels.ints[0]) : 0;
          }
        }
      });
    };
  });
}

std::vector<ValueId> classifier_form(GradBuilder& b) {
  const Node& n = b.node();
  int64_t bias = int64_t(n.floats("intercepts").size()),
          weights = int64_t(n.floats("coefficients").size());
  if (bias == 0) {  // then the width of the input says how many rows of coefficients there are
    const TypeInfo& t = b.type(b.x(0));
    bool known = b.need_rank(b.x(0)) > 0 && t.shape->back().value > 0;
    if (!known) needs_shape("OT1205", cat("the gradient of ", n.label(), " needs its features"));
    bias = weights / t.shape->back().value;
  }
  ValueId y = scores_form(b, bias);
  if (bias == 1 && labels_of(n, "classlabels_ints", "classlabels_strings").count() == 2)
    y = b.call("Concat", {b.neg(y), y}, {{"axis", int64_t(1)}});
  return with_label(b, to_float(b, post_form(b, post_of(n), y)));
}

}  // namespace

void register_linear(OpTable& t) {
  t.add({.name = "LinearRegressor",
         .domain = kMl,
         .shape = regressor_shape,
         .impls = {{"ref", nullptr, make_regressor}},
         .lower = regressor_form});
  t.add({.name = "LinearClassifier",
         .domain = kMl,
         .shape = classifier_shape,
         .impls = {{"ref", nullptr, make_classifier}},
         .lower = classifier_form});
}

}  // namespace onnxtrain::ops
