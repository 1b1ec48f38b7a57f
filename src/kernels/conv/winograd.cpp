// Blocks of tiles through transforms and GEMMs.
#include "kernels/conv/winograd.hpp"

#include <algorithm>
#include <cstring>

#include "core/tensor.hpp"
#include "kernels/conv/winograd_simd.hpp"
#include "kernels/gemm/gemm_blocks.hpp"
#include "kernels/gemm/gemm_simd.hpp"

namespace onnxtrain::simd {

namespace {

constexpr int64_t kLine = 16;              // floats
constexpr int64_t kColumns = 64;           // output channels whose GEMMs are kept together
constexpr int64_t kBlockK = 256;           // of the GEMMs
constexpr int64_t kBlockTiles = 128;       // of those of the weight gradient
constexpr int64_t kPatch = 8;              // tiles transformed by one task of the weight gradient
constexpr int64_t kChunkFloats = 1 << 18;  // of transformed tiles in the weight gradient

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }
// Rows and points are so far apart that neighbours do not share the cache's sets.
int64_t row_floats(int64_t n) { return up(n, 64) * 64 + kLine; }
int64_t point_floats(int64_t n) { return up(n, 1024) * 1024 + kLine; }
// Whole register tiles; more where the weights are large, which every block reads.
int64_t tiles_per_block(int64_t in_channels) {
  return (in_channels >= 256 ? 96 : 48) / gemm_kernels().mr * gemm_kernels().mr;
}

}  // namespace

bool winograd_fits(const kernels::ConvShape& s, bool weights) {
  const kernels::Window& w = s.window;
  if (s.groups != 1 || (w.dims() != 2 && (w.dims() != 3 || weights))) return false;
  for (size_t d = 0; d < w.dims(); ++d) {
    if (w.strides[d] != 1 || w.dilations[d] != 1) return false;
    if (d + 2 >= w.dims() && (w.kernel[d] != 3 || w.out[d] < 4 || w.in[d] < 4)) return false;
  }
  return s.in_channels >= 16 && s.out_channels >= 16 && s.batch * w.out_size() >= 128;
}

// ---------------------------------------------------------------- tiles
WinogradTiles::WinogradTiles(const kernels::ConvShape& s, bool gradient)
    : batch(s.batch),
      slice_channels(gradient ? s.out_channels : s.in_channels),
      out_channels(gradient ? s.in_channels : s.out_channels) {
  const kernels::Window& w = s.window;
  const auto &in = gradient ? w.out : w.in, &out = gradient ? w.in : w.out;
  auto pad = [&](size_t d) {
    return gradient ? w.kernel[d] - 1 - w.pads_begin[d] : w.pads_begin[d];
  };
  size_t h = w.dims() - 2;
  taps_d = h ? w.kernel[0] : 1;
  in_d = h ? in[0] : 1, in_h = in[h], in_w = in[h + 1];
  out_d = h ? out[0] : 1, out_h = out[h], out_w = out[h + 1];
  front = h ? pad(0) : 0, top = pad(h), left = pad(h + 1);
  in_channels = taps_d * slice_channels;
  rows = up(out_h, 2), columns = up(out_w, 2);
}

void WinogradTiles::input(int64_t t, const float* x, float* patch, float* v, int64_t points) const {
  int64_t image = t / (rows * columns), n = image / out_d, z0 = image % out_d - front;
  int64_t y0 = t / columns % rows * 2 - top, x0 = t % columns * 2 - left;
  for (int64_t k = 0; k < taps_d; ++k, v += slice_channels) {
    if (z0 + k >= 0 && z0 + k < in_d) {
      const float* slice = x + (n * in_d + z0 + k) * in_h * in_w * slice_channels;
      input_slice(slice, y0, x0, patch, v, points);
    } else {
      for (int64_t p = 0; p < 16; ++p) std::fill_n(v + p * points, slice_channels, 0.0f);
    }
  }
}

