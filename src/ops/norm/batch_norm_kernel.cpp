// One channel of BatchNormalization, by the vector tiles and reductions of kernels/.
#include "ops/norm/batch_norm_kernel.hpp"

#include "kernels/elementwise/elementwise.hpp"
#include "kernels/reduce/reduce.hpp"

namespace onnxtrain::ops {

namespace {

constexpr int64_t kTile = 2048;

// f(offset, count) over the channel's elements, in tiles
template <class F>
void tiles(const Channels& ch, int64_t c, F f) {
  for (int64_t i = 0; i < ch.n; ++i) {
    int64_t at = (i * ch.c + c) * ch.s;
    for (int64_t k = 0; k < ch.s; k += kTile) f(at + k, std::min(kTile, ch.s - k));
  }
}

void run(simd::TileFn fn, const float* a, const float* b, float* out, int64_t n, float p0 = 0,
         float p1 = 0) {
  const float* in[2] = {a, b};
  const float params[2] = {p0, p1};
  fn(in, out, n, params);
}

}  // namespace

void channel_statistics_f32(const Channels& ch, const float* x, int64_t c, float* mean,
                            float* var) {
  static const simd::TileFn sub = simd::micro_op(simd::MicroOp::kSubScalar);
  double sum = 0, squares = 0, count = double(ch.n) * double(ch.s);
  tiles(ch, c,
        [&](int64_t at, int64_t n) { sum += double(simd::reduce(simd::Reduce::kSum, x + at, n)); });
  float m = float(sum / count);
  double left = 0;
  alignas(64) float centred[kTile];
  tiles(ch, c, [&](int64_t at, int64_t n) {
    run(sub, x + at, nullptr, centred, n, m);
    squares += double(simd::reduce(simd::Reduce::kSumSquare, centred, n));
    left += double(simd::reduce(simd::Reduce::kSum, centred, n));
  });
  left /= count;  // the rounding of the mean
  double v = squares / count - left * left;
  *mean = float(double(m) + left);
  *var = v < 0 ? 0.0f : float(v);
}

void channel_affine_f32(const Channels& ch, const float* x, int64_t c, float a, float b, float* y) {
  static const simd::TileFn affine = simd::micro_op(simd::MicroOp::kAffine);
  for (int64_t i = 0; i < ch.n; ++i) {
    int64_t at = (i * ch.c + c) * ch.s;
    run(affine, x + at, nullptr, y + at, ch.s, a, b);
  }
}

void channel_gradient_sums_f32(const Channels& ch, const float* dy, const float* x, int64_t c,
                               float mean, float* sum, float* dot) {
  static const simd::TileFn sub = simd::micro_op(simd::MicroOp::kSubScalar);
  double s = 0, d = 0;
  alignas(64) float centred[kTile];
  tiles(ch, c, [&](int64_t at, int64_t n) {
    run(sub, x + at, nullptr, centred, n, mean);
    s += double(simd::reduce(simd::Reduce::kSum, dy + at, n));
    d += double(simd::dot(dy + at, centred, n));
  });
  *sum = float(s);
  *dot = float(d);
}

void channel_gradient_f32(const Channels& ch, const float* dy, const float* x, int64_t c, float a,
                          float mean, float q, float s, float* dx) {
  static const simd::TileFn affine = simd::micro_op(simd::MicroOp::kAffine),
                            axpy = simd::micro_op(simd::MicroOp::kAxpy);
  alignas(64) float shifted[kTile];
  tiles(ch, c, [&](int64_t at, int64_t n) {
    run(affine, x + at, nullptr, shifted, n, q, s - q * mean);
    run(axpy, dy + at, shifted, dx + at, n, a);
  });
}

}  // namespace onnxtrain::ops
