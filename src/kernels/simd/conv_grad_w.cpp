// Chunks, packing and tasks of the weight gradient.
#include "kernels/simd/conv_grad_w.hpp"

#include <algorithm>

#include "kernels/simd/conv_grad_w_kernels.hpp"

namespace onnxtrain::simd {

namespace {

constexpr int64_t kChunkBytes = 3 << 20;  // packed x and dy of a chunk
constexpr int64_t kBlock = 256;           // pixels that one tile goes over before the next one
constexpr int64_t kPackPixels = 64;

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// The window in exactly three dimensions.
std::array<int64_t, 3> padded(const std::vector<int64_t>& v, int64_t with) {
  std::array<int64_t, 3> r{with, with, with};
  std::copy(v.begin(), v.end(), r.begin() + int64_t(3 - v.size()));
  return r;
}

}  // namespace

bool ConvGradW::fits(const kernels::ConvShape& s) {
  return s.groups == 1 && s.in_channels >= 6 && s.out_channels >= 8 && s.window.dims() <= 3;
}

ConvGradW::ConvGradW(const kernels::ConvShape& s)
    : batch_(s.batch),
      in_channels_(s.in_channels),
      out_channels_(s.out_channels),
      in_(padded(s.window.in, 1)),
      out_(padded(s.window.out, 1)),
      kernel_(padded(s.window.kernel, 1)),
      strides_(padded(s.window.strides, 1)),
      dilations_(padded(s.window.dilations, 1)),
      pads_(padded(s.window.pads_begin, 0)) {
  const GradWKernels& k = grad_w_kernels();
  taps_ = kernel_[0] * kernel_[1] * kernel_[2];
  tiles_ = up(in_channels_, k.mr);
  panels_ = up(out_channels_, k.nr);
  int64_t rows = out_[0] * out_[1], x_rows = in_[0] * in_[1];
  int64_t per_pixel = (in_channels_ + out_channels_ + 32) * int64_t(sizeof(float));
  int64_t image = std::max(x_rows * in_[2], rows * out_[2]) * per_pixel;
  if (image <= kChunkBytes) {
    int64_t images = std::max<int64_t>(1, kChunkBytes / image);
    images = up(batch_, up(batch_, images));
    for (int64_t n = 0; n < batch_; n += images)
      add_chunk(n, std::min(images, batch_ - n), 0, rows);
  } else {
    int64_t some = std::max<int64_t>(4, kChunkBytes / (std::max(in_[2], out_[2]) * per_pixel));
    some = up(rows, up(rows, some));
    for (int64_t n = 0; n < batch_; ++n)
      for (int64_t r = 0; r < rows; r += some) add_chunk(n, 1, r, std::min(rows, r + some));
  }
  // at least 16 tasks where there is enough to do
  while (taps_ * parts_m_ * parts_c_ < 16) {
    if (parts_m_ < panels_ && (panels_ / parts_m_ >= 4 || parts_c_ * 2 > tiles_))
      parts_m_ = std::min(panels_, parts_m_ * 2);
    else if (parts_c_ * 2 <= tiles_)
      parts_c_ *= 2;
    else if (parts_m_ < panels_)
      parts_m_ = std::min(panels_, parts_m_ * 2);
    else
      break;
  }
  workspace_ = sizeof(float) * size_t(x_capacity_ * tiles_ * k.mr + 64 +
                                      dy_capacity_ * panels_ * k.nr + 64 +
                                      taps_ * in_channels_ * panels_ * k.nr);
}

// Output rows [begin, end) of some images; more than one image only as a whole.
void ConvGradW::add_chunk(int64_t image, int64_t images, int64_t begin, int64_t end) {
  Chunk c{};
  int64_t rows = out_[0] * out_[1], x_rows = in_[0] * in_[1];
  c.dy_row = image * rows + begin;
  c.dy_rows = (images - 1) * rows + end - begin;
  int64_t low = x_rows, high = 0;  // input rows that are read
  for (int64_t o = begin; o < end; ++o)
    for (int64_t a = 0; a < kernel_[0]; ++a)
      for (int64_t b = 0; b < kernel_[1]; ++b) {
        int64_t z = o / out_[1] * strides_[0] + a * dilations_[0] - pads_[0];
        int64_t y = o % out_[1] * strides_[1] + b * dilations_[1] - pads_[1];
        if (z < 0 || z >= in_[0] || y < 0 || y >= in_[1]) continue;
        low = std::min(low, z * in_[1] + y);
        high = std::max(high, z * in_[1] + y + 1);
      }
  if (images > 1) low = 0, high = x_rows;
  if (low >= high) low = 0, high = 1;
  c.x_row = image * x_rows + low;
  c.x_rows = (images - 1) * x_rows + high - low;
  for (int64_t t = 0; t < taps_; ++t) c.taps.push_back(make_tap(c, t, image, images, begin, end));
  x_capacity_ = std::max(x_capacity_, c.x_rows * in_[2]);
  dy_capacity_ = std::max(dy_capacity_, c.dy_rows * out_[2]);
  chunks_.push_back(std::move(c));
}

ConvGradW::Tap ConvGradW::make_tap(const Chunk& c, int64_t tap, int64_t image, int64_t images,
                                   int64_t begin, int64_t end) const {
  const GradWKernels& kernels = grad_w_kernels();
  int64_t kd = tap / (kernel_[1] * kernel_[2]), kh = tap / kernel_[2] % kernel_[1],
          kw = tap % kernel_[2];
  int64_t shift = kw * dilations_[2] - pads_[2];
  int64_t first = shift >= 0 ? 0 : up(-shift, strides_[2]);
  int64_t last = in_[2] - 1 - shift < 0 ? 0 : (in_[2] - 1 - shift) / strides_[2] + 1;
  last = std::min(last, out_[2]);
  Tap t{std::max<int64_t>(0, last - first), {}};
  if (t.count == 0) return t;
  for (int64_t n = image; n < image + images; ++n)
    for (int64_t o = begin; o < end; ++o) {
      int64_t z = o / out_[1] * strides_[0] + kd * dilations_[0] - pads_[0];
      int64_t y = o % out_[1] * strides_[1] + kh * dilations_[1] - pads_[1];
      if (z < 0 || z >= in_[0] || y < 0 || y >= in_[1]) continue;
      int64_t x_row = (n * in_[0] + z) * in_[1] + y - c.x_row;
      int64_t dy_row = n * out_[0] * out_[1] + o - c.dy_row;
      t.rows.push_back({(x_row * in_[2] + first * strides_[2] + shift) * kernels.mr,
                        (dy_row * out_[2] + first) * kernels.nr});
    }
  return t;
}

// Task: kPackPixels pixels of x or, after those, of dy, in all channels.
void ConvGradW::pack(const Chunk& c, int64_t task, const float* dy, const float* x, float* xp,
                     float* dyp) const {
  const GradWKernels& k = grad_w_kernels();
  int64_t x_pixels = c.x_rows * in_[2], dy_pixels = c.dy_rows * out_[2];
  int64_t x_tasks = up(x_pixels, kPackPixels);
  if (task < x_tasks) {
    int64_t p = task * kPackPixels, n = std::min(kPackPixels, x_pixels - p);
    const float* from = x + (c.x_row * in_[2] + p) * in_channels_;
    for (int64_t t = 0; t < tiles_; ++t) {
      int64_t c0 = t * in_channels_ / tiles_, c1 = (t + 1) * in_channels_ / tiles_;
      k.pack(from + c0, in_channels_, n, c1 - c0, k.mr, xp + (t * x_capacity_ + p) * k.mr);
    }
    return;
  }
  int64_t p = (task - x_tasks) * kPackPixels, n = std::min(kPackPixels, dy_pixels - p);
  const float* from = dy + (c.dy_row * out_[2] + p) * out_channels_;
  for (int64_t t = 0; t < panels_; ++t) {
    int64_t m0 = t * k.nr, width = std::min<int64_t>(k.nr, out_channels_ - m0);
    k.pack(from + m0, out_channels_, n, width, k.nr, dyp + (t * dy_capacity_ + p) * k.nr);
  }
}

// Task: one tap, some panels of outputs, some tiles of inputs.
void ConvGradW::compute(const Chunk& c, bool first, int64_t task, const float* xp,
                        const float* dyp, float* sums) const {
  const GradWKernels& k = grad_w_kernels();
  int64_t tap = task / (parts_m_ * parts_c_), rest = task % (parts_m_ * parts_c_);
  int64_t pm = rest / parts_c_, pc = rest % parts_c_;
  const Tap& t = c.taps[size_t(tap)];
  int64_t total = int64_t(t.rows.size()), width = panels_ * k.nr;
  int64_t step = std::max<int64_t>(1, t.count > 0 ? kBlock / t.count : 1);
  for (int64_t r = 0; r < total || (r == 0 && first); r += step) {
    int64_t rows = std::min(step, total - r);
    for (int64_t m = pm * panels_ / parts_m_; m < (pm + 1) * panels_ / parts_m_; ++m)
      for (int64_t i = pc * tiles_ / parts_c_; i < (pc + 1) * tiles_ / parts_c_; ++i) {
        int64_t c0 = i * in_channels_ / tiles_, c1 = (i + 1) * in_channels_ / tiles_;
        k.tile[c1 - c0 - 1](t.rows.data() + r, rows, t.count, xp + i * x_capacity_ * k.mr,
                            k.mr * strides_[2], dyp + m * dy_capacity_ * k.nr,
                            sums + (tap * in_channels_ + c0) * width + m * k.nr, width,
                            first && r == 0);
      }
  }
}

// sums [tap][c][m] -> dw [m][c][tap], outputs [begin, end)
void ConvGradW::finish(int64_t begin, int64_t end, const float* sums, float* dw) const {
  int64_t width = panels_ * grad_w_kernels().nr;
  for (int64_t c = 0; c < in_channels_; ++c)
    for (int64_t m = begin; m < end; ++m)
      for (int64_t t = 0; t < taps_; ++t)
        dw[(m * in_channels_ + c) * taps_ + t] = sums[(t * in_channels_ + c) * width + m];
}

void ConvGradW::run(const float* dy, const float* x, float* dw, void* workspace,
                    ThreadPool& pool) const {
  const GradWKernels& k = grad_w_kernels();
  float *xp = static_cast<float*>(workspace), *dyp = xp + x_capacity_ * tiles_ * k.mr + 64,
        *sums = dyp + dy_capacity_ * panels_ * k.nr + 64;
  for (size_t n = 0; n < chunks_.size(); ++n) {
    const Chunk& c = chunks_[n];
    int64_t tasks = up(c.x_rows * in_[2], kPackPixels) + up(c.dy_rows * out_[2], kPackPixels);
    pool.run(tasks, [&](int64_t t) { pack(c, t, dy, x, xp, dyp); });
    pool.run(taps_ * parts_m_ * parts_c_,
             [&](int64_t t) { compute(c, n == 0, t, xp, dyp, sums); });
  }
  parallel_for(pool, out_channels_, 16,
               [&](int64_t b, int64_t e) { finish(b, e, sums, dw); });
}

}  // namespace onnxtrain::simd
