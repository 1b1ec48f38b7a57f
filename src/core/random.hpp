// Counter-based random numbers (Philox 4x32-10): a pure function of (seed, stream, step, index),
// so forward and backward see the same mask and a resumed run continues exactly (ruling G8).
// Also numpy's legacy MT19937 stream, which four tests of the ONNX suite define Dropout by.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace onnxtrain {

// The bare generator, as in Random123.
std::array<uint32_t, 4> philox_block(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

// Four 32-bit words for counter value `index`.
std::array<uint32_t, 4> philox(uint64_t seed, uint64_t stream, uint64_t step, uint64_t index);

// Uniform in [0,1) with 24 bits, element i of the stream: word i%4 of counter i/4.
void philox_uniform(uint64_t seed, uint64_t stream, uint64_t step, uint64_t first, int64_t n,
                    float* out);
// Standard normal (Box-Muller over the same words).
void philox_normal(uint64_t seed, uint64_t stream, uint64_t step, uint64_t first, int64_t n,
                   float* out);

class Mt19937 {  // numpy.random.RandomState(seed)
 public:
  explicit Mt19937(uint32_t seed);
  double uniform();  // random_sample(): 53 bits
  double normal();   // legacy gauss
 private:
  uint32_t next();
  uint32_t state_[624];
  int pos_ = 624;
  bool has_gauss_ = false;
  double gauss_ = 0;
};

// A permutation of 0..n-1 as a function of (seed, epoch).
std::vector<int64_t> permutation(int64_t n, uint64_t seed, uint64_t epoch);

// XXH64, for checksums and cache keys (not against an adversary).
uint64_t hash64(const void* data, size_t bytes, uint64_t seed = 0);
// The same over pieces.
class Hash64 {
 public:
  explicit Hash64(uint64_t seed = 0);
  void add(const void* data, size_t bytes);
  uint64_t value() const;

 private:
  void stripe(const unsigned char* p);
  uint64_t seed_, acc_[4], total_ = 0;
  size_t held_ = 0;
  unsigned char buffer_[32] = {};
};

}  // namespace onnxtrain
