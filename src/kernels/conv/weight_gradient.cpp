// Chunks, packing and tasks of the weight gradient.
#include "kernels/conv/weight_gradient.hpp"

#include <algorithm>

#include "kernels/conv/weight_gradient_simd.hpp"

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

// On images of fewer channels oneDNN is faster: they fill half a panel.
bool ConvGradW::fits(const kernels::ConvShape& s) {
  return s.groups == 1 && s.in_channels >= (s.window.dims() == 2 ? 12 : 8) && s.window.dims() <= 3;
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
  tiles_ = up(out_channels_, k.mr);
  panels_ = up(in_channels_, k.nr);
  if (choose_direct()) return;
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
    bool can_m = parts_m_ * 2 <= tiles_, can_c = parts_c_ * 2 <= panels_;
    if (can_c && (panels_ / parts_c_ >= 4 || !can_m))
      parts_c_ *= 2;
    else if (can_m)
      parts_m_ *= 2;
    else
      break;
  }
  in_place_ = taps_ == 1 && in_channels_ % k.nr == 0;
  workspace_ =
      sizeof(float) * size_t(x_capacity_ * panels_ * k.nr + 64 + dy_capacity_ * tiles_ * k.mr + 64 +
                             (in_place_ ? 0 : taps_ * out_channels_ * panels_ * k.nr));
}

// A GEMM over all pixels as they lie, when its result is small and one of the channel counts is
// a multiple of the tile's width.
bool ConvGradW::choose_direct() {
  const GradWKernels& k = grad_w_kernels();
  int64_t pixels = batch_ * out_[0] * out_[1] * out_[2];
  bool same = taps_ == 1 && in_ == out_ && strides_ == Dims{1, 1, 1} && pads_ == Dims{0, 0, 0};
  if (!same || in_channels_ * out_channels_ > 32768 || pixels < 1024) return false;
  direct_swapped_ = in_channels_ % k.nr != 0;
  if (direct_swapped_ && out_channels_ % k.nr != 0) return false;
  direct_parts_ = std::clamp<int64_t>(pixels / 512, 2, 16);
  workspace_ = sizeof(float) * size_t(direct_parts_ * in_channels_ * out_channels_);
  return true;
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
      t.rows.push_back({(x_row * in_[2] + first * strides_[2] + shift) * kernels.nr,
                        (dy_row * out_[2] + first) * kernels.mr});
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
    for (int64_t t = 0; t < panels_; ++t) {
      int64_t c0 = t * k.nr, width = std::min<int64_t>(k.nr, in_channels_ - c0);
      k.pack(from + c0, in_channels_, n, width, k.nr, 0, xp + (t * x_capacity_ + p) * k.nr);
    }
    return;
  }
  int64_t p = (task - x_tasks) * kPackPixels, n = std::min(kPackPixels, dy_pixels - p);
  const float* from = dy + (c.dy_row * out_[2] + p) * out_channels_;
  for (int64_t t = 0; t < tiles_; ++t) {
    int64_t m0 = t * out_channels_ / tiles_, m1 = (t + 1) * out_channels_ / tiles_;
    k.pack(from + m0, out_channels_, n, m1 - m0, k.mr, out_channels_ - m1,
           dyp + (t * dy_capacity_ + p) * k.mr);
  }
}

// Task: one tap, some tiles of outputs, some panels of inputs.
void ConvGradW::compute(const Chunk& c, bool first, int64_t task, const float* xp, const float* dyp,
                        float* sums) const {
  const GradWKernels& k = grad_w_kernels();
  int64_t tap = task / (parts_m_ * parts_c_), rest = task % (parts_m_ * parts_c_);
  int64_t pm = rest / parts_c_, pc = rest % parts_c_;
  const Tap& t = c.taps[size_t(tap)];
  int64_t total = int64_t(t.rows.size()), width = panels_ * k.nr;
  int64_t step = std::max<int64_t>(1, t.count > 0 ? kBlock / t.count : 1);
  for (int64_t r = 0; r < total || (r == 0 && first); r += step) {
    int64_t rows = std::min(step, total - r);
    for (int64_t i = pc * panels_ / parts_c_; i < (pc + 1) * panels_ / parts_c_; ++i)
      for (int64_t m = pm * tiles_ / parts_m_; m < (pm + 1) * tiles_ / parts_m_; ++m) {
        int64_t m0 = m * out_channels_ / tiles_, m1 = (m + 1) * out_channels_ / tiles_;
        k.tile[m1 - m0 - 1](t.rows.data() + r, rows, t.count, dyp + m * dy_capacity_ * k.mr, k.mr,
                            xp + i * x_capacity_ * k.nr, k.nr * strides_[2],
                            sums + (tap * out_channels_ + m0) * width + i * k.nr, width,
                            first && r == 0);
      }
  }
}

