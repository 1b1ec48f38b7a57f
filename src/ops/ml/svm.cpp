// SVMRegressor, SVMClassifier (ai.onnx.ml).
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/ml/svm_attributes.hpp"

namespace onnxtrain::ops {

namespace {

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
  Svm s = svm_regressor_of(c.node(), c.in(0));
  c.set(0, DType::kFloat, {s.x.rows, 1});
}

Kernel make_regressor(Prepare& p) {
  Svm s = svm_regressor_of(p.node(), p.in(0));
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

void classifier_shape(ShapeCtx& c) {
  Svm s = svm_classifier_of(c.node(), c.in(0));
  c.set(0, s.labels.dtype(), {s.x.rows});
  c.set(1, DType::kFloat, {s.x.rows, svm_columns(s)});
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
  Svm s = svm_classifier_of(p.node(), p.in(0));
  int64_t columns = svm_columns(s);
  const bool has_scores = p.wants(1);
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
          if (has_scores) std::copy_n(out.data(), columns, r.out<float>(1) + i * columns);
        }
      });
    };
  });
}

}  // namespace

void register_svm(OpTable& t) {
  t.add({.name = "SVMRegressor",
         .domain = kMl,
         .shape = regressor_shape,
         .impls = {{"ref", nullptr, make_regressor}},
         .lower = svm_regressor_form});
  t.add({.name = "SVMClassifier",
         .domain = kMl,
         .shape = classifier_shape,
         .impls = {{"ref", nullptr, make_classifier}},
         .lower = svm_classifier_form});
}

}  // namespace onnxtrain::ops
