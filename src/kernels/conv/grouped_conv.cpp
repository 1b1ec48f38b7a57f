// Geometry, planes and tasks.
#include "kernels/conv/grouped_conv.hpp"

#include <algorithm>

namespace onnxtrain::simd {

namespace {

using kernels::ConvShape;

int64_t up(int64_t a, int64_t b) { return (a + b - 1) / b; }
int64_t floats(int64_t n) { return up(n, 16) * 16; }
int64_t at(const std::vector<int64_t>& v, size_t d, int64_t with) {
  return d + v.size() < 3 ? with : v[d + v.size() - 3];
}

}  // namespace

bool GroupedConv::fits(const ConvShape& s, ConvPass pass) {
  const kernels::Window& w = s.window;
  if (s.groups < 2 || w.dims() > 3) return false;
  int64_t in = s.in_per_group(), out = s.out_per_group();
  bool back = pass == ConvPass::kInputGradient, sums = pass == ConvPass::kWeightGradient;
  if ((back ? s.in_channels : s.out_channels) < 8) return false;
  if (in == 1 && out == 1) {
    // oneDNN is as fast on ordinary images, but for the weights of large kernels
    bool dilated =
        std::any_of(w.dilations.begin(), w.dilations.end(), [](auto d) { return d > 1; });
    return w.dims() != 2 || dilated || (sums && w.taps() > 9);
  }
  if (w.dims() > 2) return false;
  // Measured beside oneDNN, whose gradients are slow with fewer than 4 channels per group, that of
  // the weights with three; forward it is slow with 8, and back with a stride.
  const int64_t lanes = grouped_conv_kernels().lanes;
  const bool strided =
      std::any_of(w.strides.begin(), w.strides.end(), [](auto v) { return v > 1; });
  if (back && strided && in == 16 && out == 16) return true;
  if (back) return (out <= 8 && in < 4) || (out <= 4 && in == 4);
  const bool long_rows = w.out.back() >= 24 && w.taps() <= 9;
  if (sums) return in == 1 || in == 3 || (in < 8 && out < 3) || (in == 4 && out == 4 && long_rows);
  return in < 8 || (in == 8 && out == 8 && lanes <= 8);
}

bool GroupedConv::is_depthwise(const ConvShape& s) {
  return s.groups >= 8 && s.in_per_group() == 1 && s.out_per_group() == 1 && s.window.dims() <= 3;
}

bool GroupedConv::Axis::find(int64_t to, int64_t k, int64_t* from) const {
  int64_t v = back ? to + pad - k * dilation : to * stride - pad + k * dilation;
  if (v < 0 || (back && v % stride != 0)) return false;
  *from = back ? v / stride : v;
  return *from < source;
}

GroupedConv::GroupedConv(const ConvShape& s, ConvPass pass, int threads)
    : pass_(pass),
      batch_(s.batch),
      groups_(s.groups),
      out_channels_(s.out_channels),
      in_channels_(s.in_channels),
      channels_(pass == ConvPass::kInputGradient ? s.in_channels : s.out_channels),
      source_channels_(pass == ConvPass::kInputGradient ? s.out_channels : s.in_channels),
      planes_(source_channels_ / groups_),
      repeat_(channels_ / groups_),
      taps_(s.window.taps()),
      lanes_(grouped_conv_kernels().lanes),
      slots_(std::max(1, threads)) {
  const kernels::Window& w = s.window;
  bool back = pass == ConvPass::kInputGradient;
  for (size_t d = 0; d < 3; ++d) {
    int64_t x = at(w.in, d, 1), y = at(w.out, d, 1);
    axes_[d] = {back ? y : x,
                back ? x : y,
                at(w.kernel, d, 1),
                at(w.strides, d, 1),
                at(w.dilations, d, 1),
                at(w.pads_begin, d, 0),
                back};
  }
  out_step_ = back ? axes_[2].stride : 1;
  in_step_ = back ? 1 : axes_[2].stride;
  make_stretches();
  make_tasks();
  terms_.resize(size_t(slots_.count()));
  for (auto& list : terms_) list.reserve(size_t(taps_ * planes_));
}

void GroupedConv::make_stretches() {
  const Axis& x = axes_[2];
  for (int64_t phase = 0; phase < std::min(out_step_, x.result); ++phase)
    for (int64_t to = phase; to < x.result; to += out_step_) {
      std::vector<Tap> taps;
      for (int64_t k = 0; k < x.kernel; ++k)
        if (int64_t from; x.find(to, k, &from)) taps.push_back({k, from});
      if (x.back) std::reverse(taps.begin(), taps.end());  // in the order of the source
      bool same = to != phase && stretches_.back().taps.size() == taps.size();
      for (size_t i = 0; same && i < taps.size(); ++i)
        same = stretches_.back().taps[i].k == taps[i].k;
      if (same)
        ++stretches_.back().count;
      else
        stretches_.push_back({to, 1, std::move(taps)});
    }
}

void GroupedConv::make_tasks() {
  int64_t rows = axes_[0].result * axes_[1].result;
  double work = double(batch_ * rows * axes_[2].result) * double(channels_ * taps_ * planes_);
  // about 16 tasks of at least 100 microseconds: images, rows, then channels
  int64_t want = std::clamp<int64_t>(int64_t(work / 1e6), 1, 16);
  int64_t images = up(batch_, want), chunks = up(batch_, images);
  int64_t blocks = std::clamp<int64_t>(up(want, chunks), 1, std::max<int64_t>(1, rows / 4));
  int64_t parts = std::clamp<int64_t>(want / (chunks * blocks), 1, channels_ / 32 + 1);
  if (staged()) parts = 1;
  for (int64_t n = 0; n < chunks; ++n)
    for (int64_t b = 0; b < blocks; ++b)
      for (int64_t p = 0; p < parts; ++p) {
        Task t{};
        t.image = n * batch_ / chunks, t.images = (n + 1) * batch_ / chunks - t.image;
        t.begin = b * rows / blocks, t.end = (b + 1) * rows / blocks;
        auto cut = [&](int64_t k) {
          return k == parts ? channels_ : k * channels_ / parts / 16 * 16;
        };
        t.channel = cut(p), t.channels = cut(p + 1) - t.channel;  // whole vectors
        if (t.channels == 0) continue;
        if (staged()) find_source(t);
        tasks_.push_back(t);
      }
}

void GroupedConv::find_source(Task& t) {
  const Axis& a = axes_[1];
  t.low = a.source;
  for (int64_t r = t.begin; r < t.end; ++r)
    for (int64_t k = 0; k < a.kernel; ++k)
      if (int64_t y; a.find(r, k, &y)) t.low = std::min(t.low, y), t.high = std::max(t.high, y + 1);
  t.low = std::min(t.low, t.high);
  const int64_t blocks = dense() ? groups_ : up(channels_, lanes_);
  slot_floats_ = std::max(slot_floats_, floats(blocks * plane_block(t)));
}

// Floats of one vector of channels, or of one group, all planes, in the source of a task.
int64_t GroupedConv::plane_block(const Task& t) const {
  return planes_ * (t.high - t.low) * axes_[2].source * (dense() ? 1 : lanes_);
}

// Weights and their sums lie as [vector of channels][tap][plane][lane].
int64_t GroupedConv::weight_floats() const {
  return floats(up(channels_, lanes_) * taps_ * planes_ * lanes_);
}
int64_t GroupedConv::weight_at(int64_t tap, int64_t plane, int64_t c) const {
  return ((c / lanes_ * taps_ + tap) * planes_ + plane) * lanes_ + c % lanes_;
}

size_t GroupedConv::workspace() const {
  int64_t weights = weight_floats();
  if (pass_ == ConvPass::kWeightGradient) weights *= int64_t(tasks_.size());
  return size_t(weights + slots_.count() * slot_floats_) * sizeof(float);
}

// From [M][C/group][taps]
void GroupedConv::move_weights(const float* w, float* to, ThreadPool& pool) const {
  int64_t in = in_channels_ / groups_, out = out_channels_ / groups_;
  bool back = pass_ == ConvPass::kInputGradient;
  parallel_for(pool, channels_, std::max<int64_t>(16, 8192 / (taps_ * planes_)),
               [&](int64_t b, int64_t e) {
                 for (int64_t t = 0; t < taps_; ++t)
                   for (int64_t j = 0; j < planes_; ++j)
                     for (int64_t c = b; c < e; ++c) {
                       int64_t m = back ? c / in * out + j : c, k = back ? c % in : j;
                       to[weight_at(t, j, c)] = w[(m * in + k) * taps_ + t];
                     }
               });
}

// to [vector of channels][plane][row][pixel][lane], or [group][row][pixel][plane]
void GroupedConv::stage_rows(const Task& t, const float* source, float* to) const {
  const GroupedConvKernels& k = grouped_conv_kernels();
  int64_t pixels = (t.high - t.low) * axes_[2].source;
  const float* from = source + t.low * axes_[2].source * source_channels_;
  if (dense())
    k.regroup(from, pixels, groups_, planes_, to, plane_block(t));
  else
    k.spread(from, source_channels_, pixels, channels_, repeat_, planes_, to, pixels * lanes_,
             plane_block(t));
}

void GroupedConv::find_terms(const Task& t, int64_t r, const Stretch& s, const float* planes,
                             float* weights, std::vector<GroupTerm>& terms) const {
  const int64_t pixel = staged_pixel(), kinds = dense() ? 1 : planes_;
  int64_t width = axes_[2].source * pixel, low = staged() ? t.low : 0;
  int64_t plane = (t.high - t.low) * width, first = staged() ? 0 : t.channel;
  terms.clear();
  for (int64_t kz = 0; kz < axes_[0].kernel; ++kz) {
    int64_t z;
    if (!axes_[0].find(r / axes_[1].result, kz, &z)) continue;
    for (int64_t ky = 0; ky < axes_[1].kernel; ++ky) {
      int64_t y;
      if (!axes_[1].find(r % axes_[1].result, ky, &y)) continue;
      const float* row = planes + (z * axes_[1].source + y - low) * width + first;
      for (int64_t j = 0; j < kinds; ++j)
        for (const Tap& x : s.taps) {
          int64_t tap = (kz * axes_[1].kernel + ky) * axes_[2].kernel + x.k;
          terms.push_back(
              {row + j * plane + x.from * pixel, weights + weight_at(tap, j, t.channel)});
        }
    }
  }
}

// One image. weights: those of the product, or the sums that are added to.
void GroupedConv::run_image(const Task& t, const float* source, float* weights, const float* bias,
                            float* result, std::vector<GroupTerm>& terms) const {
  const GroupedConvKernels& k = grouped_conv_kernels();
  const bool sums = pass_ == ConvPass::kWeightGradient;
  const GroupSteps steps = {in_step_ * staged_pixel(), staged() ? plane_block(t) : lanes_,
                            taps_ * planes_ * lanes_, sums ? channels_ : out_step_ * channels_};
  const GroupDense shape = {repeat_, planes_, plane_block(t), t.channel};
  for (int64_t r = t.begin; r < t.end; ++r)
    for (const Stretch& s : stretches_) {
      find_terms(t, r, s, source, weights, terms);
      float* to = result + (r * axes_[2].result + s.to) * channels_ + t.channel;
      auto count = int64_t(terms.size());
      const float* from = bias ? bias + t.channel : nullptr;
      if (dense())
        k.dense_pixels(terms.data(), count, s.count, t.channels, steps, shape, from, to);
      else if (sums)
        k.sums(terms.data(), count, s.count, t.channels, steps, to);
      else
        k.pixels(terms.data(), count, s.count, t.channels, steps, from, to);
    }
}

void GroupedConv::run_task(const Task& t, const float* source, float* weights, const float* bias,
                           float* result, float* area, std::vector<GroupTerm>& terms) const {
  int64_t in = axes_[0].source * axes_[1].source * axes_[2].source * source_channels_;
  int64_t out = axes_[0].result * axes_[1].result * axes_[2].result * channels_;
  for (int64_t n = t.image; n < t.image + t.images; ++n) {
    if (staged()) stage_rows(t, source + n * in, area);
    run_image(t, staged() ? area : source + n * in, weights, bias, result + n * out, terms);
  }
}

// The sums of the tasks, in their order, to [M][C/group][taps]
void GroupedConv::add_up(const float* sums, float* dw, ThreadPool& pool) const {
  const int64_t size = weight_floats(), block = taps_ * planes_ * lanes_;
  parallel_for(pool, up(channels_, lanes_), std::max<int64_t>(1, 4096 / block),
               [&](int64_t b, int64_t e) {
                 constexpr int64_t kPart = 512;
                 double part[kPart];
                 for (int64_t i = b * block; i < e * block; i += kPart) {
                   const int64_t n = std::min(kPart, e * block - i);
                   std::fill_n(part, n, 0.0);
                   for (size_t t = 0; t < tasks_.size(); ++t) {
                     const float* from = sums + int64_t(t) * size + i;
                     for (int64_t k = 0; k < n; ++k) part[k] += double(from[k]);
                   }
                   for (int64_t k = 0; k < n; ++k) {
                     const int64_t at = i + k, c = at / block * lanes_ + at % lanes_;
                     const int64_t j = at / lanes_ % planes_, tap = at / lanes_ / planes_ % taps_;
                     if (c < channels_) dw[(c * planes_ + j) * taps_ + tap] = float(part[k]);
                   }
                 }
               });
}

void GroupedConv::run(const float* a, const float* b, const float* bias, float* out,
                      void* workspace, ThreadPool& pool) {
  bool sums = pass_ == ConvPass::kWeightGradient;
  int64_t size = weight_floats();
  auto* weights = static_cast<float*>(workspace);
  float* slots = weights + size * (sums ? int64_t(tasks_.size()) : 1);
  if (!sums) move_weights(b, weights, pool);
  pool.run(int64_t(tasks_.size()), [&](int64_t n) {
    int slot = slots_.take();
    float* area = slots + slot * slot_floats_;
    std::vector<GroupTerm>& terms = terms_[size_t(slot)];
    const Task& t = tasks_[size_t(n)];
    if (sums) {
      std::fill_n(weights + n * size, size, 0.0f);
      run_task(t, b, weights + n * size, nullptr, const_cast<float*>(a), area, terms);
    } else {
      run_task(t, a, weights, bias, out, area, terms);
    }
    slots_.give_back(slot);
  });
  if (sums) add_up(weights, out, pool);
}

}  // namespace onnxtrain::simd