void WinogradTiles::input_slice(const float* slice, int64_t y0, int64_t x0, float* patch, float* v,
                                int64_t points) const {
  int64_t c = slice_channels, row = in_w * c;
  if (y0 >= 0 && x0 >= 0 && y0 + 4 <= in_h && x0 + 4 <= in_w) {
    winograd_kernels().input(slice + y0 * row + x0 * c, row, c, c, v, points);
    return;
  }
  int64_t from = std::clamp<int64_t>(-x0, 0, 4), to = std::clamp<int64_t>(in_w - x0, from, 4);
  for (int64_t i = 0; i < 4; ++i) {
    float* p = patch + i * 4 * c;
    if (y0 + i < 0 || y0 + i >= in_h) {
      std::fill_n(p, 4 * c, 0.0f);
      continue;
    }
    std::fill(p, p + from * c, 0.0f);
    if (to > from)
      std::memcpy(p + from * c, slice + (y0 + i) * row + (x0 + from) * c,
                  size_t((to - from) * c) * sizeof(float));
    std::fill(p + to * c, p + 4 * c, 0.0f);
  }
  winograd_kernels().input(patch, 4 * c, c, c, v, points);
}

WinogradTiles::Out WinogradTiles::out(int64_t t) const {
  int64_t n = t / (rows * columns), y = t / columns % rows * 2, x = t % columns * 2;
  return {((n * out_h + y) * out_w + x) * out_channels, int(std::min<int64_t>(2, out_h - y)),
          int(std::min<int64_t>(2, out_w - x))};
}

// ---------------------------------------------------------------- convolution
Winograd::Winograd(const kernels::ConvShape& s, bool gradient, int threads)
    : t_(s, gradient), gradient_(gradient), slots_(std::max(1, threads)) {
  int64_t nr = gemm_kernels().nr, mr = gemm_kernels().mr;
  panels_ = up(t_.out_channels, nr);
  tiles_ = up(up(t_.count(), up(t_.count(), tiles_per_block(t_.in_channels))), mr) * mr;
  blocks_ = up(t_.count(), tiles_);
  parts_ = 1;
  while (blocks_ * parts_ < 16 && t_.out_channels / (2 * parts_) >= kColumns) parts_ *= 2;
  ld_v_ = row_floats(t_.in_channels);
  ld_m_ = row_floats(kColumns);
  points_v_ = point_floats(tiles_ * ld_v_);
  points_m_ = point_floats(tiles_ * ld_m_);
  points_u_ = point_floats(panels_ * t_.in_channels * nr);
}

int64_t Winograd::slot_floats() const {
  return 16 * (points_v_ + points_m_) + up(t_.patch_floats(), kLine) * kLine;
}

size_t Winograd::workspace() const {
  return size_t((fixed_ ? 0 : weight_floats()) + slots_.count() * slot_floats()) * sizeof(float);
}

// u [point][panel of output channels][tap in front][input channel][nr]
void Winograd::transform_weights(const float* w, float* u, ThreadPool* pool) const {
  constexpr int64_t kSome = 32;  // input channels per task
  int64_t nr = gemm_kernels().nr, in = t_.slice_channels, pieces = up(in, kSome);
  int64_t taps = t_.taps_d, volume = 9 * taps;
  // w [m][c]: its output channels are those of a gradient's input
  int64_t lane = gradient_ ? volume : volume * in;
  int64_t step = gradient_ ? volume * t_.out_channels : volume;
  auto one = [&](int64_t task) {
    int64_t panel = task / (pieces * taps), z = task / pieces % taps, k = task % pieces * kSome;
    int64_t n = panel * nr, from = 9 * (gradient_ ? taps - 1 - z : z);
    winograd_kernels().weights(w + n * lane + k * step + from, lane, step, std::min(kSome, in - k),
                               std::min(nr, t_.out_channels - n), nr, gradient_,
                               u + ((panel * taps + z) * in + k) * nr, points_u_);
  };
  int64_t tasks = panels_ * taps * pieces;
  if (pool) return pool->run(tasks, one);
  for (int64_t t = 0; t < tasks; ++t) one(t);
}

