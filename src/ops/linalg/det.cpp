// Det: determinants of the matrices in the last two dimensions.
#include <cmath>

#include "op/grad_builder.hpp"
#include "op/needs_shape.hpp"

namespace onnxtrain::ops {

namespace {

Shape batch_of(const Shape& s) {
  if (s.size() < 2 || s[s.size() - 1] != s[s.size() - 2])
    model_error("OT1133", cat("Det of ", to_string(s), ", which is not made of square matrices"));
  return Shape(s.begin(), s.end() - 2);
}

void shape(ShapeCtx& c) { c.set(0, c.dtype(0), batch_of(c.shape(0))); }

// Gauss with row exchanges; destroys m.
double determinant(double* m, int64_t n) {
  double det = 1;
  for (int64_t k = 0; k < n; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (std::fabs(m[i * n + k]) > std::fabs(m[best * n + k])) best = i;
    double pivot = m[best * n + k];
    if (pivot == 0) return 0;
    if (best != k) {
      for (int64_t j = 0; j < n; ++j) std::swap(m[best * n + j], m[k * n + j]);
      det = -det;
    }
    det *= pivot;
    for (int64_t i = k + 1; i < n; ++i) {
      double f = m[i * n + k] / pivot;
      for (int64_t j = k + 1; j < n; ++j) m[i * n + j] -= f * m[k * n + j];
    }
  }
  return det;
}

Kernel make(Prepare& p) {
  int64_t n = p.in(0).shape.back(), count = p.out(0).size();
  return dispatch<float, double, Half, BFloat16>(p.in(0).dtype, "Det", [&]<class T>() -> Kernel {
    p.workspace = size_t(n * n) * 8;
    return [n, count](const Run& r) {
      double* m = static_cast<double*>(r.workspace);
      for (int64_t b = 0; b < count; ++b) {
        const T* x = r.in<T>(0) + b * n * n;
        for (int64_t i = 0; i < n * n; ++i) m[i] = double(compute_t<T>(x[i]));
        r.out<T>(0)[b] = T(compute_t<T>(determinant(m, n)));
      }
    };
  });
}

// The matrix of cofactors, the derivative of the determinant; right for singular matrices too:
// with A = P L U the cofactors are found by minors when U has a zero, else from the inverse.
void cofactors(const double* a, int64_t n, double* out, double* work) {
  double *m = work, *inv = work + n * n;
  std::copy_n(a, n * n, m);
  std::fill_n(inv, n * n, 0.0);
  for (int64_t i = 0; i < n; ++i) inv[i * n + i] = 1;
  double det = 1, largest = 0;
  for (int64_t i = 0; i < n * n; ++i) largest = std::max(largest, std::fabs(a[i]));
  bool regular = true;
  for (int64_t k = 0; k < n && regular; ++k) {
    int64_t best = k;
    for (int64_t i = k + 1; i < n; ++i)
      if (std::fabs(m[i * n + k]) > std::fabs(m[best * n + k])) best = i;
    double pivot = m[best * n + k];
    if (!(std::fabs(pivot) > 1e-10 * largest)) regular = false;
    if (!regular) break;
    if (best != k) {
      for (int64_t j = 0; j < n; ++j) {
        std::swap(m[best * n + j], m[k * n + j]);
        std::swap(inv[best * n + j], inv[k * n + j]);
      }
      det = -det;
    }
    det *= pivot;
    for (int64_t j = 0; j < n; ++j) {
      m[k * n + j] /= pivot;
      inv[k * n + j] /= pivot;
    }
    for (int64_t i = 0; i < n; ++i) {
      double f = m[i * n + k];
      if (i == k || f == 0) continue;
      for (int64_t j = 0; j < n; ++j) {
        m[i * n + j] -= f * m[k * n + j];
        inv[i * n + j] -= f * inv[k * n + j];
      }
    }
  }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      if (regular) {
        out[i * n + j] = det * inv[j * n + i];
        continue;
      }
      int64_t at = 0;
      for (int64_t r = 0; r < n; ++r)
        for (int64_t c = 0; c < n; ++c)
          if (r != i && c != j) m[at++] = a[r * n + c];
      out[i * n + j] = ((i + j) % 2 ? -1 : 1) * determinant(m, n - 1);
    }
}

void grad_shape(ShapeCtx& c) {
  if (c.shape(0) != batch_of(c.shape(1))) model_error("OT1133", "DetGrad: shapes do not match");
  c.set(0, c.dtype(1), c.shape(1));
}

Kernel make_grad(Prepare& p) {
  int64_t n = p.in(1).shape.back(), count = p.in(0).size();
  return dispatch<float, double, Half, BFloat16>(
      p.in(1).dtype, "DetGrad", [&]<class T>() -> Kernel {
        p.workspace = size_t(4 * n * n) * 8;
        return [n, count](const Run& r) {
          double *a = static_cast<double*>(r.workspace), *out = a + n * n, *work = out + n * n;
          for (int64_t b = 0; b < count; ++b) {
            const T* x = r.in<T>(1) + b * n * n;
            for (int64_t i = 0; i < n * n; ++i) a[i] = double(compute_t<T>(x[i]));
            cofactors(a, n, out, work);
            double dy = double(compute_t<T>(r.in<T>(0)[b]));
            for (int64_t i = 0; i < n * n; ++i)
              r.out<T>(0)[b * n * n + i] = T(compute_t<T>(dy * out[i]));
          }
        };
      });
}

std::vector<ValueId> rule(GradBuilder& b) { return {b.own("DetGrad", {b.dy(), b.x(0)})}; }

// All minors at once: rows, then columns, with one left out.
std::vector<ValueId> lower(GradBuilder& b) {
  ValueId x = b.x(1), dy = b.x(0);
  if (!b.shape_known(x))
    needs_shape("OT1205", "the lowered gradient of Det needs the size of the matrices");
  int64_t n = b.shape(x).back(), rank = int64_t(b.shape(x).size());
  if (n < 2) return {b.reshape_like(dy, x)};
  std::vector<int64_t> others;
  std::vector<double> signs;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < n; ++j) {
      if (j != i) others.push_back(j);
      signs.push_back((i + j) % 2 ? -1 : 1);
    }
  ValueId index = b.tensor(Tensor::vector<int64_t>(others).reshaped({n, n - 1}));
  ValueId rows = b.call("Gather", {x, index}, {{"axis", rank - 2}});  // [..., i, n-1, n]
  ValueId both = b.call("Gather", {rows, index}, {{"axis", rank}});   // [..., i, n-1, j, n-1]
  std::vector<int64_t> perm;
  for (int64_t d = 0; d < rank + 2; ++d) perm.push_back(d);
  std::swap(perm[size_t(rank - 1)], perm[size_t(rank)]);
  ValueId minors = b.call("Det", {b.transpose(both, perm)});
  Tensor sign = dispatch<float, double, Half, BFloat16>(b.dtype(x), "Det", [&]<class T>() {
    std::vector<T> v;
    for (double s : signs) v.push_back(T(compute_t<T>(s)));
    return Tensor::vector<T>(v).reshaped({n, n});
  });
  return {b.mul(b.mul(minors, b.tensor(sign)), b.unsqueeze(dy, {-2, -1}))};
}

}  // namespace

void register_det(OpTable& t) {
  t.add({.name = "Det", .shape = shape, .impls = {{"ref", nullptr, make}}, .grad = rule});
  t.add({.name = "DetGrad",
         .domain = std::string(kOwnDomain),
         .shape = grad_shape,
         .impls = {{"ref", nullptr, make_grad}},
         .lower = lower});
}

}  // namespace onnxtrain::ops
