// How reductions are cut into tasks: by the problem only, joined in a fixed order.
#include <algorithm>

#include "kernels/reduce/reduce_simd.hpp"

namespace onnxtrain::simd {
namespace {

constexpr int64_t kTaskElements = 16384;

// Rows per slice of a [k, n] reduction over rows; long ones are cut into slices.
int64_t slice_rows(int64_t k, int64_t n) {
  const int64_t rows = std::max<int64_t>(64, 4 * kTaskElements / std::max<int64_t>(n, 1));
  return k <= 2 * rows ? k : std::max(rows, (k + 63) / 64);
}
int64_t slices(int64_t k, int64_t n) {
  const int64_t rows = slice_rows(k, n);
  return k <= 0 ? 1 : (k + rows - 1) / rows;
}

bool is_sum(Reduce op) { return op != Reduce::kMax && op != Reduce::kMin; }
Reduce joining(Reduce op) { return is_sum(op) ? Reduce::kSum : op; }

}  // namespace

float reduce(Reduce op, const float* x, int64_t n) {
  const float r = reduce_kernels().contiguous[size_t(op)](x, n);
  return op == Reduce::kMean ? r / float(n) : r;
}

float dot(const float* x, const float* y, int64_t n) { return reduce_kernels().dot(x, y, n); }

size_t reduce_middle_workspace(int64_t outer, int64_t k, int64_t inner) {
  if (inner == 1 || outer > 1) return 0;
  return size_t(std::max<int64_t>(1, slices(k, inner)) * inner) * sizeof(float);
}

void reduce_middle(ThreadPool& pool, Reduce op, const float* x, int64_t outer, int64_t k,
                   int64_t inner, float* out, void* workspace) {
  const ReduceKernels& t = reduce_kernels();
  const float scale = op == Reduce::kMean ? 1.0f / float(k) : 1.0f;
  if (outer <= 0 || inner <= 0) return;
  if (inner == 1) {
    const int64_t grain = std::max<int64_t>(1, kTaskElements / std::max<int64_t>(k, 1));
    parallel_for(pool, outer, grain, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) out[i] = reduce(op, x + i * k, k);
    });
    return;
  }
  if (outer == 1) {
    const int64_t parts = slices(k, inner), rows = slice_rows(k, inner);
    if (parts > 1) {
      float* part = static_cast<float*>(workspace);
      pool.run(parts, [&](int64_t s) {
        const int64_t b = s * rows, e = std::min(k, b + rows);
        t.rows[size_t(op)](x + b * inner, e - b, inner, inner, part + s * inner);
      });
      t.rows[size_t(joining(op))](part, parts, inner, inner, out);
    } else {
      t.rows[size_t(op)](x, k, inner, inner, out);
    }
    if (scale != 1) {
      for (int64_t j = 0; j < inner; ++j) out[j] *= scale;
    }
    return;
  }
  const int64_t grain = std::max<int64_t>(1, kTaskElements / std::max<int64_t>(k * inner, 1));
  parallel_for(pool, outer, grain, [&](int64_t b, int64_t e) {
    for (int64_t o = b; o < e; ++o) {
      float* row = out + o * inner;
      t.rows[size_t(op)](x + o * k * inner, k, inner, inner, row);
      if (scale != 1) {
        for (int64_t j = 0; j < inner; ++j) row[j] *= scale;
      }
    }
  });
}

}  // namespace onnxtrain::simd
