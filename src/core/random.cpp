// Philox 4x32-10, numpy's MT19937, permutations and XXH64.
#include "core/random.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <numbers>
#include <utility>

namespace onnxtrain {
namespace {

// Finaliser of splitmix64: a bijection in which every input bit reaches every output bit.
uint64_t mix64(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

std::array<uint32_t, 4> block(uint64_t seed, uint64_t high, uint64_t index) {
  return philox_block(
      {uint32_t(index), uint32_t(index >> 32), uint32_t(high), uint32_t(high >> 32)},
      {uint32_t(seed), uint32_t(seed >> 32)});
}

constexpr uint64_t kPermutationStream = 0x7065726D75746174u;  // "permutat"

}  // namespace

// Stream and step share the counter's upper half; for one stream the map is one-to-one in step.
// Also for the vector form in kernels/random/philox_simd.cpp.
uint64_t philox_counter_high(uint64_t stream, uint64_t step);
uint64_t philox_counter_high(uint64_t stream, uint64_t step) { return mix64(mix64(stream) ^ step); }

std::array<uint32_t, 4> philox_block(std::array<uint32_t, 4> c, std::array<uint32_t, 2> k) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = uint64_t(0xD2511F53u) * c[0], p1 = uint64_t(0xCD9E8D57u) * c[2];
    c = {uint32_t(p1 >> 32) ^ c[1] ^ k[0], uint32_t(p1), uint32_t(p0 >> 32) ^ c[3] ^ k[1],
         uint32_t(p0)};
    k[0] += 0x9E3779B9u;
    k[1] += 0xBB67AE85u;
  }
  return c;
}

std::array<uint32_t, 4> philox(uint64_t seed, uint64_t stream, uint64_t step, uint64_t index) {
  return block(seed, philox_counter_high(stream, step), index);
}

namespace {

// out[k] = number(words, j) for the numbers first, first + 1, ... of a stream: number i is made of
// the block i / 4, where it is the j-th.
template <class F>
void each_number(uint64_t seed, uint64_t stream, uint64_t step, uint64_t first, int64_t n,
                 float* out, F&& number) {
  const uint64_t high = philox_counter_high(stream, step);
  for (int64_t done = 0; done < n;) {
    const uint64_t i = first + uint64_t(done);
    const std::array<uint32_t, 4> w = block(seed, high, i / 4);
    for (size_t j = i % 4; j < 4 && done < n; ++j, ++done) out[done] = number(w, j);
  }
}

}  // namespace

void philox_uniform(uint64_t seed, uint64_t stream, uint64_t step, uint64_t first, int64_t n,
                    float* out) {
  each_number(seed, stream, step, first, n, out, [](const std::array<uint32_t, 4>& w, size_t j) {
    return float(w[j] >> 8) * 0x1p-24f;
  });
}

void philox_normal(uint64_t seed, uint64_t stream, uint64_t step, uint64_t first, int64_t n,
                   float* out) {
  each_number(seed, stream, step, first, n, out, [](const std::array<uint32_t, 4>& w, size_t j) {
    const double u = (double(w[j & 2]) + 1) * 0x1p-32;  // (0,1]: the logarithm is finite
    const double angle = 2 * std::numbers::pi * 0x1p-32 * double(w[(j & 2) + 1]);
    const double radius = std::sqrt(-2 * std::log(u));
    return float(radius * (j % 2 == 0 ? std::cos(angle) : std::sin(angle)));
  });
}

Mt19937::Mt19937(uint32_t seed) {
  for (uint32_t i = 0; i < 624; ++i) {
    state_[i] = seed;
    seed = 1812433253u * (seed ^ (seed >> 30)) + i + 1;
  }
}

uint32_t Mt19937::next() {
  if (pos_ == 624) {
    for (size_t i = 0; i < 624; ++i) {
      const uint32_t y = (state_[i] & 0x80000000u) | (state_[(i + 1) % 624] & 0x7FFFFFFFu);
      state_[i] = state_[(i + 397) % 624] ^ (y >> 1) ^ (y & 1 ? 0x9908B0DFu : 0u);
    }
    pos_ = 0;
  }
  uint32_t y = state_[pos_++];
  y ^= y >> 11;
  y ^= (y << 7) & 0x9D2C5680u;
  y ^= (y << 15) & 0xEFC60000u;
  return y ^ (y >> 18);
}

double Mt19937::uniform() {
  const uint32_t a = next() >> 5, b = next() >> 6;
  return (a * 67108864.0 + b) / 9007199254740992.0;
}

