// SVMRegressor, SVMClassifier (ai.onnx.ml).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/ml_detail.hpp"

namespace onnxtrain::ops {

namespace {

enum class KernelType { kLinear, kPoly, kRbf, kSigmoid };

struct Svm {
  Rows x;
  KernelType kernel = KernelType::kLinear;
  float gamma = 0, coef0 = 0, degree = 0;
  std::vector<float> coefficients, vectors, rho, prob_a, prob_b;
  std::vector<int64_t> per_class, starts;
  int64_t supports = 0, classes = 1;
  Labels labels;
  Post post = Post::kNone;
  bool one_class = false, all_positive = false;
};

[[noreturn]] void bad(const std::string& what) { model_error("OT1161", what); }

Svm common(const Node& n, const TensorType& x) {
  check_number(x.dtype, n.op.c_str());
  Svm s;
  s.x = rows_of(x.shape, n.op.c_str());
  std::string k = n.s("kernel_type", "LINEAR");
  if (k == "LINEAR")
    s.kernel = KernelType::kLinear;
  else if (k == "POLY")
    s.kernel = KernelType::kPoly;
  else if (k == "RBF")
    s.kernel = KernelType::kRbf;
  else if (k == "SIGMOID")
    s.kernel = KernelType::kSigmoid;
  else
    bad(cat("kernel_type '", k, "' is unknown"));
  std::vector<float> params = n.floats("kernel_params");
  if (!params.empty()) {
    if (params.size() < 3) bad(cat("kernel_params has ", params.size(), " entries, expected 3"));
    s.gamma = params[0];
    s.coef0 = params[1];
    s.degree = params[2];
  }
  s.coefficients = n.floats("coefficients");
  s.vectors = n.floats("support_vectors");
  s.rho = n.floats("rho");
  s.post = post_of(n);
  if (s.coefficients.empty() || s.rho.empty()) bad("coefficients or rho are missing");
  s.all_positive = *std::min_element(s.coefficients.begin(), s.coefficients.end()) >= 0;
  return s;
}

void check_vectors(const Svm& s) {
  if (s.supports > 0 && (int64_t(s.vectors.size()) % s.supports ||
                         int64_t(s.vectors.size()) / s.supports != s.x.features))
    bad(cat(s.vectors.size(), " numbers in support_vectors do not make ", s.supports,
            " vectors of ", s.x.features));
}

Svm regressor_of(const Node& n, const TensorType& x) {
  Svm s = common(n, x);
  s.supports = n.i("n_supports", 0);
  s.one_class = n.i("one_class", 0) != 0;
  if (s.supports < 0) bad("n_supports is negative");
  check_vectors(s);
  if (s.supports == 0) s.kernel = KernelType::kLinear;
  int64_t need = s.supports > 0 ? s.supports : s.x.features;
  if (int64_t(s.coefficients.size()) < need)
    bad(cat(s.coefficients.size(), " coefficients, expected ", need));
  return s;
}

Svm classifier_of(const Node& n, const TensorType& x) {
  Svm s = common(n, x);
  s.labels = labels_of(n, "classlabels_ints", "classlabels_strings");
  s.classes = std::max<int64_t>(1, s.labels.count());
  s.per_class = n.ints("vectors_per_class");
  for (int64_t v : s.per_class) {
    if (v < 0 || v > (int64_t(1) << 40)) bad(cat("vectors_per_class has ", v));
    s.starts.push_back(s.supports);
    s.supports += v;
  }
  check_vectors(s);
  s.prob_a = n.floats("prob_a");
  s.prob_b = n.floats("prob_b");
  if (s.supports == 0) {
    s.kernel = KernelType::kLinear;
    if (int64_t(s.coefficients.size()) != s.classes * s.x.features)
      bad(cat(s.coefficients.size(), " coefficients for ", s.classes, " classes and ", s.x.features,
              " features"));
    return s;
  }
  int64_t pairs = s.classes * (s.classes - 1) / 2;
  if (int64_t(s.per_class.size()) != s.classes)
    bad("vectors_per_class has not one entry per class");
  if (int64_t(s.coefficients.size()) != (s.classes - 1) * s.supports)
    bad(cat(s.coefficients.size(), " coefficients for ", s.classes, " classes and ", s.supports,
            " support vectors"));
  if (int64_t(s.rho.size()) < pairs) bad(cat(s.rho.size(), " entries in rho, expected ", pairs));
  if (!s.prob_a.empty() && (int64_t(s.prob_a.size()) < pairs || int64_t(s.prob_b.size()) < pairs))
    bad("prob_a and prob_b have not one entry per pair of classes");
  return s;
}

template <class T>
float kernel_dot(const Svm& s, const T* x, const float* v) {
  double sum = 0;
  int64_t n = s.x.features;
  if (s.kernel == KernelType::kRbf) {
    for (int64_t k = 0; k < n; ++k) {
      double d = double(x[k]) - double(v[k]);
      sum += d * d;
    }
    return float(std::exp(-double(s.gamma) * sum));
  }
  for (int64_t k = 0; k < n; ++k) sum += double(x[k]) * double(v[k]);
  if (s.kernel == KernelType::kLinear) return float(sum);
  sum = sum * double(s.gamma) + double(s.coef0);
  return float(s.kernel == KernelType::kPoly ? std::pow(sum, double(s.degree)) : std::tanh(sum));
}

void regressor_shape(ShapeCtx& c) {
  Svm s = regressor_of(c.node(), c.in(0));
  c.set(0, DType::kFloat, {s.x.rows, 1});
}

Kernel make_regressor(Prepare& p) {
  Svm s = regressor_of(p.node(), p.in(0));
  return dispatch_number(p.in(0).dtype, "SVMRegressor", [&]<class T>() -> Kernel {
    return [=](const Run& r) {
      parallel_for(*r.pool, s.x.rows, 16, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const T* x = r.in<T>(0) + i * s.x.features;
          double sum = 0;
          for (int64_t j = 0; j < s.supports; ++j)
            sum += double(s.coefficients[size_t(j)]) *
                   double(kernel_dot(s, x, s.vectors.data() + j * s.x.features));
          if (s.supports == 0) sum = double(kernel_dot(s, x, s.coefficients.data()));
          float y = float(sum) + s.rho[0];
          if (s.one_class) y = y > 0 ? 1.f : -1.f;
          apply_post(s.post, &y, 1);
          r.out<float>(0)[i] = y;
        }
      });
    };
  });
}

