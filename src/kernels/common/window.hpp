// A sliding window over the spatial dimensions of one plane: the geometry shared by convolutions
// and pools, and loops over it that need no test for the border in their innermost part.
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "core/shape.hpp"

namespace onnxtrain::kernels {

inline constexpr size_t kMaxSpatial = 16;

struct Window {
  std::vector<int64_t> in, out, kernel, strides, dilations, pads_begin, pads_end;

  size_t dims() const { return in.size(); }
  int64_t in_size() const { return num_elements(in); }
  int64_t out_size() const { return num_elements(out); }
  int64_t taps() const { return num_elements(kernel); }

  // Output positions [first, last) of dimension d whose tap k lies inside the input.
  int64_t first(size_t d, int64_t k) const {
    int64_t need = pads_begin[d] - k * dilations[d];
    return need <= 0 ? 0 : std::min(out[d], (need + strides[d] - 1) / strides[d]);
  }
  int64_t last(size_t d, int64_t k) const {
    int64_t room = in[d] - 1 + pads_begin[d] - k * dilations[d];
    return room < 0 ? 0 : std::min(out[d], room / strides[d] + 1);
  }

  // Calls f(tap number, output offset, input offset, count) for every run along the last dimension:
  // element j of the run pairs output[o + j] with input[i + j * strides.back()]. Taps in row-major
  // order; taps that never touch the input are skipped.
  template <class F>
  void for_runs(F&& f) const {
    std::array<int64_t, kMaxSpatial> tap{}, lo{}, hi{};
    taps_from(0, 0, tap, lo, hi, f);
  }

 private:
  using Index = std::array<int64_t, kMaxSpatial>;

  template <class F>
  void taps_from(size_t d, int64_t number, Index& tap, Index& lo, Index& hi, F& f) const {
    if (d == dims()) return runs(number, tap, lo, hi, f);
    // the taps that can touch the input at all
    int64_t begin = 0, end = kernel[d], reach = (out[d] - 1) * strides[d];
    if (pads_begin[d] > reach) begin = (pads_begin[d] - reach + dilations[d] - 1) / dilations[d];
    end = std::min(end, (in[d] - 1 + pads_begin[d]) / dilations[d] + 1);
    for (int64_t k = begin; k < end; ++k) {
      lo[d] = first(d, k);
      hi[d] = last(d, k);
      if (lo[d] >= hi[d]) continue;
      tap[d] = k;
      taps_from(d + 1, number * kernel[d] + k, tap, lo, hi, f);
    }
  }

  template <class F>
  void runs(int64_t number, const Index& tap, const Index& lo, const Index& hi, F& f) const {
    size_t last_dim = dims() - 1;
    Index at = lo;
    int64_t count = hi[last_dim] - lo[last_dim];
    for (;;) {
      int64_t o = 0, i = 0;
      for (size_t d = 0; d <= last_dim; ++d) {
        o = o * out[d] + at[d];
        i = i * in[d] + at[d] * strides[d] + tap[d] * dilations[d] - pads_begin[d];
      }
      f(number, o, i, count);
      size_t d = last_dim;
      for (;;) {
        if (d == 0) return;
        --d;
        if (++at[d] < hi[d]) break;
        at[d] = lo[d];
      }
    }
  }
};

}  // namespace onnxtrain::kernels
