// Chunks of rows and how their sums come together.
#include "kernels/norm/channels_last_norm.hpp"

#include <algorithm>

#include "kernels/norm/channels_last_norm_simd.hpp"

namespace onnxtrain::simd {

// About 64 KB, and few enough rows for sums in float.
int64_t NormShape::chunk_rows() const {
  return std::clamp<int64_t>(16384 / std::max<int64_t>(1, channels), 8, 256);
}

namespace {

template <class F>
void for_chunks(ThreadPool& pool, const NormShape& s, F f) {
  int64_t step = s.chunk_rows();
  pool.run(s.chunks(), [&](int64_t k) {
    int64_t row = k * step;
    f(k, row * s.channels, std::min(step, s.rows - row));
  });
}

NormGrad moved(const NormGrad& n, int64_t at) {
  NormGrad m = n;
  m.dy += at;
  m.x += at;
  if (m.y) m.y += at;
  return m;
}

}  // namespace

void norm_statistics(ThreadPool& pool, const NormShape& s, const float* x, void* workspace,
                     float* mean, float* var) {
  auto* part = static_cast<float*>(workspace);
  float* squares = part + s.chunks() * s.channels;
  for_chunks(pool, s, [&](int64_t k, int64_t at, int64_t rows) {
    channel_norm_kernels().statistics(rows, s.channels, x + at, part + k * s.channels,
                                      squares + k * s.channels);
  });
  int64_t step = s.chunk_rows();
  parallel_for(pool, s.channels, 64, [&](int64_t b, int64_t e) {
    for (int64_t c = b; c < e; ++c) {
      double count = 0, m = 0, sq = 0;
      for (int64_t k = 0; k < s.chunks(); ++k) {
        double n = double(std::min(step, s.rows - k * step));
        double d = double(part[k * s.channels + c]) - m, all = count + n;
        sq += double(squares[k * s.channels + c]) + d * d * count * n / all;
        m += d * n / all;
        count = all;
      }
      mean[c] = float(m);
      var[c] = float(std::max(0.0, sq / count));
    }
  });
}

void norm_apply(ThreadPool& pool, const NormShape& s, const float* x, const float* a,
                const float* b, const float* residual, NormActivation act, float* y) {
  for_chunks(pool, s, [&](int64_t, int64_t at, int64_t rows) {
    channel_norm_kernels().apply(rows, s.channels, x + at, a, b, residual ? residual + at : nullptr,
                                 act, y + at);
  });
}

void norm_grad_sums(ThreadPool& pool, const NormShape& s, const NormGrad& n, void* workspace,
                    float* g, float* sum, float* dot) {
  auto* sums = static_cast<float*>(workspace);
  float* dots = sums + s.chunks() * s.channels;
  for_chunks(pool, s, [&](int64_t k, int64_t at, int64_t rows) {
    channel_norm_kernels().grad_sums(rows, s.channels, moved(n, at), g ? g + at : nullptr,
                                     sums + k * s.channels, dots + k * s.channels);
  });
  parallel_for(pool, s.channels, 64, [&](int64_t b, int64_t e) {
    for (int64_t c = b; c < e; ++c) {
      double all = 0, product = 0;
      for (int64_t k = 0; k < s.chunks(); ++k) {
        all += double(sums[k * s.channels + c]);
        product += double(dots[k * s.channels + c]);
      }
      sum[c] = float(all);
      dot[c] = float(product);
    }
  });
}

void norm_grad_apply(ThreadPool& pool, const NormShape& s, const NormGrad& n, const float* q,
                     const float* shift, float* dx) {
  for_chunks(pool, s, [&](int64_t, int64_t at, int64_t rows) {
    channel_norm_kernels().grad_apply(rows, s.channels, moved(n, at), q, shift, dx + at);
  });
}

}  // namespace onnxtrain::simd
