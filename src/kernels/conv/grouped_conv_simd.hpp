// The processor-specific pieces of grouped_conv.cpp, one table per instruction set.
#pragma once
#include <cstdint>

namespace onnxtrain::simd {

// One tap of one plane: its source at the first pixel, and its weights or their sums.
struct GroupTerm {
  const float* in;
  float* w;
};

// Groups of many channels: the result has `repeat` channels per group, whole vectors; the source
// `planes`, side by side, a group's pixels `group_step` after those of the one before. `first` is
// the channel of the result at `out`.
struct GroupDense {
  int64_t repeat, planes, group_step, first;
};

// Where floats lie: vectors of channels are `in_block` and `w_block` apart, pixels `in_step` and
// `out_step`. The result's vectors lie side by side.
struct GroupSteps {
  int64_t in_step, in_block, w_block, out_step;
};

struct GroupedConvKernels {
  int64_t lanes;  // of a vector
  // out[j][c] = bias[c] + sum over terms of in[j][c] * w[c]; bias may be null.
  void (*pixels)(const GroupTerm* terms, int64_t count, int64_t pixels, int64_t channels,
                 const GroupSteps& steps, const float* bias, float* out);
  // w[c] += sum over j of in[j][c] * dy[j][c], for every term; out_step is that of dy.
  void (*sums)(const GroupTerm* terms, int64_t count, int64_t pixels, int64_t channels,
               const GroupSteps& steps, const float* dy);
  // `pixels` for groups of many channels: in[j][c] * w[c] becomes the sum over planes i of
  // in[j][i] * w[i][c].
  void (*dense_pixels)(const GroupTerm* terms, int64_t count, int64_t pixels, int64_t channels,
                       const GroupSteps& steps, const GroupDense& dense, const float* bias,
                       float* out);
  // Plane j of `planes`: to[c / lanes * to_block + j * to_plane + p * lanes + c % lanes] =
  // from[p][c / repeat * planes + j], c < channels, and zeros up to a whole vector. A pixel of the
  // source has `from_step` floats.
  void (*spread)(const float* from, int64_t from_step, int64_t pixels, int64_t channels,
                 int64_t repeat, int64_t planes, float* to, int64_t to_plane, int64_t to_block);
  // to[g * to_group + p * planes + j] = from[p][g * planes + j]
  void (*regroup)(const float* from, int64_t pixels, int64_t groups, int64_t planes, float* to,
                  int64_t to_group);
};

const GroupedConvKernels& grouped_conv_kernels();

}  // namespace onnxtrain::simd