void Winograd::fix_weights(const float* w) {
  std::shared_ptr<void> area = allocate(size_t(weight_floats()) * sizeof(float));
  transform_weights(w, static_cast<float*>(area.get()), nullptr);
  fixed_ = std::move(area);
}

// m [tile][width] = v [tile][in] * u at one point; width is of the panels that begin at `panel`.
void Winograd::multiply(int64_t tiles, const float* v, const float* u, int64_t panel, int64_t width,
                        float* m) const {
  const GemmKernels& g = gemm_kernels();
  int64_t in = t_.in_channels, steps = up(in, kBlockK), count = up(tiles, g.mr);
  for (int64_t s = 0; s < steps; ++s) {
    int64_t k0 = s * in / steps, k = (s + 1) * in / steps - k0;
    for (int64_t j = 0; j < width; j += g.nr) {
      const float* b = u + ((panel + j / g.nr) * in + k0) * g.nr;
      int vectors = width - j > g.lanes ? 2 : 1;
      for (int64_t t = 0; t < count; ++t) {
        int64_t i0 = t * tiles / count, rows = (t + 1) * tiles / count - i0;
        g.tile[0][rows - 1][vectors - 1](
            k, v + i0 * ld_v_ + k0, ld_v_, b, g.nr,
            {m + i0 * ld_m_ + j, ld_m_, 1, 1, s ? TileStore::kAdd : TileStore::kOverwrite});
      }
    }
  }
}

// Task: a block of tiles, a part of the output channels.
void Winograd::block(int64_t task, const float* x, const float* u, const float* bias, float* y,
                     float* scratch) const {
  int64_t nr = gemm_kernels().nr, b = task / parts_, part = task % parts_;
  int64_t begin = b * tiles_, tiles = std::min(tiles_, t_.count() - begin);
  float *v = scratch, *m = v + 16 * points_v_, *patch = m + 16 * points_m_;
  for (int64_t t = 0; t < tiles; ++t) t_.input(begin + t, x, patch, v + t * ld_v_, points_v_);
  int64_t p1 = (part + 1) * panels_ / parts_, some = kColumns / nr;
  for (int64_t p = part * panels_ / parts_; p < p1; p += some) {
    int64_t c = p * nr, width = std::min(std::min(p + some, p1) * nr, t_.out_channels) - c;
    for (int64_t point = 0; point < 16; ++point)
      multiply(tiles, v + point * points_v_, u + point * points_u_, p, width,
               m + point * points_m_);
    for (int64_t t = 0; t < tiles; ++t) {
      WinogradTiles::Out o = t_.out(begin + t);
      winograd_kernels().output(m + t * ld_m_, points_m_, width, bias ? bias + c : nullptr,
                                y + o.at + c, t_.out_w * t_.out_channels, t_.out_channels, o.rows,
                                o.columns);
    }
  }
}

void Winograd::run(const float* x, const float* w, const float* bias, float* y, void* workspace,
                   ThreadPool& pool) {
  auto* area = static_cast<float*>(workspace);
  const float* u = static_cast<const float*>(fixed_.get());
  if (!u) {
    transform_weights(w, area, &pool);
    u = area;
    area += weight_floats();
  }
  pool.run(blocks_ * parts_, [&](int64_t t) {
    int slot = slots_.take();
    block(t, x, u, bias, y, area + slot * slot_floats());
    slots_.give_back(slot);
  });
}