// sums [tap][m][c] -> dw [m][c][tap], outputs [begin, end)
void ConvGradW::finish(int64_t begin, int64_t end, const float* sums, float* dw) const {
  int64_t width = panels_ * grad_w_kernels().nr;
  for (int64_t m = begin; m < end; ++m) {
    float* to = dw + m * in_channels_ * taps_;
    for (int64_t t = 0; t < taps_; ++t) {
      const float* from = sums + (t * out_channels_ + m) * width;
      for (int64_t c = 0; c < in_channels_; ++c) to[c * taps_ + t] = from[c];
    }
  }
}

// a [pixels][rows], b [pixels][columns] -> sums [rows][columns]
void ConvGradW::direct_part(int64_t part, const float* a, const float* b, float* sums) const {
  const GradWKernels& k = grad_w_kernels();
  int64_t rows = direct_swapped_ ? in_channels_ : out_channels_,
          columns = direct_swapped_ ? out_channels_ : in_channels_;
  int64_t pixels = batch_ * out_[0] * out_[1] * out_[2], tiles = up(rows, k.mr);
  int64_t begin = part * pixels / direct_parts_, end = (part + 1) * pixels / direct_parts_;
  for (int64_t p = begin; p < end; p += kBlock / 2) {
    int64_t count = std::min(kBlock / 2, end - p);
    GradWRow row{p * columns, p * rows};
    for (int64_t i = 0; i < columns; i += k.nr)
      for (int64_t t = 0; t < tiles; ++t) {
        int64_t r0 = t * rows / tiles, r1 = (t + 1) * rows / tiles;
        k.tile[r1 - r0 - 1](&row, 1, count, a + r0, rows, b + i, columns, sums + r0 * columns + i,
                            columns, p == begin);
      }
  }
}

void ConvGradW::run_direct(const float* dy, const float* x, float* dw, float* sums,
                           ThreadPool& pool) const {
  int64_t size = in_channels_ * out_channels_;
  pool.run(direct_parts_, [&](int64_t t) {
    direct_part(t, direct_swapped_ ? x : dy, direct_swapped_ ? dy : x, sums + t * size);
  });
  parallel_for(pool, out_channels_, std::max<int64_t>(1, 4096 / in_channels_),
               [&](int64_t b, int64_t e) {
                 int64_t step_m = direct_swapped_ ? 1 : in_channels_,
                         step_c = direct_swapped_ ? out_channels_ : 1;
                 for (int64_t m = b; m < e; ++m)
                   for (int64_t c = 0; c < in_channels_; ++c) {
                     const float* from = sums + m * step_m + c * step_c;
                     float sum = from[0];
                     for (int64_t t = 1; t < direct_parts_; ++t) sum += from[t * size];
                     dw[m * in_channels_ + c] = sum;
                   }
               });
}

void ConvGradW::run(const float* dy, const float* x, float* dw, void* workspace,
                    ThreadPool& pool) const {
  const GradWKernels& k = grad_w_kernels();
  if (direct_parts_) return run_direct(dy, x, dw, static_cast<float*>(workspace), pool);
  float *xp = static_cast<float*>(workspace), *dyp = xp + x_capacity_ * panels_ * k.nr + 64,
        *sums = in_place_ ? dw : dyp + dy_capacity_ * tiles_ * k.mr + 64;
  for (size_t n = 0; n < chunks_.size(); ++n) {
    const Chunk& c = chunks_[n];
    int64_t tasks = up(c.x_rows * in_[2], kPackPixels) + up(c.dy_rows * out_[2], kPackPixels);
    pool.run(tasks, [&](int64_t t) { pack(c, t, dy, x, xp, dyp); });
    pool.run(taps_ * parts_m_ * parts_c_, [&](int64_t t) { compute(c, n == 0, t, xp, dyp, sums); });
  }
  if (in_place_) return;
  parallel_for(pool, out_channels_, 16, [&](int64_t b, int64_t e) { finish(b, e, sums, dw); });
}

}  // namespace onnxtrain::simd
