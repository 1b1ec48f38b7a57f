// Random numbers for tests of kernels.
#pragma once
#include <cstdint>
#include <random>
#include <vector>

namespace onnxtrain::testing {

inline std::vector<float> random_floats(size_t n, uint32_t seed, float low = -1, float high = 1) {
  std::mt19937 gen(seed);
  std::uniform_real_distribution<float> dist(low, high);
  std::vector<float> v(n);
  for (float& x : v) x = dist(gen);
  return v;
}

}  // namespace onnxtrain::testing