// ---------------------------------------------------------------- weight gradient
WinogradGradW::WinogradGradW(const kernels::ConvShape& s) : t_(s, false) {
  ld_v_ = row_floats(t_.in_channels);
  ld_m_ = row_floats(t_.out_channels);
  ld_u_ = up(t_.in_channels, kMaxNr) * kMaxNr;
  int64_t most = std::max<int64_t>(96, kChunkFloats / (16 * (ld_v_ + ld_m_)));
  chunks_ = up(t_.count(), most);
  chunk_ = up(t_.count(), chunks_);
  points_v_ = point_floats(chunk_ * ld_v_);
  points_m_ = point_floats(chunk_ * ld_m_);
  points_u_ = point_floats(t_.out_channels * ld_u_);
  parts_ = t_.out_channels >= 64 ? 2 : 1;
}

size_t WinogradGradW::workspace() const {
  int64_t patches = up(chunk_, kPatch) * up(t_.patch_floats(), kLine) * kLine;
  return size_t(16 * (points_v_ + points_m_ + points_u_) + patches) * sizeof(float);
}

// Tile `tile` of the tensors to place `at` of the chunk.
void WinogradGradW::transform(int64_t tile, int64_t at, const float* dy, const float* x,
                              float* patch, float* v, float* m) const {
  t_.input(tile, x, patch, v + at * ld_v_, points_v_);
  WinogradTiles::Out o = t_.out(tile);
  winograd_kernels().output_adjoint(dy + o.at, t_.out_w * t_.out_channels, t_.out_channels, o.rows,
                                    o.columns, t_.out_channels, m + at * ld_m_, points_m_);
}

// Task: one point, a part of the output channels. u [m][c] (+)= sum over tiles of m * v
void WinogradGradW::multiply(int64_t task, int64_t tiles, bool first, const float* v,
                             const float* m, float* u) const {
  const GemmKernels& g = gemm_kernels();
  int64_t point = task / parts_, part = task % parts_, all = up(t_.out_channels, g.mr);
  int64_t r0 = part * all / parts_, r1 = (part + 1) * all / parts_, steps = up(tiles, kBlockTiles);
  v += point * points_v_, m += point * points_m_, u += point * points_u_;
  for (int64_t s = 0; s < steps; ++s) {
    int64_t k0 = s * tiles / steps, k = (s + 1) * tiles / steps - k0;
    for (int64_t c = 0; c < t_.in_channels; c += g.nr) {
      int vectors = t_.in_channels - c > g.lanes ? 2 : 1;
      for (int64_t r = r0; r < r1; ++r) {
        int64_t i = r * t_.out_channels / all, rows = (r + 1) * t_.out_channels / all - i;
        g.tile[1][rows - 1][vectors - 1](
            k, m + k0 * ld_m_ + i, ld_m_, v + k0 * ld_v_ + c, ld_v_,
            {u + i * ld_u_ + c, ld_u_, 1, 1,
             first && s == 0 ? TileStore::kOverwrite : TileStore::kAdd});
      }
    }
  }
}

void WinogradGradW::run(const float* dy, const float* x, float* dw, void* workspace,
                        ThreadPool& pool) const {
  float *v = static_cast<float*>(workspace), *m = v + 16 * points_v_, *u = m + 16 * points_m_,
        *patches = u + 16 * points_u_;
  for (int64_t n = 0; n < chunks_; ++n) {
    int64_t begin = n * t_.count() / chunks_, tiles = (n + 1) * t_.count() / chunks_ - begin;
    parallel_for(pool, tiles, kPatch, [&](int64_t b, int64_t e) {
      float* patch = patches + b / kPatch * up(t_.patch_floats(), kLine) * kLine;
      for (int64_t t = b; t < e; ++t) transform(begin + t, t, dy, x, patch, v, m);
    });
    pool.run(16 * parts_, [&](int64_t t) { multiply(t, tiles, n == 0, v, m, u); });
  }
  parallel_for(pool, t_.out_channels, 4, [&](int64_t b, int64_t e) {
    for (int64_t o = b; o < e; ++o)
      winograd_kernels().weights_adjoint(u + o * ld_u_, points_u_, t_.in_channels,
                                         dw + o * t_.in_channels * 9);
  });
}

}  // namespace onnxtrain::simd
