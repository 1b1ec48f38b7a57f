// Weights before and after a training.
#include "run/moved.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/random.hpp"

namespace onnxtrain::run {

namespace {

constexpr size_t kCopied = size_t(64) << 20;  // bytes that are kept at most
constexpr double kDigit = std::numeric_limits<float>::epsilon();

uint64_t hash_of(const Tensor& t) { return hash64(t.data(), t.bytes()); }

double largest(const Tensor& t) {
  double most = 0;
  for (double v : t.to_doubles()) most = std::max(most, std::fabs(v));
  return most;
}

}  // namespace

Moved::Moved(const Training& t) {
  const Graph& g = t.source().main;
  size_t kept = 0;
  for (const std::string& name : t.state().names()) {
    const ValueId v = g.find(name);
    if (v == kNone || !g.value(v).initializer) continue;  // counters, moments
    const Tensor& now = t.state().get(name);
    if (!dtype_is_differentiable(now.dtype())) continue;
    Weight w{name, hash_of(now), {}};
    kept += now.bytes();
    if (kept <= kCopied) w.copy = now.clone();
    before_.push_back(std::move(w));
  }
}

void Moved::warn_if_nothing(const Training& t, uint64_t steps, Observer& observer) const {
  if (steps == 0 || before_.empty()) return;
  double change = 0, size = 0;
  for (const Weight& w : before_) {
    const Tensor& now = t.state().get(w.name);
    const bool same = hash_of(now) == w.hash;
    if (!same && !w.copy.defined()) return;
    if (!w.copy.defined()) continue;
    size = std::max(size, largest(w.copy));
    if (same) continue;
    const std::vector<double> a = w.copy.to_doubles(), b = now.to_doubles();
    for (size_t k = 0; k < a.size(); ++k) change = std::max(change, std::fabs(a[k] - b[k]));
  }
  if (!(change <= kDigit * size)) return;
  observer.on_warning(
      "OT3127",
      cat("no weight changed in ", steps, steps == 1 ? " step" : " steps",
          change > 0 ? cat(" by more than ", change) : std::string(),
          t.has_lr() ? cat("; the learning rate is ", t.lr()) : std::string()),
      "a larger learning rate:  --lr 1e-3   (also look at --clip and --accumulate: they may leave "
      "nothing)");
}

}  // namespace onnxtrain::run
