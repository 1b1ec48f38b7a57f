// SoftmaxCrossEntropyLoss and NegativeLogLikelihoodLoss.
#include <cmath>
#include <limits>

#include "kernels/norm/rows.hpp"
#include "ops/loss/loss_shape.hpp"

namespace onnxtrain::ops {

namespace {

void set_loss(ShapeCtx& c) {
  LossInfo info(c.node());
  c.set(0, c.dtype(0), info.reduction == Reduction::kNone ? labels_shape(c.shape(0)) : Shape{});
}
void nll_shape(ShapeCtx& c) {
  check_loss_inputs(c, 0);
  set_loss(c);
}
void sce_shape(ShapeCtx& c) {
  nll_shape(c);
  c.set(1, c.dtype(0), c.shape(0));
}
// gradients: dloss, scores, labels, weights, d log_prob
void grad_shape(ShapeCtx& c) {
  check_loss_inputs(c, 1);
  LossInfo info(c.node());
  if (c.has(0) &&
      c.shape(0) != (info.reduction == Reduction::kNone ? labels_shape(c.shape(1)) : Shape{}))
    model_error("OT1133", cat("gradient of shape ", to_string(c.shape(0)), " for a loss over ",
                              to_string(c.shape(1))));
  if (c.has(4) && c.shape(4) != c.shape(1))
    model_error("OT1133", "gradient of log_prob has another shape");
  c.set(0, c.dtype(1), c.shape(1));
}

// workspace: labels, weights, losses
struct Scratch {
  int64_t n;
  size_t bytes() const { return size_t(n) * (8 + 8 + 8); }
  int64_t* labels(void* w) const { return static_cast<int64_t*>(w); }
  double* losses(void* w) const { return reinterpret_cast<double*>(labels(w) + n); }
  double* weights(void* w) const { return losses(w) + n; }
};

LossInfo info_of(const Prepare& p, int at) {
  LossInfo l(p.node());
  l.rows = Rows::along(p.in(at).shape, 1);
  return l;
}

// A loss over labels that are input `at` + 1, with weights of classes in input `at` + 2.
struct LabelledLoss {
  LossInfo info;
  Scratch scratch;
  int at;
  bool is64, weighted;
  LabelledLoss(Prepare& p, int scores)
      : info(info_of(p, scores)),
        scratch{info.rows.count()},
        at(scores),
        is64(p.in(scores + 1).dtype == DType::kInt64),
        weighted(p.has(scores + 2)) {
    p.workspace = scratch.bytes();
  }
};

// Labels, weights and losses of the samples in a run.
template <class T>
struct Samples {
  int64_t* label;
  double *w, *loss;
  double total;
  Samples(const LabelledLoss& l, const Run& r)
      : label(l.scratch.labels(r.workspace)),
        w(l.scratch.weights(r.workspace)),
        loss(l.scratch.losses(r.workspace)),
        total(read_labels<T>(l.info, r.inputs[l.at + 1], l.is64,
                             l.weighted ? r.in<T>(l.at + 2) : nullptr, label, w)) {}
};

template <class T>
compute_t<T> log_sum_exp(const T* x, int64_t n, int64_t s, compute_t<T>* top_out) {
  using C = compute_t<T>;
  C top = -std::numeric_limits<C>::infinity();
  for (int64_t k = 0; k < n; ++k)
    top = C(x[k * s]) > top || x[k * s] != x[k * s] ? C(x[k * s]) : top;
  *top_out = top;
  return std::log(lane_sum<C>(n, [&](int64_t k) { return std::exp(C(x[k * s]) - top); }));
}

Kernel make_sce(Prepare& p) {
  LabelledLoss labelled(p, 0);
  bool want_log = p.wants(1);
  return dispatch<float, double, Half, BFloat16>(
      p.in(0).dtype, p.node().op, [&]<class T>() -> Kernel {
        using C = compute_t<T>;
        return [=](const Run& r) {
          const LossInfo& l = labelled.info;
          Samples<T> of(labelled, r);
          const T* scores = r.in<T>(0);
          T* logs = want_log ? r.out<T>(1) : nullptr;
          int64_t n = l.rows.n, s = l.rows.inner;
          parallel_for(*r.pool, l.rows.count(), l.rows.grain(), [&](int64_t b, int64_t e) {
            for (int64_t i = b; i < e; ++i) {
              int64_t at = l.rows.at(i);
              const T* x = scores + at;
              C top, lse = log_sum_exp(x, n, s, &top);
              C picked = (C(x[of.label[i] * s]) - top) - lse;
              of.loss[i] = of.w[i] == 0 ? 0 : -of.w[i] * double(picked);
              if (logs)
                for (int64_t k = 0; k < n; ++k) logs[at + k * s] = T((C(x[k * s]) - top) - lse);
            }
          });
          if (r.outputs[0]) reduce_loss<T>(l, of.loss, of.total, r.out<T>(0));
        };
      });
}

Kernel make_nll(Prepare& p) {
  LabelledLoss labelled(p, 0);
  return dispatch<float, double, Half, BFloat16>(
      p.in(0).dtype, p.node().op, [&]<class T>() -> Kernel {
        return [=](const Run& r) {
          const LossInfo& l = labelled.info;
          Samples<T> of(labelled, r);
          const T* x = r.in<T>(0);
          for (int64_t i = 0; i < l.rows.count(); ++i)
            of.loss[i] =
                of.w[i] == 0
                    ? 0
                    : -of.w[i] * double(compute_t<T>(x[l.rows.at(i) + of.label[i] * l.rows.inner]));
          reduce_loss<T>(l, of.loss, of.total, r.out<T>(0));
        };
      });
}

// ------------------------------------------------------------- contiguous float rows
std::string refuses_simd(const Prepare& p, int at) {
  if (p.in(at).dtype != DType::kFloat) return "only for float";
  Rows rows = Rows::along(p.in(at).shape, 1);
  return rows.inner != 1                    ? "scores of a sample are not contiguous"
         : rows.count() == 0 || rows.n == 0 ? "empty"
                                            : "";
}
std::string refuses_simd_sce(const Prepare& p) { return refuses_simd(p, 0); }
std::string refuses_simd_sce_grad(const Prepare& p) {
  if (p.has(4) || !p.has(0)) return "log_prob has a gradient";
  if (LossInfo(p.node()).reduction == Reduction::kNone) return "a gradient per sample";
  return refuses_simd(p, 1);
}

simd::CrossEntropy cross_entropy(const LossInfo& l, const Run& r, int at, bool is64, bool weighted,
                                 int64_t* labels) {
  simd::CrossEntropy c;
  c.x = r.in<float>(at);
  c.labels = labels;
  c.weights = weighted ? r.in<float>(at + 2) : nullptr;
  c.rows = l.rows.count();
  c.n = l.rows.n;
  c.has_ignore = l.has_ignore;
  c.ignore_index = l.ignore;
  c.reduction = l.reduction == Reduction::kNone  ? simd::LossReduction::kNone
                : l.reduction == Reduction::kSum ? simd::LossReduction::kSum
                                                 : simd::LossReduction::kMean;
  for (int64_t i = 0; i < c.rows; ++i)
    labels[i] = is64 ? r.in<int64_t>(at + 1)[i] : r.in<int32_t>(at + 1)[i];
  check_labels(l, labels);
  return c;
}

// Everything ignored: no loss (ruling G16).
bool any_counted(const simd::CrossEntropy& c) {
  for (int64_t i = 0; i < c.rows; ++i)
    if (!(c.has_ignore && c.labels[i] == c.ignore_index) &&
        (!c.weights || c.weights[c.labels[i]] != 0))
      return true;
  return false;
}

Kernel make_simd_sce(Prepare& p) {
  LossInfo l = info_of(p, 0);
  Scratch scratch{l.rows.count()};
  p.workspace = scratch.bytes();
  bool is64 = p.in(1).dtype == DType::kInt64, weighted = p.has(2), want_loss = p.wants(0),
       want_log = p.wants(1);
  return [=](const Run& r) {
    simd::CrossEntropy c = cross_entropy(l, r, 0, is64, weighted, scratch.labels(r.workspace));
    bool each = l.reduction == Reduction::kNone && want_loss;
    c.row_loss = each ? r.out<float>(0) : reinterpret_cast<float*>(scratch.losses(r.workspace));
    c.log_prob = want_log ? r.out<float>(1) : nullptr;
    float loss = simd::softmax_cross_entropy(*r.pool, c);
    if (!want_loss || each) return;
    *r.out<float>(0) = any_counted(c) ? loss : 0.0f;
  };
}

Kernel make_simd_sce_grad(Prepare& p) {
  LossInfo l = info_of(p, 1);
  Scratch scratch{l.rows.count()};
  p.workspace = scratch.bytes();
  bool is64 = p.in(2).dtype == DType::kInt64, weighted = p.has(3);
  return [=](const Run& r) {
    simd::CrossEntropy c = cross_entropy(l, r, 1, is64, weighted, scratch.labels(r.workspace));
    c.row_loss = reinterpret_cast<float*>(scratch.losses(r.workspace));
    c.grad = r.out<float>(0);
    c.grad_scale = *r.in<float>(0);
    simd::softmax_cross_entropy(*r.pool, c);
  };
}

// Loss and gradient at once; dloss is a number known when the plan is made.
Kernel make_simd_sce_both(Prepare& p) {
  LossInfo l = info_of(p, 0);
  Scratch scratch{l.rows.count()};
  p.workspace = scratch.bytes();
  bool is64 = p.in(1).dtype == DType::kInt64, weighted = p.has(2);
  float scale = p.node().f("dloss", 1);
  return [=](const Run& r) {
    simd::CrossEntropy c = cross_entropy(l, r, 0, is64, weighted, scratch.labels(r.workspace));
    c.row_loss = reinterpret_cast<float*>(scratch.losses(r.workspace));
    c.grad = r.out<float>(1);
    c.grad_scale = scale;
    float loss = simd::softmax_cross_entropy(*r.pool, c);
    *r.out<float>(0) = any_counted(c) ? loss : 0.0f;
  };
}

void both_shape(ShapeCtx& c) {
  check_loss_inputs(c, 0);
  if (LossInfo(c.node()).reduction == Reduction::kNone || c.dtype(0) != DType::kFloat)
    model_error("OT1134", "SoftmaxCrossEntropyBoth needs float scores and one loss for all");
  c.set(0, c.dtype(0), {});
  c.set(1, c.dtype(0), c.shape(0));
}

// dx = f (softmax - one hot) + (dlog - softmax sum(dlog))
Kernel make_sce_grad(Prepare& p) {
  LabelledLoss labelled(p, 1);
  bool has_loss = p.has(0), has_log = p.has(4);
  return dispatch<float, double, Half, BFloat16>(
      p.in(1).dtype, p.node().op, [&]<class T>() -> Kernel {
        using C = compute_t<T>;
        return [=](const Run& r) {
          const LossInfo& l = labelled.info;
          Samples<T> of(labelled, r);
          if (has_loss)
            scale_gradients<T>(l, r.in<T>(0), of.total, of.w);
          else
            std::fill_n(of.w, l.rows.count(), 0.0);
          const T *scores = r.in<T>(1), *dlogs = has_log ? r.in<T>(4) : nullptr;
          T* out = r.out<T>(0);
          int64_t n = l.rows.n, s = l.rows.inner;
          parallel_for(*r.pool, l.rows.count(), l.rows.grain(), [&](int64_t b, int64_t e) {
            for (int64_t i = b; i < e; ++i) {
              int64_t at = l.rows.at(i);
              const T* x = scores + at;
              T* dx = out + at;
              C f = C(of.w[i]), sum = 0;
              if (dlogs) sum = lane_sum<C>(n, [&](int64_t k) { return C(dlogs[at + k * s]); });
              if (f == C(0) && !dlogs) {
                for (int64_t k = 0; k < n; ++k) dx[k * s] = T(C(0));
                continue;
              }
              C top, lse = log_sum_exp(x, n, s, &top), g = f - sum;
              C own = C(x[of.label[i] * s]);
              for (int64_t k = 0; k < n; ++k) {
                C v = g * std::exp((C(x[k * s]) - top) - lse);
                dx[k * s] = T(dlogs ? v + C(dlogs[at + k * s]) : v);
              }
              C v = g * std::exp((own - top) - lse) - f;
              dx[of.label[i] * s] = T(dlogs ? v + C(dlogs[at + of.label[i] * s]) : v);
            }
          });
        };
      });
}

Kernel make_nll_grad(Prepare& p) {
  LabelledLoss labelled(p, 1);
  int64_t size = p.out(0).size();
  return dispatch<float, double, Half, BFloat16>(
      p.in(1).dtype, p.node().op, [&]<class T>() -> Kernel {
        return [=](const Run& r) {
          const LossInfo& l = labelled.info;
          Samples<T> of(labelled, r);
          scale_gradients<T>(l, r.in<T>(0), of.total, of.w);
          T* dx = r.out<T>(0);
          std::fill_n(dx, size, T(compute_t<T>(0)));
          for (int64_t i = 0; i < l.rows.count(); ++i)
            dx[l.rows.at(i) + of.label[i] * l.rows.inner] = T(compute_t<T>(-of.w[i]));
        };
      });
}

using Grads = std::vector<ValueId>;

GradBuilder::Attrs loss_attrs(GradBuilder& b) {
  GradBuilder::Attrs a{{"reduction", b.node().s("reduction", "mean")}};
  if (b.node().has("ignore_index")) a["ignore_index"] = b.node().i("ignore_index", 0);
  return a;
}

Grads sce_rule(GradBuilder& b) {
  ValueId dlog = b.has_dy(1) ? b.dy(1) : kNone;
  ValueId dloss = b.has_dy(0) ? b.dy(0) : kNone;
  std::vector<ValueId> in = {dloss, b.x(0), b.x(1), b.has(2) ? b.x(2) : kNone};
  if (dlog != kNone) in.push_back(dlog);
  Grads g(size_t(b.inputs()), kNone);
  g[0] = b.own("SoftmaxCrossEntropyLossGrad", in, loss_attrs(b));
  if (b.has(2) && b.wants(2) && dloss != kNone) {
    ValueId log_p = b.call("LogSoftmax", {b.x(0)}, {{"axis", int64_t(1)}});
    g[2] = weights_grad(b, dloss, b.y(0), log_p, b.x(1), b.x(2));
  }
  return g;
}
Grads nll_rule(GradBuilder& b) {
  Grads g(size_t(b.inputs()), kNone);
  g[0] = b.own("NegativeLogLikelihoodLossGrad", {b.dy(), b.x(0), b.x(1), b.has(2) ? b.x(2) : kNone},
               loss_attrs(b));
  if (b.has(2) && b.wants(2)) g[2] = weights_grad(b, b.dy(), b.y(0), b.x(0), b.x(1), b.x(2));
  return g;
}

Grads sce_lower(GradBuilder& b) {
  Expr x{b, b.x(1)};
  Expr p{b, b.call("Softmax", {x.v}, {{"axis", int64_t(1)}})};
  ValueId total = kNone;
  if (b.has(0)) {
    LoweredLabels l = lower_labels(b, Expr{b, b.x(0)}, x, b.x(2), b.has(3) ? b.x(3) : kNone);
    total = (l.factor * (p - l.one_hot)).v;
  }
  if (b.has(4)) {
    Expr d{b, b.x(4)}, sum{b, b.reduce_sum(d.v, {1})};
    Expr more = d - p * sum;
    total = total == kNone ? more.v : (Expr{b, total} + more).v;
  }
  return {total};
}
Grads nll_lower(GradBuilder& b) {
  LoweredLabels l =
      lower_labels(b, Expr{b, b.x(0)}, Expr{b, b.x(1)}, b.x(2), b.has(3) ? b.x(3) : kNone);
  return {(-(l.factor * l.one_hot)).v};
}

}  // namespace

void register_losses(OpTable& t) {
  t.add({.name = "SoftmaxCrossEntropyLoss",
         .since = 12,
         .shape = sce_shape,
         .impls = {{"simd", refuses_simd_sce, make_simd_sce}, {"ref", nullptr, make_sce}},
         .grad = sce_rule,
         .settings_from = 1});
  t.add({.name = "NegativeLogLikelihoodLoss",
         .since = 12,
         .shape = nll_shape,
         .impls = {{"ref", nullptr, make_nll}},
         .grad = nll_rule,
         .settings_from = 1});
  t.add({.name = "SoftmaxCrossEntropyLossGrad",
         .domain = std::string(kOwnDomain),
         .shape = grad_shape,
         .impls = {{"simd", refuses_simd_sce_grad, make_simd_sce_grad},
                   {"ref", nullptr, make_sce_grad}},
         .in_place = {{1, 0}},
         .lower = sce_lower});
  t.add({.name = "SoftmaxCrossEntropyBoth",  // made by the pass fuse_loss
         .domain = std::string(kOwnDomain),
         .shape = both_shape,
         .impls = {{"simd", refuses_simd_sce, make_simd_sce_both}},
         .no_grad = "it is made after differentiation"});
  t.add({.name = "NegativeLogLikelihoodLossGrad",
         .domain = std::string(kOwnDomain),
         .shape = grad_shape,
         .impls = {{"ref", nullptr, make_nll_grad}},
         .lower = nll_lower});
}

}  // namespace onnxtrain::ops
