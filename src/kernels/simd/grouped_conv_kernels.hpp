// The processor-specific pieces of grouped_conv.cpp, one table per instruction set.
#pragma once
#include <cstdint>

namespace onnxtrain::simd {

// One tap of one plane: its source at the first pixel, and its weights or their sums; one float per
// channel.
struct GroupTerm {
  const float* in;
  float* w;
};

struct GroupedConvKernels {
  // out[j][c] = bias[c] + sum over terms of in[j][c] * w[c]; pixels are in_step and out_step floats
  // apart; bias may be null.
  void (*pixels)(const GroupTerm* terms, int64_t count, int64_t pixels, int64_t in_step,
                 int64_t channels, const float* bias, float* out, int64_t out_step);
  // w[c] += sum over j of in[j][c] * dy[j][c], for every term.
  void (*sums)(const GroupTerm* terms, int64_t count, int64_t pixels, int64_t in_step,
               int64_t channels, const float* dy, int64_t dy_step);
  // to[p][c] = from[p][c / repeat * step], c < channels; `room` floats may be read from every
  // pixel.
  void (*spread)(const float* from, int64_t from_step, int64_t room, int64_t pixels,
                 int64_t channels, int64_t repeat, int64_t step, float* to);
};

const GroupedConvKernels& grouped_conv_kernels();

}  // namespace onnxtrain::simd
