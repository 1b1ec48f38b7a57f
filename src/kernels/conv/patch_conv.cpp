// Gather, GEMM, scatter.
#include "kernels/conv/patch_conv.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/tensor.hpp"

namespace onnxtrain::simd {

namespace {

using kernels::ConvShape;

std::array<int64_t, 3> padded(const std::vector<int64_t>& v) {
  std::array<int64_t, 3> r{1, 1, 1};
  std::copy(v.begin(), v.end(), r.begin() + int64_t(3 - v.size()));
  return r;
}

// Windows inside the input that share no pixel.
bool apart(const kernels::Window& w) {
  if (w.dims() > 3) return false;
  for (size_t d = 0; d < w.dims(); ++d) {
    if (w.pads_begin[d] != 0 || w.strides[d] < w.kernel[d]) return false;
    if (w.kernel[d] > 1 && w.dilations[d] != 1) return false;
    if ((w.out[d] - 1) * w.strides[d] + w.kernel[d] > w.in[d]) return false;
  }
  return true;
}

bool together(const kernels::Window& w) { return w.taps() == 1 && w.in == w.out; }

int64_t floats(int64_t n) { return (n + 15) / 16 * 16; }

}  // namespace

bool PatchConv::fits(const ConvShape& s, ConvPass pass) {
  const kernels::Window& w = s.window;
  if (!apart(w) || (s.groups > 1 && w.taps() > 1)) return false;
  int64_t pixels = s.batch * w.out_size(), in = s.in_per_group(), out = s.out_per_group();
  if (s.groups > 1) return pass == ConvPass::kWeightGradient && in >= 16 && out >= 16;
  if (!together(w)) return in * w.taps() >= 64 && out >= 16;
  // few channels on one side leave oneDNN's vectors empty; many make the GEMM's copies cheap
  bool few = std::min(in, out) < 8 && std::max(in, out) >= 16;
  if (pass == ConvPass::kWeightGradient) return few || pixels <= 256;
  return few || (pass == ConvPass::kForward ? in : out) >= 256;
}

PatchConv::PatchConv(const ConvShape& s, ConvPass pass, bool bias)
    : pass_(pass),
      batch_(s.batch),
      channels_(s.in_channels),
      out_channels_(s.out_channels),
      groups_(s.groups),
      taps_(s.window.taps()),
      pixels_(s.batch * s.window.out_size()),
      row_(taps_ * s.in_channels),
      in_(padded(s.window.in)),
      out_(padded(s.window.out)),
      kernel_(padded(s.window.kernel)),
      strides_(padded(s.window.strides)),
      gathers_(!together(s.window)) {
  bool forward = pass == ConvPass::kForward;
  separate_bias_ = bias && !(forward && groups_ == 1);
  int64_t in = row_ / groups_, out = out_channels_ / groups_;
  if (pass == ConvPass::kWeightGradient && groups_ == 1 && pixels_ > 256) {
    ConvShape same;
    same.batch = 1, same.in_channels = row_, same.out_channels = out_channels_;
    same.window.in = same.window.out = {pixels_};
    same.window.kernel = same.window.strides = same.window.dilations = {1};
    same.window.pads_begin = same.window.pads_end = {0};
    if (ConvGradW::fits(same)) grad_w_ = std::make_unique<ConvGradW>(same);
    if (grad_w_) return;
  }
  GemmDesc d;
  d.batch = groups_;
  if (forward) {
    d.m = pixels_, d.n = out, d.k = in;
    d.trans_b = true;
    d.lda = row_, d.ldb = in, d.ldc = out_channels_;
    d.stride_a = in, d.stride_b = in * out, d.stride_c = out;
    if (bias && !separate_bias_) d.bias = BiasAxis::kColumn;
  } else if (pass == ConvPass::kInputGradient) {
    d.m = pixels_, d.n = in, d.k = out;
    d.lda = out_channels_, d.ldb = in, d.ldc = row_;
    d.stride_a = out, d.stride_b = in * out, d.stride_c = in;
  } else {
    d.m = out, d.n = in, d.k = pixels_;
    d.trans_a = true;
    d.lda = out_channels_, d.ldb = row_, d.ldc = in;
    d.stride_a = out, d.stride_b = in, d.stride_c = in * out;
  }
  gemm_ = GemmPlan::make(d);
}

void PatchConv::fix_weights(const float* w) {
  GemmDesc d = gemm_.desc();
  if (pass_ == ConvPass::kWeightGradient || groups_ > 1 || std::min({d.m, d.n, d.k}) <= 4) return;
  ThreadPool one(1);
  std::vector<float> rows;
  if (taps_ > 1) {
    rows.resize(size_t(out_channels_ * row_));
    move_weights(w, rows.data(), false, one);
    w = rows.data();
  }
  d.packed_b = true;
  gemm_ = GemmPlan::make(d);
  fixed_ = allocate(gemm_.packed_b_bytes());
  gemm_.pack_b(one, w, static_cast<float*>(fixed_.get()));
}

size_t PatchConv::workspace() const {
  int64_t weights = taps_ > 1 && !fixed_ ? floats(out_channels_ * row_) : 0;
  int64_t pixels = gathers_ ? floats(rows()) : 0;
  size_t inner = grad_w_ ? grad_w_->workspace() : gemm_.workspace_bytes();
  return size_t(weights + pixels) * sizeof(float) + inner;
}

// x [N,D...,C] <-> rows [pixels][tap][C]: gathered, or for the gradient of x scattered, with zeros
// where there is no window.
void PatchConv::move_pixels(const float* from, float* to, ThreadPool& pool) const {
  bool back = pass_ == ConvPass::kInputGradient;
  int64_t width = in_[2] * channels_;
  // stretches of a row of x that lie side by side in a row of the patches
  int64_t stretch = kernel_[2] * channels_, step = strides_[2] * channels_;
  parallel_for(pool, batch_ * in_[0] * in_[1], std::max<int64_t>(1, 16384 / width),
               [&](int64_t b, int64_t e) {
                 for (int64_t r = b; r < e; ++r) {
                   int64_t n = r / (in_[0] * in_[1]), z = r / in_[1] % in_[0], y = r % in_[1];
                   int64_t oz = z / strides_[0], kz = z % strides_[0], oy = y / strides_[1],
                           ky = y % strides_[1];
                   bool hit = kz < kernel_[0] && ky < kernel_[1] && oz < out_[0] && oy < out_[1];
                   if (back && (!hit || stretch < step || out_[2] * step < width))
                     std::fill_n(to + r * width, width, 0.0f);
                   if (!hit) continue;
                   int64_t row = ((n * out_[0] + oz) * out_[1] + oy) * out_[2];
                   int64_t at = row * row_ + (kz * kernel_[1] + ky) * stretch;
                   for (int64_t o = 0; o < out_[2]; ++o) {
                     int64_t x = r * width + o * step, p = at + o * row_;
                     std::memcpy(to + (back ? x : p), from + (back ? p : x),
                                 size_t(stretch) * sizeof(float));
                   }
                 }
               });
}

// [M][C][taps] -> [M][taps][C], or back
void PatchConv::move_weights(const float* from, float* to, bool back, ThreadPool& pool) const {
  parallel_for(pool, out_channels_, std::max<int64_t>(1, 8192 / row_), [&](int64_t b, int64_t e) {
    for (int64_t m = b; m < e; ++m)
      for (int64_t c = 0; c < channels_; ++c)
        for (int64_t t = 0; t < taps_; ++t) {
          int64_t file = m * row_ + c * taps_ + t, row = m * row_ + t * channels_ + c;
          to[back ? file : row] = from[back ? row : file];
        }
  });
}

void PatchConv::add_bias(const float* bias, float* out, ThreadPool& pool) const {
  bool back = pass_ == ConvPass::kInputGradient;
  int64_t channels = back ? channels_ : out_channels_;
  int64_t rows = back ? batch_ * in_[0] * in_[1] * in_[2] : pixels_;
  parallel_for(pool, rows, std::max<int64_t>(1, 16384 / channels), [&](int64_t b, int64_t e) {
    for (int64_t r = b; r < e; ++r)
      for (int64_t c = 0; c < channels; ++c) out[r * channels + c] += bias[c];
  });
}

void PatchConv::run(const float* a, const float* b, const float* bias, float* out, void* workspace,
                    ThreadPool& pool) const {
  auto* area = static_cast<float*>(workspace);
  float *weights = nullptr, *patches = nullptr;
  if (taps_ > 1 && !fixed_) weights = area, area += floats(out_channels_ * row_);
  if (gathers_) patches = area, area += floats(rows());
  GemmArgs g{.a = a, .b = b, .c = out, .bias = separate_bias_ ? nullptr : bias, .workspace = area};
  if (fixed_) g.b = static_cast<const float*>(fixed_.get());
  if (weights && pass_ != ConvPass::kWeightGradient) {
    move_weights(b, weights, false, pool);
    g.b = weights;
  }
  if (patches && pass_ != ConvPass::kInputGradient) {
    move_pixels(pass_ == ConvPass::kForward ? a : b, patches, pool);
    (pass_ == ConvPass::kForward ? g.a : g.b) = patches;
  }
  if (patches && pass_ == ConvPass::kInputGradient) g.c = patches;
  if (weights && pass_ == ConvPass::kWeightGradient) g.c = weights;
  if (grad_w_)
    grad_w_->run(g.a, g.b, g.c, area, pool);
  else
    gemm_.run(pool, g);
  if (patches && pass_ == ConvPass::kInputGradient) move_pixels(patches, out, pool);
  if (weights && pass_ == ConvPass::kWeightGradient) move_weights(weights, out, true, pool);
  if (separate_bias_ && bias) add_bias(bias, out, pool);
}

}  // namespace onnxtrain::simd
