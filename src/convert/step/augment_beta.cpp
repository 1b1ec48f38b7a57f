// Quantiles of the symmetric Beta distribution, for mixup.
#include <cmath>

#include "convert/step/augment.hpp"

namespace onnxtrain {

namespace {

// The regularised incomplete beta function by its continued fraction (modified Lentz).
double incomplete_beta(double x, double a, double b) {
  if (x <= 0) return 0;
  if (x >= 1) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - incomplete_beta(1 - x, b, a);
  constexpr double kTiny = 1e-300;
  const double front = std::exp(std::lgamma(a + b) - std::lgamma(a) - std::lgamma(b) +
                                a * std::log(x) + b * std::log1p(-x)) /
                       a;
  double f = 1, c = 1, d = 0;
  for (int k = 0; k <= 400; ++k) {
    const int m = k / 2;
    double term = 1;
    if (k > 0 && k % 2 == 0) term = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
    if (k % 2 == 1) term = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 + term * d;
    d = 1 / (std::fabs(d) < kTiny ? kTiny : d);
    c = 1 + term / c;
    if (std::fabs(c) < kTiny) c = kTiny;
    f *= c * d;
    if (std::fabs(1 - c * d) < 1e-14) break;
  }
  return front * (f - 1);
}

}  // namespace

std::vector<float> beta_quantiles(double a, int points) {
  std::vector<float> out;
  for (int k = 0; k < points; ++k) {
    const double p = double(k) / double(points - 1);
    double low = 0, high = 1;
    for (int i = 0; i < 200 && high - low > 1e-17; ++i) {
      const double middle = (low + high) / 2;
      (incomplete_beta(middle, a, a) < p ? low : high) = middle;
    }
    out.push_back(float((low + high) / 2));
  }
  if (points > 0) out.front() = 0, out.back() = 1;
  return out;
}

}  // namespace onnxtrain
