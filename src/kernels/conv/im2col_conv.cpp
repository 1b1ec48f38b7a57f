// Columns and their GEMMs.
#include "kernels/conv/im2col_conv.hpp"

#include <algorithm>

namespace onnxtrain::simd {

namespace {

constexpr int64_t kGrain = 8192;       // floats moved by a task
constexpr int64_t kColumns = 1 << 18;  // floats of a stretch's columns: what a small cache holds
constexpr int64_t kPixels = 64;        // no stretch is cut shorter

int64_t floats(int64_t n) { return (n + 15) / 16 * 16; }

}  // namespace

// Measured: 512 -> 512, 3x3 on 16 pixels takes half the time, on 64 pixels nine tenths; with fewer
// weights per pixel bringing them in order costs less than the columns.
bool Im2ColConv::fits(const kernels::ConvShape& s) {
  constexpr int64_t kWeights = 8192;  // at least, per pixel
  const kernels::Window& w = s.window;
  int64_t pixels = s.batch * w.out_size(), weights = s.in_channels * s.out_channels * w.taps();
  return s.groups == 1 && w.taps() > 1 && pixels <= kPixels &&
         s.batch * w.in_size() <= 16 * kPixels && weights >= kWeights * pixels;
}

Im2ColConv::Im2ColConv(const kernels::ConvShape& s, ConvPass pass, bool bias, bool channels_last)
    : pass_(pass),
      last_(channels_last),
      bias_in_gemm_(pass == ConvPass::kForward && channels_last && s.groups == 1),
      groups_(s.groups),
      channels_(s.in_channels),
      out_channels_(s.out_channels),
      taps_(s.window.taps()),
      row_(channels_ * taps_),
      in_pixels_(s.window.in_size()),
      out_pixels_(s.window.out_size()),
      batch_(s.batch),
      source_(size_t(out_pixels_ * taps_), -1) {
  int64_t step = s.window.strides.back();
  s.window.for_runs([&](int64_t tap, int64_t o, int64_t i, int64_t count) {
    for (int64_t j = 0; j < count; ++j) source_[size_t((o + j) * taps_ + tap)] = i + j * step;
  });
  if (pass == ConvPass::kInputGradient) find_uses();
  cut();
  sums_ = (pass == ConvPass::kForward && bias && !bias_in_gemm_) ||
          (pass == ConvPass::kWeightGradient && stretches_.size() > 1);
  for (const Stretch& t : stretches_) gemms_[t.plan] = GemmPlan::make(gemm(t.end - t.begin, bias));
}

// Whole stretches are of one length, the rest (of the batch, or of every image where the pixels of
// different images do not lie together) of another.
void Im2ColConv::cut() {
  int64_t together = last_ ? batch_ * out_pixels_ : out_pixels_;
  longest_ = std::min(together, std::max(kPixels, kColumns / row_));
  for (int64_t from = 0; from < batch_ * out_pixels_; from += together)
    for (int64_t at = 0; at < together; at += longest_) {
      int64_t count = std::min(longest_, together - at);
      stretches_.push_back({from + at, from + at + count, count < longest_ ? 1u : 0u});
    }
}

// The places of every input pixel in the source list, in their order.
void Im2ColConv::find_uses() {
  first_.assign(size_t(in_pixels_ + 1), 0);
  for (int64_t i : source_)
    if (i >= 0) ++first_[size_t(i + 1)];
  for (size_t i = 0; i < size_t(in_pixels_); ++i) first_[i + 1] += first_[i];
  uses_.resize(size_t(first_.back()));
  std::vector<int64_t> next(first_.begin(), first_.end() - 1);
  for (size_t at = 0; at < source_.size(); ++at)
    if (source_[at] >= 0) uses_[size_t(next[size_t(source_[at])]++)] = int64_t(at);
}

// Of one group: columns [pixels][in], weights [out][in], results or their gradient y.
GemmDesc Im2ColConv::gemm(int64_t pixels, bool bias) const {
  const int64_t in = row_ / groups_, out = out_channels_ / groups_;
  const int64_t y_ld = last_ ? out_channels_ : out_pixels_, y_step = last_ ? out : out * y_ld;
  GemmDesc d;
  d.batch = groups_;
  d.beta = sums_ ? 1.0f : 0.0f;
  if (pass_ == ConvPass::kForward && last_) {
    d.m = pixels, d.n = out, d.k = in;
    d.trans_b = true;
    d.lda = row_, d.ldb = in, d.ldc = y_ld;
    d.stride_a = in, d.stride_b = out * in, d.stride_c = y_step;
    if (bias && bias_in_gemm_) d.bias = BiasAxis::kColumn;
  } else if (pass_ == ConvPass::kForward) {
    d.m = out, d.n = pixels, d.k = in;
    d.trans_b = true;
    d.lda = in, d.ldb = row_, d.ldc = y_ld;
    d.stride_a = out * in, d.stride_b = in, d.stride_c = y_step;
  } else if (pass_ == ConvPass::kInputGradient) {
    d.m = pixels, d.n = in, d.k = out;
    d.trans_a = !last_;
    d.lda = y_ld, d.ldb = in, d.ldc = row_;
    d.stride_a = y_step, d.stride_b = out * in, d.stride_c = in;
  } else {
    d.m = out, d.n = in, d.k = pixels;
    d.trans_a = last_;
    d.lda = y_ld, d.ldb = row_, d.ldc = in;
    d.stride_a = y_step, d.stride_b = in, d.stride_c = out * in;
  }
  return d;
}

size_t Im2ColConv::workspace() const {
  size_t inner = std::max(gemms_[0].workspace_bytes(), gemms_[1].workspace_bytes());
  return size_t(floats(longest_ * row_) + floats(channels_)) * sizeof(float) + inner;
}

const float* Im2ColConv::y_at(const float* y, int64_t pixel) const {
  if (last_) return y + pixel * out_channels_;
  return y + pixel / out_pixels_ * out_channels_ * out_pixels_ + pixel % out_pixels_;
}

// What the GEMMs are added to: the bias of every channel, or zeros.
void Im2ColConv::fill(const float* bias, float* out, ThreadPool& pool) const {
  const bool forward = pass_ == ConvPass::kForward;
  const int64_t channels = forward ? out_channels_ : channels_,
                pixels = forward ? out_pixels_ : in_pixels_, n = last_ ? pixels : channels,
                length = last_ ? channels : pixels;
  parallel_for(pool, batch_ * n, std::max<int64_t>(1, kGrain / length),
               [&](int64_t begin, int64_t end) {
                 for (int64_t i = begin; i < end; ++i) {
                   float* to = out + i * length;
                   if (bias && last_)
                     std::copy_n(bias, length, to);
                   else
                     std::fill_n(to, length, bias ? bias[i % channels] : 0.0f);
                 }
               });
}

void Im2ColConv::gather(const Stretch& s, const float* x, const float* zeros, float* columns,
                        ThreadPool& pool) const {
  // an image's pixels and channels are so far apart
  const int64_t pixel = last_ ? channels_ : 1, channel = last_ ? 1 : in_pixels_;
  parallel_for(pool, s.end - s.begin, std::max<int64_t>(1, kGrain / row_),
               [&](int64_t begin, int64_t end) {
                 for (int64_t p = s.begin + begin; p < s.begin + end; ++p) {
                   const float* image = x + p / out_pixels_ * in_pixels_ * channels_;
                   for (int64_t t = 0; t < taps_; ++t) {
                     int64_t i = source_[size_t(p % out_pixels_ * taps_ + t)];
                     const float* from = i < 0 ? zeros : image + i * pixel;
                     const int64_t step = i < 0 ? 0 : channel;
                     float* to = columns + (p - s.begin) * row_ + t;
                     for (int64_t c = 0; c < channels_; ++c) to[c * taps_] = from[c * step];
                   }
                 }
               });
}

// Every input pixel adds its places in the columns, in their order.
void Im2ColConv::scatter(const Stretch& s, const float* columns, float* dx,
                         ThreadPool& pool) const {
  const int64_t pixel = last_ ? channels_ : 1, channel = last_ ? 1 : in_pixels_;
  const int64_t low = s.begin / out_pixels_ * in_pixels_,
                high = ((s.end - 1) / out_pixels_ + 1) * in_pixels_;
  parallel_for(
      pool, high - low, std::max<int64_t>(1, kGrain / row_), [&](int64_t begin, int64_t end) {
        for (int64_t p = low + begin; p < low + end; ++p) {
          const int64_t image = p / in_pixels_, i = p % in_pixels_;
          const int64_t before = image * out_pixels_ - s.begin;  // of its first column
          float* to = dx + image * in_pixels_ * channels_ + i * pixel;
          for (int64_t u = first_[size_t(i)]; u < first_[size_t(i + 1)]; ++u) {
            const int64_t at = before + uses_[size_t(u)] / taps_, t = uses_[size_t(u)] % taps_;
            if (at < 0 || at >= s.end - s.begin) continue;
            const float* from = columns + at * row_ + t;
            for (int64_t c = 0; c < channels_; ++c) to[c * channel] += from[c * taps_];
          }
        }
      });
}

void Im2ColConv::run(const float* a, const float* b, const float* bias, float* out, void* workspace,
                     ThreadPool& pool) const {
  float *columns = static_cast<float*>(workspace), *zeros = columns + floats(longest_ * row_),
        *rest = zeros + floats(channels_);
  std::fill_n(zeros, channels_, 0.0f);
  const bool forward = pass_ == ConvPass::kForward, back = pass_ == ConvPass::kInputGradient;
  if (back || (forward && sums_))
    fill(bias, out, pool);
  else if (sums_)
    std::fill_n(out, out_channels_ * row_ / groups_, 0.0f);
  for (const Stretch& s : stretches_) {
    GemmArgs g{.a = a, .b = b, .c = out, .bias = nullptr, .workspace = rest};
    if (forward) {
      gather(s, a, zeros, columns, pool);
      g.a = last_ ? columns : b, g.b = last_ ? b : columns;
      g.c = const_cast<float*>(y_at(out, s.begin));
      if (bias_in_gemm_) g.bias = bias;
    } else {
      g.a = y_at(a, s.begin);
      if (back) {
        g.c = columns;
      } else {
        gather(s, b, zeros, columns, pool);
        g.b = columns;
      }
    }
    gemms_[s.plan].run(pool, g);
    if (back) scatter(s, columns, out, pool);
  }
}

}  // namespace onnxtrain::simd