// Pairwise probabilities -> probabilities of classes (Wu, Lin, Weng 2004), as in libsvm.
void couple(int64_t k, const std::vector<float>& r, float* p) {
  auto R = [&](int64_t i, int64_t j) { return r[size_t(i * k + j)]; };
  std::vector<float> q(size_t(k * k)), qp(static_cast<size_t>(k));
  auto Q = [&](int64_t i, int64_t j) -> float& { return q[size_t(i * k + j)]; };
  for (int64_t t = 0; t < k; ++t) {
    p[t] = 1.f / float(k);
    Q(t, t) = 0;
    for (int64_t j = 0; j < t; ++j) {
      Q(t, t) += R(j, t) * R(j, t);
      Q(t, j) = Q(j, t);
    }
    for (int64_t j = t + 1; j < k; ++j) {
      Q(t, t) += R(j, t) * R(j, t);
      Q(t, j) = -R(j, t) * R(t, j);
    }
  }
  for (int64_t iter = 0; iter < std::max<int64_t>(100, k); ++iter) {
    float pqp = 0, worst = 0;
    for (int64_t t = 0; t < k; ++t) {
      qp[size_t(t)] = 0;
      for (int64_t j = 0; j < k; ++j) qp[size_t(t)] += Q(t, j) * p[j];
      pqp += p[t] * qp[size_t(t)];
    }
    for (int64_t t = 0; t < k; ++t) worst = std::max(worst, std::fabs(qp[size_t(t)] - pqp));
    if (worst < 0.005f / float(k)) break;
    for (int64_t t = 0; t < k; ++t) {
      float diff = (-qp[size_t(t)] + pqp) / Q(t, t);
      p[t] += diff;
      pqp = (pqp + diff * (diff * Q(t, t) + 2 * qp[size_t(t)])) / (1 + diff) / (1 + diff);
      for (int64_t j = 0; j < k; ++j) {
        qp[size_t(j)] = (qp[size_t(j)] + diff * Q(t, j)) / (1 + diff);
        p[j] /= 1 + diff;
      }
    }
  }
}

int64_t score_count(const Svm& s) {
  if (s.supports == 0 || !s.prob_a.empty()) return s.classes;
  return s.classes * (s.classes - 1) / 2;
}
int64_t columns_of(const Svm& s) {
  int64_t n = score_count(s);
  return n == 1 && s.rho.size() == 1 && s.labels.count() == 2 && s.post != Post::kProbit ? 2 : n;
}

