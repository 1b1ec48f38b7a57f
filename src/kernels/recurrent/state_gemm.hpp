// GEMMs of a few rows with weights that are used many times, computed in groups of hidden units
// with all gates of a unit together, so that a cell can follow while they are in the cache:
//   z[row, gate, unit] = sum over k of a[row, k] * B[k, gate, unit]
#pragma once
#include <cstddef>
#include <cstdint>

namespace onnxtrain::simd {

struct GemmKernels;

class StateGemm {
 public:
  StateGemm() = default;
  // trans: B's column (gate, unit) is row gate*units + unit of the weights, contiguous in k;
  // otherwise row k of the weights holds all columns. ld: elements between rows of the weights.
  StateGemm(int64_t rows, int64_t gates, int64_t units, int64_t k, bool trans, int64_t ld);

  int64_t group() const { return group_; }    // units computed together
  int64_t groups() const { return groups_; }  // the last one may be part empty
  size_t packed_bytes() const;
  // Packs groups [begin, end).
  void pack(const float* weights, int64_t begin, int64_t end, float* packed) const;
  // z [rows, gates, group()] of one group; add: to what is in z. The units beyond the last are 0.
  void run(const float* a, int64_t lda, int64_t rows, const float* packed, int64_t group, float* z,
           bool add = false) const;

 private:
  const GemmKernels* kernels_ = nullptr;
  int64_t gates_ = 0, units_ = 0, k_ = 0, ld_ = 0;
  bool trans_ = false, flat_ = false;
  int64_t panel_ = 0, group_ = 0, groups_ = 0;  // columns of a panel; units of a group
};

}  // namespace onnxtrain::simd
