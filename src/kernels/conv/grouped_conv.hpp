// Channels-last convolutions with few channels per group (depthwise: one), forward and both
// gradients, for any kernel, stride, dilation and padding in up to three dimensions.
//
// Vectors run along the channels of the result. A group's inputs are its planes: plane j holds, for
// every channel of the result, the j-th channel of its group; with one plane and one channel per
// group that is the tensor itself, otherwise rows are spread into planes before they are used, a
// vector of channels at a time. Where a group fills whole vectors, the products (not the sums) are
// those of single inputs with vectors of weights instead, and rows are copied group by group. Rows,
// channels and chunks of sums are cut by the problem, so the number of threads does not matter.
#pragma once
#include <array>
#include <vector>

#include "kernels/common/slots.hpp"
#include "kernels/conv/conv_pass.hpp"
#include "kernels/conv/conv_ref.hpp"
#include "kernels/conv/grouped_conv_simd.hpp"

namespace onnxtrain::simd {

class GroupedConv {
 public:
  // Whether it applies and is the faster way.
  static bool fits(const kernels::ConvShape& s, ConvPass pass);
  // Whether it applies because groups are single channels, and there are enough to fill vectors.
  static bool is_depthwise(const kernels::ConvShape& s);
  GroupedConv(const kernels::ConvShape& s, ConvPass pass, int threads);
  size_t workspace() const;
  // Forward: a = x, b = w; gradient of x: a = dy, b = w; gradient of w: a = dy, b = x. bias: added
  // to the channels of the result of the first two, may be null.
  void run(const float* a, const float* b, const float* bias, float* out, void* workspace,
           ThreadPool& pool);

 private:
  // One dimension: which pixel `from` of the source tap k brings to pixel `to` of the result.
  struct Axis {
    int64_t source, result, kernel, stride, dilation, pad;
    bool back;  // gradient of x: the source is dy
    bool find(int64_t to, int64_t k, int64_t* from) const;
  };
  struct Tap {
    int64_t k, from;
  };
  // Pixels of a row of the result that the same taps reach.
  struct Stretch {
    int64_t to, count;
    std::vector<Tap> taps;
  };
  // Rows [begin, end) of the result of some images, some of its channels, and the rows of the
  // source that they read.
  struct Task {
    int64_t image, images, begin, end, channel, channels, low, high;
  };

  bool dense() const {
    return pass_ != ConvPass::kWeightGradient && planes_ > 1 && repeat_ >= 8 &&
           repeat_ % lanes_ == 0;
  }
  bool staged() const { return planes_ > 1 || repeat_ > 1; }  // rows are copied before their use
  int64_t staged_pixel() const { return !staged() ? channels_ : dense() ? planes_ : lanes_; }
  int64_t plane_block(const Task& t) const;
  int64_t weight_floats() const;
  int64_t weight_at(int64_t tap, int64_t plane, int64_t c) const;
  void make_stretches();
  void make_tasks();
  void find_source(Task& t);
  void move_weights(const float* w, float* to, ThreadPool& pool) const;
  void stage_rows(const Task& t, const float* source, float* to) const;
  void run_image(const Task& t, const float* source, float* weights, const float* bias,
                 float* result, std::vector<GroupTerm>& terms) const;
  void run_task(const Task& t, const float* source, float* weights, const float* bias,
                float* result, float* area, std::vector<GroupTerm>& terms) const;
  void add_up(const float* sums, float* dw, ThreadPool& pool) const;
  // Terms of row `r` of the result (both upper dimensions) on one stretch.
  void find_terms(const Task& t, int64_t r, const Stretch& s, const float* planes, float* weights,
                  std::vector<GroupTerm>& terms) const;

  ConvPass pass_;
  int64_t batch_, groups_, out_channels_, in_channels_;
  int64_t channels_;  // of the result, or of dy for the gradient of w
  int64_t source_channels_;
  int64_t planes_, repeat_;  // channels of a group in the source, in the result
  int64_t taps_, lanes_;
  std::array<Axis, 3> axes_;
  int64_t out_step_;  // pixels between those of a stretch, in the result
  int64_t in_step_;   // in the source
  std::vector<Stretch> stretches_;
  std::vector<Task> tasks_;
  int64_t slot_floats_ = 0;
  kernels::Slots slots_;
  std::vector<std::vector<GroupTerm>> terms_;  // per slot
};

}  // namespace onnxtrain::simd
