// The double precision GEMM: a plain blocked loop, for checks.
#include <algorithm>

#include "kernels/gemm/gemm.hpp"

namespace onnxtrain::simd {

void gemm_f64(ThreadPool& pool, bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k,
              double alpha, const double* a, int64_t lda, const double* b, int64_t ldb, double beta,
              double* c, int64_t ldc) {
  constexpr int64_t kRows = 16, kColumns = 64;
  const int64_t across = (n + kColumns - 1) / kColumns, down = (m + kRows - 1) / kRows;
  auto block = [&](int64_t t) {
    const int64_t i0 = t / across * kRows, i1 = std::min(m, i0 + kRows);
    const int64_t j0 = t % across * kColumns, width = std::min(n - j0, kColumns);
    double sum[kRows][kColumns] = {};
    double row[kColumns];
    for (int64_t p = 0; p < k; ++p) {
      for (int64_t j = 0; j < width; ++j) {
        row[j] = trans_b ? b[(j0 + j) * ldb + p] : b[p * ldb + j0 + j];
      }
      for (int64_t i = i0; i < i1; ++i) {
        const double x = trans_a ? a[p * lda + i] : a[i * lda + p];
        for (int64_t j = 0; j < width; ++j) sum[i - i0][j] += x * row[j];
      }
    }
    for (int64_t i = i0; i < i1; ++i) {
      for (int64_t j = 0; j < width; ++j) {
        double& out = c[i * ldc + j0 + j];
        out = alpha * sum[i - i0][j] + (beta == 0 ? 0 : beta * out);
      }
    }
  };
  if (m <= 0 || n <= 0) return;
  if (m * n * k < 1 << 16) {
    for (int64_t t = 0; t < across * down; ++t) block(t);
  } else {
    pool.run(across * down, block);
  }
}

}  // namespace onnxtrain::simd
