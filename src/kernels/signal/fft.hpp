// Discrete Fourier transforms: any length in double precision (radix 2, and Bluestein's chirp for
// lengths that are no power of two), and products of 2, 3 and 5 in float.
#pragma once
#include <complex>
#include <cstdint>
#include <vector>

#include "core/counted.hpp"

namespace onnxtrain::kernels {

class Fft {
 public:
  using C = std::complex<double>;
  explicit Fft(int64_t n);
  int64_t size() const { return n_; }
  // Elements of scratch that run() needs.
  int64_t scratch() const { return chirp_.empty() ? 0 : 2 * m_; }
  // In place; backward uses the conjugate root. Not scaled.
  void run(C* data, bool backward, C* scratch) const;

 private:
  void radix2(C* data, int64_t n, bool backward, const CountedVector<C>& roots) const;
  int64_t n_, m_ = 0;
  CountedVector<C> roots_, chirp_, kernel_;  // kernel_: transform of the chirp filter
};

// In single precision, in the order of operations of numpy's pocketfft. Only where supports() says
// so.
class FloatFft {
 public:
  using C = std::complex<float>;
  explicit FloatFft(int64_t n);
  static bool supports(int64_t n);
  int64_t size() const { return n_; }
  int64_t scratch() const { return n_; }
  void run(C* data, bool backward, C* scratch) const;

 private:
  struct Pass {
    int64_t radix, before;      // `before`: product of the radices of earlier passes
    CountedVector<C> twiddles;  // [radix - 1][n / (before * radix)]
  };
  void run_pass(const Pass& p, const C* from, C* to, bool backward) const;
  int64_t n_;
  std::vector<Pass> passes_;
};

}  // namespace onnxtrain::kernels
