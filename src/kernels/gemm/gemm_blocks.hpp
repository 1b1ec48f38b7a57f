// Limits of the blocking that the planner and the loops of the GEMM share.
#pragma once
#include <cstdint>

namespace onnxtrain::simd {

constexpr int64_t kMaxBlockK = 384;  // a column panel of B stays in the first-level cache
constexpr int64_t kMaxBlockM = 168;  // a packed block of A stays in the second-level cache
constexpr int64_t kMaxNr = 32;
constexpr int64_t kScratchA = kMaxBlockM * 2 * kMaxBlockK;  // floats; tiles are padded
constexpr int64_t kNarrowK = 1024;  // of a few columns of B beside the rows of A
constexpr int64_t kGroupN = 128;    // columns of B packed together when it is packed beforehand

}  // namespace onnxtrain::simd