void classifier_shape(ShapeCtx& c) {
  Svm s = classifier_of(c.node(), c.in(0));
  c.set(0, s.labels.dtype(), {s.x.rows});
  c.set(1, DType::kFloat, {s.x.rows, columns_of(s)});
}

// Scores of one row; returns the class with the most votes (or the best score) and its weight.
template <class T>
std::pair<int64_t, float> classify(const Svm& s, const T* x, std::vector<float>& scores) {
  int64_t n = s.classes;
  if (s.supports == 0) {
    for (int64_t j = 0; j < n; ++j)
      scores.push_back(s.rho[0] + kernel_dot(s, x, s.coefficients.data() + j * s.x.features));
    auto best = std::max_element(scores.begin(), scores.end());
    return {best - scores.begin(), *best};
  }
  std::vector<float> k(size_t(s.supports)), votes(size_t(n), 0.f);
  for (int64_t j = 0; j < s.supports; ++j)
    k[size_t(j)] = kernel_dot(s, x, s.vectors.data() + j * s.x.features);
  auto part = [&](int64_t row, int64_t cls) {
    double sum = 0;
    for (int64_t v = s.starts[size_t(cls)]; v < s.starts[size_t(cls)] + s.per_class[size_t(cls)];
         ++v)
      sum += double(s.coefficients[size_t(row * s.supports + v)]) * double(k[size_t(v)]);
    return sum;
  };
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j) {
      float v = float(double(s.rho[scores.size()]) + part(j - 1, i) + part(i, j));
      votes[size_t(v > 0 ? i : j)] += 1;
      scores.push_back(v);
    }
  auto best = std::max_element(votes.begin(), votes.end());
  std::pair<int64_t, float> out = {best - votes.begin(), *best};
  if (s.prob_a.empty()) return out;
  std::vector<float> pair(size_t(n * n), 0.f), p(static_cast<size_t>(n));
  size_t at = 0;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j, ++at) {
      float v = 1 / (1 + std::exp(scores[at] * s.prob_a[at] + s.prob_b[at]));
      v = std::clamp(v, 1e-7f, 1 - 1e-7f);
      pair[size_t(i * n + j)] = v;
      pair[size_t(j * n + i)] = 1 - v;
    }
  couple(n, pair, p.data());
  scores = p;
  return out;
}

Kernel make_classifier(Prepare& p) {
  Svm s = classifier_of(p.node(), p.in(0));
  int64_t columns = columns_of(s);
  return dispatch_number(p.in(0).dtype, "SVMClassifier", [&]<class T>() -> Kernel {
    return [=](const Run& r) {
      parallel_for(*r.pool, s.x.rows, 16, [&](int64_t begin, int64_t end) {
        std::vector<float> scores, out;
        for (int64_t i = begin; i < end; ++i) {
          scores.clear();
          auto [cls, weight] = classify(s, r.in<T>(0) + i * s.x.features, scores);
          int second = -1;
          if (s.rho.size() == 1 && s.labels.count() == 2) {
            second = 2;
            if (s.prob_a.empty() && s.all_positive && weight >= 0.5f) cls = 1;
          } else if (s.rho.size() == 1 && s.labels.count() != 2) {
            cls = weight > 0 ? 1 : 0;
            if (s.labels.count() > 0) cls = std::min<int64_t>(cls, s.labels.count() - 1);
          }
          write_label(s.labels, r.outputs[0], i, cls);
          out.assign(scores.size() + 1, 0.f);
          write_scores(s.post, scores.data(), int64_t(scores.size()), second, out.data());
          if (r.outputs[1]) std::copy_n(out.data(), columns, r.out<float>(1) + i * columns);
        }
      });
    };
  });
}

}  // namespace

void register_ml_svm(OpTable& t) {
  constexpr const char* kWhy = "a trained support vector machine is not differentiated";
  t.add({.name = "SVMRegressor",
         .domain = kMl,
         .shape = regressor_shape,
         .impls = {{"ref", nullptr, make_regressor}},
         .no_grad = kWhy});
  t.add({.name = "SVMClassifier",
         .domain = kMl,
         .shape = classifier_shape,
         .impls = {{"ref", nullptr, make_classifier}},
         .no_grad = kWhy});
}

}  // namespace onnxtrain::ops