double Mt19937::normal() {
  if (has_gauss_) {
    has_gauss_ = false;
    return std::exchange(gauss_, 0.0);
  }
  double x1, x2, r2;
  do {
    x1 = 2.0 * uniform() - 1.0;
    x2 = 2.0 * uniform() - 1.0;
    r2 = x1 * x1 + x2 * x2;
  } while (r2 >= 1.0 || r2 == 0.0);
  const double f = std::sqrt(-2.0 * std::log(r2) / r2);
  gauss_ = f * x1;
  has_gauss_ = true;
  return f * x2;
}

std::vector<int64_t> permutation(int64_t n, uint64_t seed, uint64_t epoch) {
  std::vector<int64_t> order(n > 0 ? size_t(n) : 0);
  for (size_t i = 0; i < order.size(); ++i) order[i] = int64_t(i);
  const uint64_t high = philox_counter_high(kPermutationStream, epoch);
  std::array<uint32_t, 4> w{};
  for (size_t i = order.size(); i-- > 1;) {  // Fisher-Yates, two 64-bit draws per block
    if (i % 2 == 1 || i + 1 == order.size()) w = block(seed, high, i / 2);
    const size_t half = i % 2 * 2;
    const uint64_t draw = uint64_t(w[half + 1]) << 32 | w[half];
    const size_t j = size_t((static_cast<unsigned __int128>(draw) * (i + 1)) >> 64);
    std::swap(order[i], order[j]);
  }
  return order;
}

// XXH64 as specified by its author (github.com/Cyan4973/xxHash, doc/xxhash_spec.md).
namespace {
constexpr uint64_t kP1 = 0x9E3779B185EBCA87u, kP2 = 0xC2B2AE3D27D4EB4Fu, kP3 = 0x165667B19E3779F9u,
                   kP4 = 0x85EBCA77C2B2AE63u, kP5 = 0x27D4EB2F165667C5u;

uint64_t load64(const unsigned char* p) {
  uint64_t v;
  std::memcpy(&v, p, 8);
  return v;
}
uint32_t load32(const unsigned char* p) {
  uint32_t v;
  std::memcpy(&v, p, 4);
  return v;
}
uint64_t round64(uint64_t acc, uint64_t v) { return std::rotl(acc + v * kP2, 31) * kP1; }
uint64_t merge(uint64_t h, uint64_t acc) { return (h ^ round64(0, acc)) * kP1 + kP4; }

uint64_t finish(uint64_t h, const unsigned char* p, size_t left) {
  for (; left >= 8; p += 8, left -= 8) h = std::rotl(h ^ round64(0, load64(p)), 27) * kP1 + kP4;
  if (left >= 4) {
    h = std::rotl(h ^ load32(p) * kP1, 23) * kP2 + kP3;
    p += 4;
    left -= 4;
  }
  for (; left > 0; ++p, --left) h = std::rotl(h ^ *p * kP5, 11) * kP1;
  h = (h ^ (h >> 33)) * kP2;
  h = (h ^ (h >> 29)) * kP3;
  return h ^ (h >> 32);
}
}  // namespace

Hash64::Hash64(uint64_t seed) : seed_(seed), acc_{seed + kP1 + kP2, seed + kP2, seed, seed - kP1} {}

void Hash64::add(const void* data, size_t bytes) {
  const auto* p = static_cast<const unsigned char*>(data);
  total_ += bytes;
  if (held_ > 0 || bytes < 32) {
    const size_t take = bytes < 32 - held_ ? bytes : 32 - held_;
    if (take > 0) std::memcpy(buffer_ + held_, p, take);
    held_ += take;
    p += take;
    bytes -= take;
    if (held_ < 32) return;
    stripe(buffer_);
    held_ = 0;
  }
  for (; bytes >= 32; p += 32, bytes -= 32) stripe(p);
  if (bytes > 0) std::memcpy(buffer_, p, bytes);
  held_ = bytes;
}

void Hash64::stripe(const unsigned char* p) {
  for (size_t i = 0; i < 4; ++i) acc_[i] = round64(acc_[i], load64(p + 8 * i));
}

uint64_t Hash64::value() const {
  uint64_t h = seed_ + kP5;
  if (total_ >= 32) {
    h = std::rotl(acc_[0], 1) + std::rotl(acc_[1], 7) + std::rotl(acc_[2], 12) +
        std::rotl(acc_[3], 18);
    for (uint64_t acc : acc_) h = merge(h, acc);
  }
  return finish(h + total_, buffer_, held_);
}

uint64_t hash64(const void* data, size_t bytes, uint64_t seed) {
  Hash64 h(seed);
  h.add(data, bytes);
  return h.value();
}

}  // namespace onnxtrain
